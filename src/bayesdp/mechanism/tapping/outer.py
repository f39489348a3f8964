"""Gradients that are outer products a_x g_xᵀ: their lengths, and their clipped sum as one matrix product.

    |a_x g_xᵀ| = |a_x| |g_x|,     Σ_x f_x a_x g_xᵀ = Aᵀ (f ∘ G)

So a clipped sum costs what an ordinary gradient costs (Bu et al. 2022, "Differentially private optimization on large
model at small cost").
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bayesdp.mechanism import lattice
from bayesdp.mechanism.lengths import UNIT, balanced, length


def size(a: jax.Array, g: jax.Array, subset: jax.Array | None) -> jax.Array:
    """|a| |g| of every record; with a subset M of the entries sqrt(a² M g²), a matrix product because M is 0 or 1."""
    if subset is None:
        return length(a) * length(g)
    (a, a_scale), (g, g_scale) = balanced(a), balanced(g)
    squares = jnp.sum((jnp.square(a) @ subset) * jnp.square(g), axis=1)
    # The subset may leave out the largest entries, and squares of others be below 2^-126: a product of such a one and
    # one of at most 16 was lost, for each weight and each factor. All roundings of a product's sum count: its order is
    # not known.
    lost, terms = 2**5 * 2.0**-126 * a.shape[1] * g.shape[1], a.shape[1] + g.shape[1] + 4
    found: jax.Array = a_scale * jnp.sqrt(squares * (1 + terms * UNIT) + lost) * g_scale * (1 + 4 * UNIT)
    return found


def rows(
    a: jax.Array, g: jax.Array, factor: jax.Array, per_unit: jax.Array | None, records: int
) -> tuple[jax.Array, jax.Array]:
    """The rows a_x / s_x and f_x s_x g_x, kept for one matrix product at the end.

    s_x is a power of two near the largest entry of a_x: where one of a_x and g_x is huge and the other tiny, f_x g_x
    would lose its digits to underflow. On a lattice whole numbers take their place.
    """
    a, scale = balanced(a)
    a, g = present(a, factor), present(g, factor) * along(scale, g)
    if per_unit is not None:
        return lattice.factors_of(a, g, (length(a), length(g)), factor * per_unit, records)
    return a, g * along(factor, g)


def total(kept: tuple[jax.Array, jax.Array], per_unit: jax.Array | None) -> jax.Array:
    """Σ_x of the outer products of what `rows` kept; int32 on a lattice."""
    a, g = kept
    return a.T @ g if per_unit is None else lattice.products(lattice.Factors(a, g))


def present(values: jax.Array, factors: jax.Array) -> jax.Array:
    """0 for records that do not count: a factor of 0 does not remove what is infinite, 0 · inf is not a number."""
    return jnp.where(along(factors, values) > 0, values, 0)


def along(factors: jax.Array, like: jax.Array) -> jax.Array:
    """(records,) with as many axes as `like`."""
    return jnp.expand_dims(factors, range(1, like.ndim))
