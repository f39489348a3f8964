"""What a step of VI clips, releases and makes of it: against gradients taken by hand, and against the Fisher matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from bayesdp.learn.loop.objective import StepSettings
from bayesdp.learn.models.density import NormalPrior
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.vi.elbo import VARIANTS, Elbo, Point
from bayesdp.learn.vi.guide import KINDS, Guide
from bayesdp.learn.vi.natural_gradient import natural

RNG = np.random.default_rng(2)
X = RNG.normal(size=(12, 3)).astype(np.float32)
Y = (RNG.random(12) < 0.5).astype(np.float32)
N = 50


def log_likelihood(w, record):
    x, y = record
    return y * jax.nn.log_sigmoid(x @ w) + (1 - y) * jax.nn.log_sigmoid(-(x @ w))


MODEL = probabilistic((NormalPrior(np.zeros(3), 2.0), log_likelihood), (X, Y))


def objective(variant, kind="mean-field", draws=2, rate=1.0):
    return Elbo(
        MODEL, Guide(kind, 3), optax.sgd(rate), records=N, steps=10, num_particles=draws, variant=variant,
        averaged_from=5,
    )  # fmt: skip


def at(number):
    """The settings of a step: what an ELBO is told is its number."""
    return StepSettings(jnp.int32(number), jnp.float32(1), jnp.float32(0), jnp.int32(0), None)


def a_point(elbo, scale=0.3):
    start = elbo.guide.start(jnp.array([0.5, -0.2, 0.1]), scale)
    bumps = jnp.asarray(np.random.default_rng(0).normal(scale=0.05, size=start.shape), jnp.float32)
    return elbo.drawn_point(jax.random.key(3), start + bumps)


def parts_of_the_loss(elbo, draws):
    """-log p(x|z) of one record and the rest, as functions of θ: written as in the paper, differentiated by JAX."""

    def likelihood(theta, record):
        return -jnp.mean(jax.vmap(lambda z: MODEL.log_likelihood(z, record))(elbo.guide.draw(theta, draws)))

    def rest(theta):
        prior = jnp.mean(jax.vmap(MODEL.log_prior)(elbo.guide.draw(theta, draws)))
        return -(prior + elbo.guide.entropy(theta)) / N

    return jax.jit(jax.vmap(jax.grad(likelihood), (None, 0))), jax.jit(jax.grad(rest))


def clipped(gradients, norm):
    sizes = np.linalg.norm(gradients.reshape(len(gradients), -1), axis=1)
    return gradients * (norm / np.maximum(sizes, norm)).reshape(-1, *[1] * (gradients.ndim - 1)), sizes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["plain", "paper"])
def test_the_sum_is_that_of_clipped_gradients_of_the_guide(kind, variant):
    elbo = objective(variant, kind)
    point = a_point(elbo)
    of_records, of_rest = parts_of_the_loss(elbo, point.draws)
    gradients = np.asarray(of_records(point.theta, (X, Y)))
    if variant == "paper":
        gradients = gradients + np.asarray(of_rest(point.theta))
    norm = float(np.median(np.linalg.norm(gradients, axis=1)))
    cut, sizes = clipped(gradients, norm)
    mask = np.arange(12) % 3 != 0
    total, norms = jax.jit(elbo.clip_sum)(point, (X, Y), jnp.asarray(mask), norm)
    np.testing.assert_allclose(total, cut[mask].sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norms.raw, np.where(mask, sizes, 0), rtol=1e-4)
    np.testing.assert_allclose(
        jax.jit(elbo.norms)(point, (X, Y), jnp.asarray(mask), norm).clipped, norms.clipped, rtol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_aligned_gradients_release_the_gradients_and_pull_them_back(kind):
    elbo = objective("aligned", kind)
    point = a_point(elbo)
    gradients = -np.asarray(
        jax.vmap(jax.vmap(jax.grad(MODEL.log_likelihood), (0, None)), (None, 0))(
            elbo.guide.draw(point.theta, point.draws), (X, Y)
        )
    )
    cut, sizes = clipped(gradients / np.sqrt(2), 0.4)
    total, norms = jax.jit(elbo.clip_sum)(point, (X, Y), jnp.ones(12, bool), 0.4)
    np.testing.assert_allclose(total, cut.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norms.raw, sizes, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_without_clipping_all_variants_give_the_gradient_of_the_elbo(kind):
    wanted = None
    for variant in VARIANTS:
        elbo = objective(variant, kind)
        point = a_point(elbo)
        total, _ = jax.jit(elbo.clip_sum)(point, (X, Y), jnp.ones(12, bool), None)
        theta, state = elbo.advance(at(0), point, elbo.start(point.theta), total / 12)
        assert elbo.zero(point).shape == total.shape
        of_records, of_rest = parts_of_the_loss(elbo, point.draws)
        wanted = np.asarray(of_records(point.theta, (X, Y))).mean(0) + np.asarray(of_rest(point.theta))
        if variant == "natural":
            wanted = N * np.asarray(natural(elbo.guide, point.theta, jnp.asarray(wanted)))
        np.testing.assert_allclose(point.theta - theta, wanted, rtol=2e-3, atol=2e-5)
        np.testing.assert_allclose(state.average, theta)


def test_a_record_without_a_finite_gradient_is_left_out_and_reported_at_the_clip_norm():
    elbo = objective("aligned")
    point = a_point(elbo)
    bad = X.copy()
    bad[4] = np.inf
    total, norms = jax.jit(elbo.clip_sum)(point, (bad, Y), jnp.ones(12, bool), 0.4)
    others, _ = jax.jit(elbo.clip_sum)(point, (X, Y), jnp.arange(12) != 4, 0.4)
    np.testing.assert_allclose(total, others, rtol=1e-5, atol=1e-6)
    assert float(norms.clipped[4]) == pytest.approx(0.4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_natural_gradient_is_the_inverse_fisher_matrix_times_the_gradient(kind):
    """The Fisher matrix as the Hessian of KL(N_θ0 || N_θ) at θ0, by automatic differentiation."""
    guide = Guide(kind, 3)
    theta = a_point(objective("natural", kind)).theta

    def moments(theta):
        factor = (guide.draw(theta, jnp.eye(3)) - theta[:3]).T
        return theta[:3], factor @ factor.T

    def divergence(other):
        (m0, s0), (m1, s1) = moments(theta), moments(other)
        inverse = jnp.linalg.inv(s1)
        gap = m1 - m0
        return 0.5 * (jnp.trace(inverse @ s0) + gap @ inverse @ gap + jnp.linalg.slogdet(s1)[1])

    fisher = np.asarray(jax.jit(jax.hessian(divergence))(theta), np.float64)
    gradient = np.random.default_rng(4).normal(size=len(theta))
    ours = jax.jit(lambda theta, g: natural(guide, theta, g))(theta, jnp.asarray(gradient, jnp.float32))
    np.testing.assert_allclose(ours, np.linalg.solve(fisher, gradient), rtol=5e-3, atol=1e-4)


def test_the_mean_of_the_last_iterates_is_kept():
    elbo = objective("plain", draws=1, rate=0.1)
    theta = elbo.guide.start(jnp.zeros(3), 0.1)
    state, seen = elbo.start(theta), []
    for number in range(10):
        point = Point(theta, jnp.ones((1, 3)), jnp.zeros(6))
        theta, state = elbo.advance(at(number), point, state, jnp.full(6, 0.1 * number))
        seen.append(np.asarray(theta))
        if number < 5:
            np.testing.assert_allclose(state.average, theta, rtol=1e-6)
    np.testing.assert_allclose(state.average, np.mean(seen[5:], axis=0), rtol=1e-5)
    assert ravel_pytree(state.optimizer)[0].size == 0


def test_the_papers_order_is_clipped_where_likelihood_and_prior_nearly_cancel():
    """A narrow prior, and gradients that are all but its opposite: |Jᵀg|² + 2 g·Jr + |r|² would be all rounding."""
    narrow = probabilistic((NormalPrior(np.zeros(3), 0.003**2), lambda w, r: -0.5 * (r[1] - r[0] @ w) ** 2), (X, Y))
    elbo = Elbo(
        narrow,
        Guide("mean-field", 3),
        optax.sgd(1.0),
        records=100,
        steps=10,
        num_particles=1,
        variant="paper",
        averaged_from=5,
    )
    point = elbo.drawn_point(jax.random.key(0), elbo.guide.start(jnp.array([1.0, -0.5, 0.7]), 0.1))
    assert np.linalg.norm(point.rest) > 500
    z = np.asarray(elbo.guide.draw(point.theta, point.draws), np.float64)[0]
    apart = RNG.normal(size=(300, 3)) * RNG.choice([0.5, 2, 8], size=(300, 1))
    gradients = apart - np.asarray(point.rest, np.float64)[:3]
    roots = np.sqrt(np.linalg.norm(gradients, axis=1, keepdims=True))
    x = gradients / roots
    records = jnp.asarray(x[:, None], jnp.float32), jnp.asarray((x @ z)[:, None] - roots, jnp.float32)
    one_by_one = jax.jit(lambda all_: jax.lax.map(lambda r: elbo.clip_sum(point, r, jnp.ones(1, bool), 1.0)[0], all_))
    assert np.linalg.norm(one_by_one(records), axis=1).max() < 1.001
