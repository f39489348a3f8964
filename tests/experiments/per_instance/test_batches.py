"""Batches drawn at a checkpoint: how far a record moves them (E2, E3, I-7b)."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from bayesdp.data import load as load_data
from bayesdp.divergence.averaged import averaged_cost
from bayesdp.experiments.per_instance import batches, training

DIGITS = load_data("digits")


def test_batches_move_as_their_gradients_say():
    problem = training.problem(DIGITS, "logistic", 0)
    points = problem.outsiders(2, 0)
    pool = batches.draw(problem, problem.params, points, batch=16, count=5, seed=3)

    def clipped(i):
        gradient = ravel_pytree(jax.grad(problem.loss)(problem.params, (points[0][i], points[1][i])))[0]
        return np.asarray(gradient / max(1.0, float(np.linalg.norm(gradient))))

    # Turned vectors keep all inner products.
    own = np.stack([clipped(i) for i in range(2)])
    assert pool.records @ pool.records.T == pytest.approx(own @ own.T, abs=1e-5)
    # Δ of the mean rule from its definition.
    moved = (pool.sums[0] + pool.records[1]) / (pool.sizes[0] + 1) - pool.sums[0] / pool.sizes[0]
    assert pool.moves("mean")[1, 0] == pytest.approx(np.linalg.norm(moved), rel=1e-9)
    assert pool.moves("sum") == pytest.approx(np.repeat(pool.norms[:, None], 5, axis=1))
    # No batch of its size moves farther than the bound from the norm alone.
    for norm, moves in zip(pool.norms, pool.moves("mean"), strict=True):
        assert (moves <= batches.largest_moves(norm, pool.sizes) + 1e-6).all()


def test_batch_sizes_are_binomial_and_lose_nothing():
    counts, weights = batches.size_law(60000, 128 / 60000)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert counts @ weights == pytest.approx(128, rel=1e-9)
    # I-7b: the published value is for |g* − mean| <= C, a numerator of C instead of |g*| + C.
    cost = averaged_cost(1 / (counts + 1) / 0.469, [8.0], sampling_rate=128 / 60000, weights=weights)[0] / 7
    assert cost == pytest.approx(5.091993526497e-9, rel=1e-6)
