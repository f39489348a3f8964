import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp.learn.second_order import symmetric

RNG = np.random.default_rng(0)


def some(d):
    half = RNG.normal(size=(d, d))
    return half @ half.T


def test_flat_keeps_lengths_and_comes_back():
    matrix = some(4)
    vector = symmetric.flat(matrix)
    assert len(vector) == symmetric.entries(4)
    assert np.linalg.norm(vector) == pytest.approx(np.linalg.norm(matrix))
    np.testing.assert_allclose(symmetric.unflat(vector, 4), matrix)
    np.testing.assert_allclose(symmetric.unflat(jnp.asarray(vector), 4, jnp), matrix, rtol=1e-6)


def test_shrinkage_follows_the_noise():
    matrix, shape = some(5), np.eye(5)
    assert symmetric.shrunk(matrix, shape, 1e-6).weight == pytest.approx(1)
    np.testing.assert_allclose(symmetric.shrunk(matrix, shape, 1e-6).matrix, matrix, atol=1e-4)
    drowned = symmetric.shrunk(matrix, shape, 1e3)
    np.testing.assert_allclose(drowned.matrix, np.trace(matrix) / 5 * shape, atol=0.05)
    # On average the estimate is nearer than what was released.
    noisy = [np.eye(5) + symmetric.unflat(0.3 * RNG.normal(size=15), 5) for _ in range(50)]
    near = np.mean([np.sum((symmetric.shrunk(one, shape, 0.3).matrix - np.eye(5)) ** 2) for one in noisy])
    assert near < 0.5 * np.mean([np.sum((one - np.eye(5)) ** 2) for one in noisy])


def test_roots_do_not_prefer_an_order():
    matrix, order = some(4), [2, 0, 3, 1]
    root = symmetric.power(matrix, -0.5, 1e-9)
    np.testing.assert_allclose(root @ matrix @ root, np.eye(4), atol=1e-9)
    moved = symmetric.power(matrix[np.ix_(order, order)], -0.5, 1e-9)
    np.testing.assert_allclose(moved, root[np.ix_(order, order)], atol=1e-9)
    assert np.linalg.eigvalsh(symmetric.floored(-matrix, 0.1)).min() == pytest.approx(0.1)
