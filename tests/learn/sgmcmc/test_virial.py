import jax.numpy as jnp
import numpy as np
import pytest

import bayesdp as bd
from bayesdp.learn.sgmcmc.virial import Heat

N, D = 200, 4
X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
MODEL = (bd.NormalPrior(jnp.zeros(D), 1.0), lambda w, x: -0.5 * jnp.sum((x - w) ** 2))
"""A Gaussian target with λ = N + 1 in every direction."""


def fitted(kind, steps, size, seed=0, **fields):
    plan = kind(sampling_rate=1.0, steps=steps, step_size=size, **{"clip_norm": 100.0, **fields})
    return plan.fit(MODEL, X, seed=seed)


def said(posterior):
    return any("variance is about" in note for note in posterior.notes)


def test_steps_that_are_too_long_are_said_to_be():
    right, long = fitted(bd.SGLD, 3000, 0.1 / N), fitted(bd.SGLD, 3000, 1.2 / N)
    assert not said(right)
    assert said(long)
    # V = 1/(1 − hλ/2), which is how much too wide the samples are.
    assert 1 / long.cov[0, 0] / N == pytest.approx(1 - 0.6, rel=0.2)


def test_clipping_that_keeps_a_chain_finite_hides_nothing():
    wild = fitted(bd.SGLD, 2000, 30 / N, clip_norm=3.0)
    assert np.isfinite(wild.draws).all()
    assert wild.std.min() > 5 / np.sqrt(N)
    assert said(wild)


def test_other_samplers_are_watched_too():
    assert not said(fitted(bd.SGHMC, 3000, 0.2 / np.sqrt(N), friction=3.0))
    assert said(fitted(bd.SGHMC, 3000, 1.6 / np.sqrt(N), friction=1.0))
    assert not said(fitted(bd.PSGLD, 3000, 0.1 / N))


def test_a_short_chain_says_nothing():
    assert Heat(np.array([1.6]), np.array([0.3])).wrong is None
    assert Heat(np.array([np.nan]), np.array([0.01])).wrong is None
    assert Heat(np.array([1.5, 1.7]), np.array([0.05, 0.05])).wrong == pytest.approx(1.6)
    assert Heat(np.array([1.1]), np.array([0.01])).wrong is None


@pytest.mark.simulation
def test_wrong_chains_are_flagged_and_right_ones_are_not():
    # Variance × 1.4: h λ = 0.57.
    right = [said(fitted(bd.SGLD, 4000, 0.1 / N, seed=seed)) for seed in range(60)]
    wrong = [said(fitted(bd.SGLD, 4000, 0.57 / N, seed=seed)) for seed in range(60)]
    assert np.mean(right) <= 0.05
    assert np.mean(wrong) >= 0.95
