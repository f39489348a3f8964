"""S1's training recipe (J5, C18, C19): what a step does, and what witnesses and pairs see of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from s1_problem import flat, gradients
from scipy import stats

from bayesdp.experiments.bayesian_dp import recipe, training
from bayesdp.experiments.bayesian_dp.recipe import Recipe
from bayesdp.experiments.bayesian_dp.training import Problem


def test_without_noise_and_clipping_it_is_the_librarys_sgd(problem: Problem, plan: Recipe, follow: Any) -> None:
    ours = follow(sigma=0.0, clip_norm=None)[-1].params
    sgd = dataclasses.replace(training.as_in_the_text(plan), clip_norm=1e6, noise_multiplier=0.0)
    theirs = sgd.fit(problem.loss, problem.params, problem.data, members=0, seed=3).params
    np.testing.assert_allclose(flat(ours), flat(theirs), atol=1e-6)


def test_noise_is_sigma_times_clip_norm_on_the_subset(follow: Any, mask: Any) -> None:
    moved = [flat(follow(1, clip_norm=0.7, sigma=s)[0].params) for s in (0.0, 0.3)]
    noise = moved[1] - moved[0]
    np.testing.assert_array_equal(noise != 0, mask > 0)
    assert 0.4 < mask.mean() < 0.6
    assert stats.kstest(noise[mask > 0], "norm", (0, 0.21)).pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(noise[mask > 0], "norm", (0, 0.21 * wrong)).pvalue < 1e-3


def test_the_batch_is_clipped_not_the_record(problem: Problem, follow: Any) -> None:
    free, bound = (follow(1, sigma=0.0, clip_norm=c)[0] for c in (None, 0.1))
    step = flat(free.params) - flat(problem.params)
    assert float(free.lengths[0]) > 0.1
    assert np.linalg.norm(step) == pytest.approx(float(free.lengths[0]), rel=1e-5)
    clipped = flat(bound.params) - flat(problem.params)
    np.testing.assert_allclose(clipped, step * 0.1 / np.linalg.norm(step), atol=1e-6)
    assert np.linalg.norm(gradients(problem, problem.data), axis=1).max() > 10 * 0.1


def test_witnesses_are_charged_their_own_gradient(problem: Problem, follow: Any, mask: Any, witnesses: Any) -> None:
    expected = np.linalg.norm(mask * gradients(problem, witnesses), axis=1) / 100
    np.testing.assert_allclose(follow(1)[0].distances[0], expected, rtol=1e-4)


@pytest.mark.parametrize("clip_norm", [None, 0.1])
def test_pairs_are_the_papers_leave_one_out_distances(
    problem: Problem, follow: Any, mask: Any, clip_norm: float | None
) -> None:
    """By hand: the batch's mean (a step of rate 1 without noise) and the eight, less one of the eight, clipped."""
    mean = flat(problem.params) - flat(follow(1, sigma=0.0, clip_norm=None)[0].params)
    eight = mask * gradients(problem, problem.data)[np.random.default_rng(3).choice(1000, 8, replace=False)] / 100
    left = mean + eight.sum(axis=0) - eight
    if clip_norm is not None:
        left *= clip_norm / np.linalg.norm(left, axis=1, keepdims=True)
    expected = [np.linalg.norm(left[i] - left[j]) for i, j in zip(*np.triu_indices(8, 1), strict=True)]
    np.testing.assert_allclose(follow(1, clip_norm=clip_norm)[0].pairs[0], expected, rtol=1e-3)


def test_no_record_moves_a_clipped_mean_further_than_it_moves_the_mean() -> None:
    """What the sound accounting rests on: projections on a ball bring no two points further apart."""
    rng = np.random.default_rng(0)
    clip = jax.vmap(lambda row: recipe._clipped(row, 1.0)[0])
    for scale in (0.1, 1.0, 5.0):
        one = rng.normal(size=(200, 4)) * scale
        other = one + rng.normal(size=(200, 4))
        moved = np.linalg.norm(np.asarray(clip(one)) - np.asarray(clip(other)), axis=1)
        assert (moved <= np.minimum(np.linalg.norm(one - other, axis=1), 2) * (1 + 1e-5)).all()
        assert np.linalg.norm(np.asarray(clip(one)), axis=1).max() <= 1 + 1e-6
