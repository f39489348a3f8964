"""The Gaussian guides: draws, entropy and moments agree with each other and with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.learn.vi.guide import KINDS, Guide


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_moments(kind):
    guide = Guide(kind, 3)
    rng = np.random.default_rng(0)
    start = guide.start(jnp.array([1.0, -2.0, 0.5]), 0.3)
    np.testing.assert_allclose(guide.moments(np.asarray(start))[0], [1, -2, 0.5])
    theta = np.asarray(start) + 0.3 * rng.normal(size=start.size)
    mean, spread = guide.moments(theta)
    covariance = np.diag(spread) if kind == "mean-field" else spread
    # z is affine in the noise: its values at 0 and at the unit vectors are all there is to know.
    images = np.asarray(guide.draw(jnp.asarray(theta), jnp.eye(3))) - mean
    np.testing.assert_allclose(guide.draw(jnp.asarray(theta), jnp.zeros(3)), mean, rtol=1e-6)
    np.testing.assert_allclose(images.T @ images, covariance, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(guide.entropy(jnp.asarray(theta)), np.linalg.slogdet(covariance)[1] / 2, rtol=1e-5)
    many = guide.moments(np.stack([theta, np.asarray(start)]))
    np.testing.assert_allclose(many[1][0], spread)
    assert many[0].shape == (2, 3)


def test_full_rank_covariances_are_exactly_symmetric_and_another_kind_is_refused():
    guide = Guide("full-rank", 6)
    theta = np.random.default_rng(1).normal(size=(20, 6 + 15 + 6)) * 10
    covariance = guide.moments(theta)[1]
    assert (covariance == np.swapaxes(covariance, 1, 2)).all()
    with pytest.raises(InputError, match="Expected guide to be one of 'mean-field', 'full-rank'"):
        Guide("low-rank", 2)


def test_gradients_flow_through_every_parameter():
    guide = Guide("full-rank", 3)
    theta = guide.start(jnp.zeros(3), 1.0)
    slope = jax.grad(lambda theta: jnp.sum(guide.draw(theta, jnp.array([1.0, 2.0, 3.0])) ** 2))(theta)
    assert (slope != 0).all()
