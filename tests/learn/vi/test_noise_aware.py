"""The wandering of iterates as an estimate of the variance of their mean: on walks whose answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.learn.vi.noise_aware import BATCHES, Walk, spread_of_mean

FIRST, STEPS = 100, 1100


@jax.jit
def walked(iterates):
    """The Walk that a run over these iterates leaves."""

    def step(walk, now):
        number, mean = now
        return walk.plus(mean, number, FIRST, STEPS), None

    return jax.lax.scan(step, Walk.at(jnp.zeros(iterates.shape[1])), (jnp.arange(len(iterates)), iterates))[0]


def autoregressive(rng, memory, dim=2):
    """x_t = memory·x_{t-1} + e_t about (5, -3): the mean of n has variance 1/(n (1 - memory)²) nearly."""
    noise = rng.normal(size=(STEPS + 500, dim))
    for t in range(1, len(noise)):
        noise[t] += memory * noise[t - 1]
    return (noise[-STEPS:] + np.array([5.0, -3.0])).astype(np.float32)


@pytest.mark.parametrize("memory", [0.0, 0.8, 0.97])
def test_it_estimates_the_variance_of_the_mean(memory):
    rng = np.random.default_rng(0)
    estimates = [spread_of_mean(walked(autoregressive(rng, memory))) for _ in range(120)]
    truth = 1 / (STEPS - FIRST) / (1 - memory) ** 2
    # Student's factor makes it a little wide on purpose; a long memory is seen only in part.
    low, high = (0.95, 1.35) if memory < 0.9 else (0.7, 1.6)
    assert low < np.mean([np.trace(e) / 2 for e in estimates]) / truth < high
    assert all(np.linalg.eigvalsh(e).min() >= 0 for e in estimates)
    assert abs(np.mean([e[0, 1] for e in estimates])) < 0.15 * truth


def test_steps_before_averaging_do_not_count():
    rng = np.random.default_rng(1)
    iterates = autoregressive(rng, 0.5)
    far = iterates.copy()
    far[:FIRST] += 1000
    np.testing.assert_allclose(spread_of_mean(walked(far)), spread_of_mean(walked(iterates)), rtol=1e-3, atol=1e-9)
    walk = walked(iterates)
    assert float(walk.counts.sum()) == STEPS - FIRST
    middle = walk.origin + walk.sums.sum(0) / (STEPS - FIRST)
    np.testing.assert_allclose(middle, iterates[FIRST:].mean(0), rtol=1e-4)


def test_a_run_that_stopped_early_uses_the_batches_it_filled():
    rng = np.random.default_rng(2)
    iterates = autoregressive(rng, 0.0)
    whole, half = (spread_of_mean(walked(iterates[:n])) for n in (STEPS, 620))
    assert 1.2 < np.trace(half) / np.trace(whole) < 3.5
    with pytest.raises(InputError, match="averaged steps"):
        spread_of_mean(walked(iterates[: FIRST + 40]))
    assert BATCHES == 25
