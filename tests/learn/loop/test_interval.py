"""The compiled steps give the same runs side by side or in turn, draws beforehand or in time, and end where told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp.learn.loop import interval
from bayesdp.learn.loop.interval import Carry, Fixed
from bayesdp.learn.loop.objective import Objective, Position, StepSettings
from bayesdp.mechanism import PerExample, PrivateStep, step
from bayesdp.mechanism.clipping import clip_rule
from bayesdp.mechanism.devices import record_mesh, spread

STEPS, RECORDS = 70, 200
X = np.random.default_rng(0).normal(size=(RECORDS, 3)).astype(np.float32)


class Wander(Objective):
    """Descends towards the mean with a public push at every step, counts its steps and keeps every iterate."""

    gradients = PerExample(lambda at, x: 0.5 * jnp.sum((at - x) ** 2), "vmap")

    def start(self, params):
        return jnp.int32(0)

    def draw(self, key, params):
        return jax.random.normal(key, params.shape)

    def locate(self, draws, params):
        return params + 0.1 * draws

    def advance(self, now, point, state, released):
        return Position(point - 0.2 * released, state + 1)

    def clip_sum(self, params, examples, mask, clip_norm, subset=None):
        return self.gradients.clip_sum(params, examples, mask, clip_norm, subset)

    def norms(self, params, examples, mask, clip_norm, subset=None):
        return self.gradients.norms(params, examples, mask, clip_norm, subset)

    def store(self, params):
        return jnp.zeros((STEPS, *params.shape))

    def keep(self, store, now, params):
        return store.at[now.number].set(params)


def run(keys, *, stop=STEPS, watch=X[:5]):
    """What the program makes of `keys` on one device."""
    mesh = record_mesh(jax.local_devices()[:1])
    objective, start = Wander(), jnp.zeros((len(keys), 3))
    private = PrivateStep(objective, 0.2, 0.2 * RECORDS, mesh=mesh)
    rows = StepSettings(np.arange(STEPS), np.ones(STEPS, "f4"), np.full(STEPS, 0.5, "f4"), np.zeros(STEPS, int), None)
    fixed = Fixed(clip_rule(1.0), spread(X, mesh), None if watch is None else spread(watch, mesh), stop)
    assert private.steps_ahead(fixed.records) == 64
    carry = Carry(start, jax.vmap(objective.start)(start), objective.store(start))
    program = jax.jit(interval._interval(private, objective, len(keys) > 1))
    return jax.tree.map(np.asarray, program(carry, keys, rows, fixed))


@pytest.fixture
def keys():
    return jax.random.split(jax.random.key(1), 3)


def close(one, other):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, other)


def test_runs_in_turn_are_the_runs_side_by_side(keys, monkeypatch):
    found = []
    for bytes_ in (0, 2**40):
        monkeypatch.setattr(step, "IN_TURN", bytes_)
        found.append(run(keys))
    close(*found)
    in_turn = found[0]
    assert in_turn.carry.store.shape == (STEPS, 3, 3)
    assert in_turn.seen.raw.shape == (3, STEPS, 5)
    assert (in_turn.carry.state == STEPS).all()
    np.testing.assert_array_equal(in_turn.carry.store[-1], in_turn.carry.params)
    assert len(np.unique(in_turn.carry.params[:, 0])) == 3


def test_public_draws_are_the_same_beforehand_and_in_time(keys, monkeypatch):
    beforehand = run(keys[:1])
    monkeypatch.setattr(interval, "AHEAD", 0)
    close(beforehand, run(keys[:1]))
    monkeypatch.undo()
    assert not np.allclose(beforehand.carry.params, run(keys[1:2]).carry.params)


@pytest.mark.parametrize("in_turn", [0, 2**40])
@pytest.mark.parametrize("stop", [0, 1, 63, 66])
def test_steps_from_stop_on_are_not_taken(stop, in_turn, keys, monkeypatch):
    monkeypatch.setattr(step, "IN_TURN", in_turn)
    whole, part = run(keys), run(keys, stop=stop)
    assert (part.carry.state == stop).all()
    np.testing.assert_allclose(part.carry.store[:stop], whole.carry.store[:stop], rtol=1e-6)
    np.testing.assert_allclose(part.seen.distances[:, :stop], whole.seen.distances[:, :stop], rtol=1e-6)
    assert not part.carry.store[stop:].any()
    assert not part.seen.raw[:, stop:].any()
    assert part.seen.raw[:, :stop].all()


def test_nobody_sees_nothing(keys):
    assert run(keys[:1], watch=None).seen.raw.shape == (1, STEPS, 0)
    assert run(keys, watch=None).seen.raw.shape == (3, STEPS, 0)
