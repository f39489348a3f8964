"""`sgld-adult` (J21) on made-up people: every method learns, keeps its promise, and is drawn."""

import math

import numpy as np
import pytest
from pictures import drawn

from bayesdp.experiments.common.abalone_adult import Split
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.langevin import adult
from bayesdp.experiments.langevin.adult import DELTA, Size, sampler
from bayesdp.learn.sgmcmc.sgld import SGLD


def people(split_seed=None, data_dir=None):
    """Three features and a column of ones; the sign of a sum decides, but for one in ten."""
    rng = np.random.default_rng(split_seed)
    x = np.concatenate([np.ones((4000, 1)), rng.normal(size=(4000, 3))], axis=1).astype(np.float32)
    y = ((x @ [0.5, 1.0, -1.0, 0.5] > 0) ^ (rng.random(4000) < 0.1)).astype(np.int32)
    return Split(x[:3000], y[:3000], x[3000:], y[3000:], ())


FREE = SGLD(step_size=1e-4, sampling_rate=0.1, steps=200, clip_norm=None)
SMALL = Size(people, 2, (1.0,), 0, (), FREE, steps=100, chain=60, teachers=50)


@pytest.fixture(scope="module")
def rows():
    return adult.compute(size=SMALL)


def test_every_method_learns(rows):
    assert {row["curve"] for row in rows} == {"non-private", *adult.LOOKS} - {"OPS", "hybrid"}
    for row in rows:
        assert row["accuracy"] > 0.75
        assert row["repeats"] == 2
    (free,) = pick(rows, curve="non-private")
    assert free["accuracy"] > 0.87
    assert math.isinf(free["epsilon"])
    assert free["gap_accuracy"] == 0


@pytest.mark.parametrize("curve", ["OPS", "hybrid"])
def test_the_slow_methods_learn(curve):
    accuracy, log_likelihood = adult.slow_methods(SMALL, 1.0)[curve](people(0), 0)
    assert accuracy > 0.85
    assert -1 < log_likelihood < -0.3  # a likelihood that is cut off makes draws too sure of themselves


def test_gaps_are_differences_from_the_non_private_sampler(rows):
    (free,) = pick(rows, curve="non-private")
    for row in rows:
        assert row["gap_accuracy"] == pytest.approx(row["accuracy"] - free["accuracy"])
    (student,) = pick(rows, curve="GNMax")
    assert student["log_likelihood"] == student["gap_log_likelihood_se"] == ""


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_sampler_needs_no_noise_but_its_own(adjacency):
    plan = sampler(0.1, steps=50, adjacency=adjacency)
    assert plan.noise_multiplier is None
    assert 0.099 < plan.epsilon() <= 0.1
    assert plan.delta == DELTA
    np.testing.assert_allclose(plan.temperatures, 1.0)


def test_a_record_replaced_needs_shorter_steps():
    alone, replaced = (sampler(0.1, steps=50, adjacency=a).step_size for a in ("add-remove", "replace-one"))
    assert 3.5 < alone / replaced < 4.5  # twice the change, four times the noise variance


def test_it_draws(rows):
    figure = drawn("sgld-adult", rows)
    assert len(figure.axes) == 3
    assert all(axes.lines for axes in figure.axes)
