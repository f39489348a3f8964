"""One loop for one run and for several: who is told what and when, and that runs side by side are the same runs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp.learn import SGD
from bayesdp.learn.loop.objective import Objective, Position
from bayesdp.learn.loop.setup import Setup
from bayesdp.learn.loop.training import Training
from bayesdp.learn.loop.trajectories import Observer, Trajectories, first_carry
from bayesdp.mechanism import PerExample
from bayesdp.mechanism.key import seeded_key

X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
WATCH = X[:4]
PLAN = SGD(
    clip_norm=1.0,
    sampling_rate=0.5,
    steps=7,
    optimizer=optax.sgd(0.5, momentum=0.5),
    noise_multiplier=1.0,
    report_every=3,
    clip_schedule=np.linspace(1, 2, 7),
)


def loss(params, x):
    return 0.5 * jnp.sum((params["at"] - x) ** 2)


START = {"at": np.zeros(2, np.float32)}


class Noted(Observer):
    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def before_steps(self, start, stop, params):
        self.notes.append((self.name, "before", start, stop, np.asarray(params["at"])))

    def on_steps(self, start, stop, distances):
        self.notes.append((self.name, "on", start, stop, distances))


def trajectories(*seeds, plan=PLAN):
    setup = Setup.of(plan.course(loss, START), X, watch=WATCH)
    return Trajectories(setup, first_carry(setup.course, len(seeds)), jnp.stack([seeded_key(seed) for seed in seeds]))


def test_observers_are_told_like_brackets_of_every_interval():
    notes = []
    runs = trajectories(0, 1)
    passed = list(runs.intervals([Noted("outer", notes), Noted("inner", notes)]))
    order = [("outer", "before"), ("inner", "before"), ("inner", "on"), ("outer", "on")]
    assert [note[:2] for note in notes] == 3 * order
    assert [note[2:4] for note in notes[::4]] == [(0, 3), (3, 6), (6, 7)]
    assert [one.stop for one in passed] == [3, 6, 7]
    assert runs.ended


def test_distances_are_of_every_run_step_and_witness_in_units_of_the_sensitivity():
    """Before the first step all runs are at the start: the distances there are known."""
    notes = []
    (first, *_) = trajectories(0, 1, 2).intervals([Noted("all", notes)])
    before, on = notes[0][4], notes[1][4]
    assert before.shape == (3, 2)
    assert on.shape == (3, 3, 4)
    assert on.dtype == np.float32
    exact = np.minimum(np.linalg.norm(WATCH, axis=1), 1)[None].repeat(3, 0)
    np.testing.assert_allclose(on[:, 0], exact, rtol=1e-5)  # lengths are rounded up (H20)
    assert np.all(on[:, 0] >= exact * (1 - 1e-7))
    assert on.max() <= 1 + 1e-6
    assert first.raw.shape == (3, 4)


def test_runs_side_by_side_are_the_runs_alone():
    together = trajectories(5, 6, 7)
    for _ in together.intervals([]):
        pass
    for i, seed in enumerate((5, 6, 7)):
        alone = trajectories(seed)
        for _ in alone.intervals([]):
            pass
        ours, theirs = together.of_run(i), alone.of_run(0)
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("block", [1, 2, 7])
def test_the_length_of_an_interval_changes_nothing(block):
    whole, parts = trajectories(3), trajectories(3)
    for _ in whole.intervals([]):
        pass
    for _ in parts.intervals([], block=block):
        pass
    np.testing.assert_allclose(whole.carry.params["at"], parts.carry.params["at"], rtol=1e-6)


class Walk(Objective):
    """Takes the step's own number for the next point, and keeps every iterate: nothing of it depends on records."""

    gradients = PerExample(loss, "vmap")

    def start(self, params):
        return jnp.zeros(())

    def advance(self, now, point, state, released):
        return Position({"at": point["at"] + now.pace}, state + now.number)

    def clip_sum(self, params, examples, mask, clip_norm, subset=None):
        return self.gradients.clip_sum(params, examples, mask, clip_norm, subset)

    def norms(self, params, examples, mask, clip_norm, subset=None):
        return self.gradients.norms(params, examples, mask, clip_norm, subset)

    def store(self, params):
        return jnp.zeros((8, *params["at"].shape))

    def keep(self, store, now, params):
        return store.at[now.number].set(params["at"])


@pytest.mark.parametrize("chains", [1, 3])
def test_an_objective_is_told_the_settings_of_its_step_and_keeps_what_it_likes(chains):
    course = dataclasses.replace(
        PLAN.course(Walk(), {"at": np.zeros((chains, 2), np.float32)}), chains=chains, pace=np.arange(7.0, dtype="f4")
    )
    training = Training.begin(course, X, seed=0)
    outcome = training.run() and training.outcome()
    assert np.asarray(outcome.state).tolist() == [21.0] * chains
    kept = np.asarray(outcome.store)
    assert kept.shape == (8, chains, 2)
    assert kept[:7, 0, 0].tolist() == np.cumsum(range(7)).tolist()
    assert outcome.run.tallies.worst_case.steps == 7 * chains
