"""S2's recipe and the ε that the paper claims for it (I-12, I-13, ERR 13)."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp.experiments.dpvi import recipe


def test_the_papers_claims():
    """I-13 (the theorem's column), ERR 13, and the exact pair's Rényi value I-12 above its PLD value."""
    for sigma, value in {2: 58.4842477328, 4: 15.0852783009, 10: 4.26579248928}.items():
        assert recipe.advanced(sigma, 0.05, 1000) == pytest.approx(value, rel=1e-9)
    assert recipe.doubled_moments(2, 0.05, 1000) == pytest.approx(3.343, abs=1e-3)
    exact, claimed = recipe.exact(2, 0.05, 1000), recipe.moments(2, 0.05, 1000)
    assert 2.0 < exact < 2.66043 < claimed < 3.343 * 2


def test_readings_differ_in_clip_norm_and_adagrad_only():
    given = {"sampling_rate": 0.05, "steps": 10, "clip": 5.0, "sigma": 3.0}
    coded, printed = recipe.plan("coded", **given), recipe.plan("printed", **given)
    assert (coded.clip_norm, printed.clip_norm) == (0.25, 5.0)
    assert coded.noise_multiplier == printed.noise_multiplier == 6.0
    same = {"clip_norm": 1.0, "optimizer": recipe.adagrad("coded")}
    assert dataclasses.replace(coded, **same) == dataclasses.replace(printed, **same)


@pytest.mark.parametrize("reading", ["coded", "printed"])
def test_adagrad(reading):
    """η g/√G, G over all steps or over the last ten."""
    optimizer = recipe.adagrad(reading)
    gradients = np.random.default_rng(0).normal(size=(25, 2)).astype(np.float32)
    state = optimizer.init(jnp.zeros(2))
    for number, gradient in enumerate(gradients):
        step, state = optimizer.update(jnp.asarray(gradient), state)
        first = max(0, number - 9) if reading == "coded" else 0
        expected = -0.1 * gradient / np.sqrt((gradients[first : number + 1] ** 2).sum(axis=0))
        np.testing.assert_allclose(step, expected, rtol=1e-5)
