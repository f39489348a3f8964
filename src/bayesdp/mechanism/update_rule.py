"""Update rules: how clipped gradients become the vector that gets noise (E2), and how far one record moves it (E3).

    Sum    U(B) = Σ_{x in B} clip(g_x)                    Δ(B) = |clip(g*)|
    Mean   U(B) = Σ_{x in B} clip(g_x) / max(|B|, b0)     Δ(B) = |U(B + x*) - U(B)|

The clamped denominator of the mean rule (averaged sensitivity, H1) keeps rare tiny batches from dominating its cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bayesdp.errors import whole

Number = jax.Array | float


@dataclass(frozen=True)
class Sum:
    """U(B) = Σ clip(g_x): the sum of clipped gradients, divided by a public number.

    Examples:
        >>> bd.Sum().sensitivity(3.0)
        3.0
    """

    def denominator(self, size: jax.Array) -> jax.Array:
        """1."""
        return jnp.ones_like(size, jnp.float32)

    def sensitivity(self, clip: Number) -> Number:
        """sup_B Δ(B) = C when one record is added or removed; twice that when one is replaced."""
        return clip

    def distance(self, clipped: jax.Array, size: jax.Array, length: jax.Array) -> jax.Array:
        """Δ(B) = |clip(g*)|, whatever the batch."""
        del size, length
        return clipped


@dataclass(frozen=True)
class Mean:
    """U(B) = Σ clip(g_x) / max(|B|, b0), b0 = `smallest_batch` (the condition of H1).

    Args:
        smallest_batch: b0, the least number that a sum is divided by.

    Examples:
        >>> bd.Mean(smallest_batch=9).sensitivity(1.0)
        0.2
    """

    smallest_batch: int = 1

    def __post_init__(self) -> None:
        whole("smallest_batch", self.smallest_batch, least=1)

    def denominator(self, size: jax.Array) -> jax.Array:
        """max(|B|, b0)."""
        return jnp.maximum(size, self.smallest_batch).astype(jnp.float32)

    def sensitivity(self, clip: Number) -> Number:
        """sup_B Δ(B) = 2C/(b0+1): below b0 records Δ <= C/b0, which is not larger; else Δ <= 2C/(|B|+1)."""
        return 2 * clip / (self.smallest_batch + 1)

    def distance(self, clipped: jax.Array, size: jax.Array, length: jax.Array) -> jax.Array:
        """An upper bound of Δ(B) for a record of norm `clipped`, B the step's own batch without it (H1: the batch
        counts as revealed).

        `size` is |B| and `length` is |Σ clip(g_x)| of the batch that was drawn. By the triangle inequality
        Δ <= c/d' + |S| (1/d - 1/d') with d = max(|B|, b0) and d' = max(|B|+1, b0). Whether the record itself was drawn
        is not asked: the bound is the larger of both cases, with |S| + c for the sum of the others in the second.
        """
        outside = self._bound(clipped, size, length)
        inside = self._bound(clipped, jnp.maximum(size - 1, 0), length + clipped)
        return jnp.maximum(outside, jnp.where(size > 0, inside, 0))

    def _bound(self, clipped: jax.Array, size: jax.Array, length: jax.Array) -> jax.Array:
        before, after = self.denominator(size), self.denominator(size + 1)
        return clipped / after + length * (1 / before - 1 / after)


UpdateRule = Sum | Mean
