"""Lengths of vectors that float32 cannot make too short: upper bounds of the exact ones, for every finite vector (H20).

    |v| <= length(v) <= (1 + 2^-15) |v|        to 2^-126, where float32 ends

Three things make a length in floating point too short. *Cancellation*: a square that is computed as a difference, or as
a Gram sum Σ_pq (aᵀa)_pq (gᵀg)_pq, may come out as anything, also below 0; here only squares of the entries of what is
added up are summed, all of them >= 0. *Underflow*: entries are divided by a power of two near the largest before they
are squared. *Rounding*: a sum of n terms one after the other loses up to n u of itself (u = 2^-24), 20 % of a layer of
3 million weights; here 64 are added at a time, and each sum is a term of the next, so that a term passes through fewer
than 450 additions in any array (Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2), and the length
is stretched by half of what these may have lost: 7 u for 9 entries, 85 u = 5e-6 for 50,000, always less than 2^-16.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

UNIT = 2.0**-24
"""u: what one operation in float32 may be off by, relatively."""

_FRACTION, _BIAS = 23, 127
"""Bits of a float32 below those of its exponent, and what is added to that."""

_TERMS = 64
"""How many squares are added one after the other; half a dozen passes of them do for any array."""


def length(vectors: jax.Array) -> jax.Array:
    """An upper bound of each row's length, (rows, …) to (rows,); not finite where an entry is not."""
    return stretched(*balanced(vectors))


def balanced(vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The rows with largest entries in [1/2, 4], or 0, and the powers of two (rows,) to multiply them by; exact."""
    flat = vectors.reshape(vectors.shape[0], -1)
    scale = _power(jnp.max(jnp.abs(flat), axis=1, initial=0))
    # The inverse of a power of two is exact; dividing every entry would be slower.
    return vectors * jnp.expand_dims(1 / scale, range(1, vectors.ndim)), scale


def stretched(rows: jax.Array, scale: jax.Array) -> jax.Array:
    """`length` of what `balanced` gave."""
    squares = jnp.square(rows.reshape(rows.shape[0], -1))
    # Half of what the square may have lost, and two for the root and this product.
    return scale * jnp.sqrt(_sum(squares)) * (1 + (roundings(squares.shape[1]) / 2 + 2) * UNIT)


def roundings(terms: int) -> int:
    """How many roundings a term of `terms` squares has passed through in their sum, its own among them."""
    if terms <= 2 * _TERMS:
        return max(terms, 1)
    return _TERMS + roundings(terms // _TERMS)


def together(lengths: list[jax.Array]) -> jax.Array:
    """sqrt(Σ l²) of lengths of the parts of a vector, to at most (log2(parts)/2 + 2) u."""
    if len(lengths) == 1:
        return lengths[0]
    scale = _power(jnp.stack(lengths).max(0))
    squares = [jnp.square(part * (1 / scale)) for part in lengths]
    while len(squares) > 1:  # two by two, so that many parts lose no more than few
        squares = [sum(squares[i + 1 : i + 2], start=squares[i]) for i in range(0, len(squares), 2)]
    return scale * jnp.sqrt(squares[0])


def _sum(terms: jax.Array) -> jax.Array:
    """Sums of rows (rows, n) in which no term passes through more than `roundings(n)` - 1 additions."""
    rows, count = terms.shape
    if count <= 2 * _TERMS:
        return terms.sum(1)
    many = count // _TERMS
    sums = terms[:, : _TERMS * many].reshape(rows, _TERMS, many).sum(1)
    # The barrier: XLA would make one long sum of two short ones.
    total = _sum(lax.optimization_barrier(sums))
    return total if _TERMS * many == count else total + terms[:, _TERMS * many :].sum(1)


def _power(values: jax.Array) -> jax.Array:
    """A power of two near each value >= 0 that has a float32 inverse; 2 for 0 and for what is not finite."""
    usual = jnp.isfinite(values) & (values > 0)
    # The exponent is read where IEEE 754 has it, which XLA compiles in a fraction of the time of `frexp` and `ldexp`.
    exponent = jnp.where(usual, lax.bitcast_convert_type(values.astype(jnp.float32), jnp.int32) >> _FRACTION, _BIAS)
    return two_to_the(jnp.clip(exponent + 1 - _BIAS, -125, 126)).astype(values.dtype)


def two_to_the(exponent: jax.Array) -> jax.Array:
    """2^e of whole numbers (int32) from -126 to 127, exactly."""
    return lax.bitcast_convert_type((exponent + _BIAS) << _FRACTION, jnp.float32)
