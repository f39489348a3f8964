"""Tests of whether gradients tell who was trained on (J7, ERR 11): false alarms and planted leaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from s1_problem import gradients

from bayesdp.experiments.bayesian_dp import leak_test
from bayesdp.experiments.bayesian_dp.training import Problem


@pytest.fixture(scope="module")
def groups() -> list[Any]:
    """40 batches of 30 records whose gradients differ in length, as they do in training."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(30, 8)) * rng.exponential(size=(30, 1)) for _ in range(40)]


def test_gradients_and_distances_by_hand(problem: Problem) -> None:
    one, two = leak_test.batches(problem.loss, problem.params, problem.data, count=2, size=5)
    np.testing.assert_allclose(np.vstack([one, two]), gradients(problem, tuple(a[:10] for a in problem.data)),
                               atol=1e-6)  # fmt: skip
    free, bound = leak_test.distances(one, None), leak_test.distances(one, 0.01)
    np.testing.assert_allclose(free[0], np.linalg.norm(one[0] - one[1]) / 4, rtol=1e-6)
    assert len(free) == 10
    assert bound.max() <= 0.02


def test_dependent_pairs_raise_false_alarms_and_whole_batches_do_not(groups: list[Any]) -> None:
    apart = [leak_test.distances(one, None) for one in groups]
    paper, sound = (leak_test.false_alarms(apart, way, splits=100, seed=1) for way in ("paper", "sound"))
    assert paper["mean"] > 0.3
    for rate in sound.values():
        assert rate < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 100)


def test_a_planted_leak_is_found_if_it_is_large(groups: list[Any]) -> None:
    others = [leak_test.distances(one, None) for one in groups[20:]]

    def p(share: float) -> dict[str, float]:
        rng = np.random.default_rng(2)
        return leak_test.p_values(
            [leak_test.distances(leak_test.planted(one, share, rng), None) for one in groups[:20]], others, "sound"
        )

    assert min(p(0.0).values()) > 0.05
    assert p(0.5)["mean"] < 1e-3
    assert min(p(0.01).values()) > 0.05


def test_planting_sets_gradients_to_zero(groups: list[Any]) -> None:
    changed = leak_test.planted(groups[0], 0.5, np.random.default_rng(0))
    gone = (changed == 0).all(axis=1)
    assert 5 < gone.sum() < 25
    np.testing.assert_array_equal(changed[~gone], groups[0][~gone])
