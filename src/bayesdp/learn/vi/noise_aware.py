"""A posterior that knows of the noise: how far the mean of the iterates may be from where it would be without (L6).

The result of a run is m, the mean of the last iterates μ_t of the guide's mean. They wander about the optimum because
every step is noisy: DP noise, sampling, Monte Carlo. The variance of m shows in the iterates themselves: cut them into
K batches, long against the memory of the walk, whose means m_k are then nearly independent (batch means, as for MCMC):

    cov(m) ≈ (1/K) S f,    S = Σ_k (m_k - m)(m_k - m)ᵀ / (K - 1),    f = (1 + ρ)/(1 - ρ)

f corrects for what is left of memory, ρ the correlation of neighbouring batches. The noise-aware posterior is
N(m, Σ + cov(m)): the guide's own spread, and that of m, which plain DPVI leaves out. All of it is computed from
iterates that were released: post-processing. It is an estimate, not a bound, and knows nothing of the bias of clipping.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array, unmet

BATCHES = 25
"""K: enough to estimate a variance, few enough to be long."""

NOISE_AWARE = "Intervals include the noise that was added for privacy, as the wandering of the iterates shows it."


class Walk(NamedTuple):
    """Sums of the iterates of each batch, about a point near all of them, and how many there were."""

    origin: jax.Array
    sums: jax.Array
    counts: jax.Array

    @classmethod
    def at(cls, mean: jax.Array) -> Walk:
        """Before the first step."""
        return cls(mean, jnp.zeros((BATCHES, len(mean))), jnp.zeros(BATCHES))

    def plus(self, mean: jax.Array, number: jax.Array, first: int, steps: int) -> Walk:
        """After step `number` of a run whose averaging begins at step `first`."""
        inside = number >= first
        batch = jnp.clip((number - first) * BATCHES // (steps - first), 0, BATCHES - 1)
        # Until averaging begins the origin moves along, so that sums are of small numbers.
        origin = jnp.where(inside, self.origin, mean)
        return Walk(
            origin,
            self.sums.at[batch].add(jnp.where(inside, mean - origin, 0)),
            self.counts.at[batch].add(jnp.where(inside, 1.0, 0.0)),
        )


def spread_of_mean(walk: Walk) -> Array:
    """The covariance of m, from the batches that were filled.

    Bad input: fewer than two iterates in each of at least ten batches get `InputError`.
    """
    counts = np.asarray(walk.counts, np.float64)
    full = counts >= 0.5 * counts.max()
    if counts.max() < 2 or full.sum() < 10:
        raise unmet(
            "steps",
            int(counts.sum()),
            f"at least {2 * BATCHES} averaged steps for a noise-aware posterior",
            f"{int(counts.sum())}",
            "Use more steps or a larger averaged_fraction.",
        )
    means = np.asarray(walk.sums, np.float64)[full] / counts[full, None]
    away, k = means - means.mean(axis=0), int(full.sum())
    memory = float(np.sum(away[1:] * away[:-1]) / max(np.sum(away**2), np.finfo(float).tiny))
    # Chance alone makes neighbours correlate by about -1/K.
    rho = float(np.clip(memory + 1 / k, 0, 0.9))
    # A variance from K batches is itself uncertain: the last factor is the variance of Student's t.
    result: Array = away.T @ away / (k - 1) / k * (1 + rho) / (1 - rho) * (k - 1) / (k - 3)
    return result
