import jax.numpy as jnp
import numpy as np
import pytest

import bayesdp as bd

N, D = 400, 3
X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
MODEL = (bd.NormalPrior(jnp.zeros(D), 1.0), lambda w, x: -0.5 * jnp.sum((x - w) ** 2))


def test_the_thermostat_starts_at_the_friction_that_takes_out_the_noise():
    plan = bd.SGNHT(sampling_rate=1.0, steps=2000, step_size=0.1 / np.sqrt(N), friction=2.0, clip_norm=10.0)
    noisy = bd.SGNHT(**{**vars(plan), "noise_multiplier": 3 * float(plan.own_noise[0])})
    assert plan.matched == pytest.approx(2.0)
    assert noisy.matched == pytest.approx(18.0)
    posterior = noisy.fit(MODEL, X, seed=0)
    # With the friction of its own noise alone the variance was several times the posterior's.
    np.testing.assert_allclose(posterior.std**2 * (N + 1), 1, atol=0.35)
    assert not any("variance is about" in note for note in posterior.notes)
