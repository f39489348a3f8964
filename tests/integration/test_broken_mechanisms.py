"""A shelf of broken mechanisms: each is caught by the audit or by replay, as the table in docs/audit.md says."""

import dataclasses
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.accountant.rdp import Run
from bayesdp.audit.mechanism import AuditedPlan, scores
from bayesdp.audit.replay import repeats, replay
from bayesdp.audit.trade_off import TradeOff
from bayesdp.audit.two_errors import two_errors
from bayesdp.learn.loop import training as loop
from bayesdp.learn.sgd import Descent
from bayesdp.mechanism import PerExample, PrivateStep, Sum, add_noise, clip_rule, seeded_key
from bayesdp.mechanism.clipping import Norms

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("compile_quickly")]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)).astype(np.float32)
X[-1] *= 30
PLAN = bd.SGD(sampling_rate=0.6, steps=8, clip_norm=0.5, noise_multiplier=0.8, engine="rdp", optimizer=optax.sgd(0.1))
TABLE = Path(__file__).parents[2] / "docs" / "audit.md"


def loss(params, record):
    """Of two layers, each with a gradient of its own."""
    return jnp.sum(params[0] * record[0]) + 2 * jnp.sum(params[1] * record[0])


START = (jnp.zeros(3), jnp.zeros(3))


class HalvedNoise(PrivateStep):
    def __call__(self, *given, noise_std, **named):
        return super().__call__(*given, noise_std=noise_std / 2, **named)


class RealisedMean(Sum):
    """Divides by the batch that was drawn, in units of the 6 that are expected, and says that nothing changes."""

    def denominator(self, size):
        return jnp.maximum(size, 1) / 6.0


class Shuffled(PrivateStep):
    """One record in each step, everybody once in an epoch; of two records, accounted for as Poisson at rate 1/2."""

    def __call__(self, key, step, params, records, *, clip_norm, noise_std, witnesses=None, phase=0, ahead=None):
        data = jax.tree.map(lambda leaf: leaf[0], records.data)
        epoch, place = step // records.capacity, step % records.capacity
        order = jax.random.permutation(jax.random.fold_in(key, epoch), records.capacity)
        rows = jnp.arange(records.capacity)
        total, _ = self.gradients.clip_sum(params, data, (rows == order[place]) & (rows < records.counts[0]), clip_norm)
        noisy = add_noise(jax.random.fold_in(key, 1000 + step), total, noise_std)
        return jax.tree.map(lambda leaf: leaf / self.normaliser[0], noisy), None


@dataclasses.dataclass(frozen=True)
class OneLayerForgotten(PerExample):
    """Clips the first layer alone, at the norm of both."""

    def clip_sum(self, params, examples, mask, clip_norm, subset=None, per_unit=None):
        first, norms = super().clip_sum(params, examples, mask, clip_norm, subset)
        wild, _ = super().clip_sum(params, examples, mask, None, subset)
        return (first[0], wild[1]), norms


@dataclasses.dataclass(frozen=True)
class CountedTwice(PerExample):
    def clip_sum(self, params, examples, mask, clip_norm, subset=None, per_unit=None):
        total, norms = super().clip_sum(params, examples, mask, clip_norm, subset)
        return jax.tree.map(lambda leaf: 2 * leaf, total), norms


@dataclasses.dataclass(frozen=True)
class GramNorms(PerExample):
    """Norms of Σ_p g_p a_p as before: the root of Σ_pq (a_p·a_q) g_p g_q in float32, whose terms cancel."""

    def clip_sum(self, params, examples, mask, clip_norm, subset=None, per_unit=None):
        patches, signs = examples
        square = jnp.einsum("rp,rpq,rq->r", signs, jnp.einsum("rpk,rqk->rpq", patches, patches), signs)
        norm = jnp.sqrt(square)
        factor = jnp.where(mask, clip_rule(clip_norm).norm / jnp.maximum(norm, clip_rule(clip_norm).norm), 0)
        total = jnp.einsum("r,rp,rpk->k", factor, signs, patches)
        return total, Norms(norm, norm * factor)


def replayed(course_of, data=(X,), start=START, plan=PLAN):
    """What replay finds in a run with these gradients, or with this change of its setup."""
    training = plan.begin(course_of, start, data, members=0, seed=1)
    accounted = training.tallies[0].noise * training.trajectories.setup.sensitivity
    return training, lambda: replay(training).faults(accounted)


def changed(training, **fields):
    trajectories = training.trajectories
    trajectories.setup = dataclasses.replace(
        trajectories.setup, step=dataclasses.replace(trajectories.setup.step, **fields)
    )


def of_kind(kind, step):
    return kind(**{one.name: getattr(step, one.name) for one in dataclasses.fields(PrivateStep)})


def refuted_by_audit(plan, change, plays, history=None):
    """Whether plays of the changed mechanism refute the trade-off function of the plan."""
    planted = plan.plant(np.array([[0.6, 0.8]]))
    planted = dataclasses.replace(planted, setup=change(planted.setup))
    absent, present = (scores(planted.by(np.array([coin])), plays, 7 + coin)[:, 0] for coin in (0, 1))
    tested = two_errors(absent, present, delta=1e-5, failure=1e-4)
    curve = TradeOff.of_plan(plan.history, plan.adjacency)
    return curve.refuted_by(tested.curve.false_alarms, tested.curve.missed)


def with_step(kind):
    return lambda setup: dataclasses.replace(setup, step=of_kind(kind, setup.step))


def with_gradients(kind):
    def change(setup):
        objective = setup.course.objective
        broken = dataclasses.replace(objective, gradients=kind(objective.gradients.loss))
        course = dataclasses.replace(setup.course, objective=broken)
        return dataclasses.replace(setup, course=course, step=dataclasses.replace(setup.step, gradients=broken))

    return change


ONE_STEP = AuditedPlan.of_history((Run(1.0, 1.0, 1),), 1e-5, "add-remove")


def test_a_sound_mechanism_is_not_refuted():
    """What replay says of sound ones is in tests/audit."""
    assert not refuted_by_audit(ONE_STEP, lambda setup: setup, 4000)


def test_noise_halved():
    training, faults = replayed(loss)
    training.trajectories.setup = with_step(HalvedNoise)(training.trajectories.setup)
    assert any("times its standard deviation" in one for one in faults())
    assert refuted_by_audit(ONE_STEP, with_step(HalvedNoise), 4000)


def test_clipping_skipped_for_one_layer():
    assert any("moved by" in one for one in replayed(Descent(OneLayerForgotten(loss), PLAN.optimizer))[1]())


def test_mean_by_the_realised_batch_size():
    training, faults = replayed(loss)
    changed(training, update=RealisedMean())
    assert any("moved by" in one for one in faults())


def test_fixed_seed(monkeypatch):
    def noise():
        return replay(PLAN.begin(loss, START, (X,), members=0)).noise

    monkeypatch.setattr(loop, "fresh_key", lambda kind: seeded_key(0, kind))
    assert repeats(noise(), noise()) == PLAN.steps


def test_key_reused_across_chains():
    plan = bd.SGLD(clip_norm=0.5, sampling_rate=0.6, steps=4, step_size=0.02, num_chains=2, engine="rdp")
    model = (lambda theta: -0.5 * jnp.sum(theta**2), lambda theta, record: jnp.sum(theta * record[0]))
    for reused in (False, True):
        training = plan.begin(model, (X,), params=jnp.zeros(3), members=0, seed=1).training
        if reused:
            training.trajectories.keys = jnp.stack([training.trajectories.keys[0]] * 2)
        found = replay(training).faults(training.tallies[0].noise * training.trajectories.setup.sensitivity, 2)
        assert found == (["the same noise in two steps"] if reused else [])


def test_shuffled_batches_accounted_for_as_poisson():
    """A record that is surely in one of two steps is missed by nobody; under Poisson in a quarter of all runs it is in
    none.
    """
    plan = AuditedPlan.of_history((Run(0.25, 0.5, 2),), 1e-5, "add-remove")
    assert not refuted_by_audit(plan, lambda setup: setup, 1500)
    assert refuted_by_audit(plan, with_step(Shuffled), 1500)


def test_a_record_counted_twice():
    assert any("moved by" in one for one in replayed(Descent(CountedTwice(loss), PLAN.optimizer))[1]())
    assert refuted_by_audit(ONE_STEP, with_gradients(CountedTwice), 4000)


def test_the_convolutions_norms_of_before():
    """Patches that are each other's negatives but for a little: what their Gram products leave is rounding."""

    def two_positions(params, record):
        return jnp.sum(record[1] @ record[0] * params)

    half = RNG.normal(size=(12, 2, 50))
    patches = np.concatenate([half, half + 1e-5 * RNG.normal(size=half.shape)], axis=1).astype(np.float32) * 1e4
    data = (patches, np.tile(np.array([1, 1, -1, -1], np.float32), (12, 1)))
    start = jnp.zeros(50)
    assert replayed(two_positions, data, start)[1]() == []
    assert any(
        "moved by" in one for one in replayed(Descent(GramNorms(two_positions), PLAN.optimizer), data, start)[1]()
    )


def test_the_table_says_which_of_them_catches_what():
    rows = re.findall(r"^\| ([^|]+) \| (yes|no) \| (yes|no) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: (audit, again) for name, audit, again in rows} == {
        "noise halved": ("yes", "yes"),
        "clipping skipped for one layer": ("no", "yes"),
        "mean by the realised batch size": ("no", "yes"),
        "fixed seed": ("no", "yes"),
        "key reused across chains": ("no", "yes"),
        "shuffled batches accounted for as Poisson": ("yes", "no"),
        "a record counted twice": ("yes", "yes"),
        "the convolutions' norms of before": ("no", "yes"),
    }
