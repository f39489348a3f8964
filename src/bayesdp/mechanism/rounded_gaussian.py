"""Whole numbers with the law of a rounded Gaussian, Z = round(s N), from random bits by inverse distribution functions.

    Z = X + k Y,    X = round(s₁ N),    Pr[Y = j] ∝ e^{−j²/2s₂²},    s² = s₁² + k² s₂²

With s₁ > 2k the sum is round(s N) to 2^-122 (Poisson's summation formula, H26), so that s is a million though X and Y
are looked up in tables of 15,600 rows. Four draws take one block of ChaCha20: for X and for Y a sign and 55 bits each,
compared with the 119-bit chance of the row that a float32 quantile points at, and with the last 64 bits of that chance
two words for all eight. These decide only where the 55 bits are those of a row (chance 2^-41): that two of eight ask
for them is the largest part of `DISTANCE`. No draw is rejected and no loop depends on a value.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.convert import DRAWN
from bayesdp.errors import refuse
from bayesdp.mechanism import chacha

SMALL, STEP = 1500, 720
"""s₁ = s₂, and k."""

SCALE = SMALL * math.sqrt(1 + STEP**2)
"""s, the standard deviation before rounding: 1,080,000.7."""

DISTANCE = DRAWN
"""Total variation between one draw and round(s N): a bound (H26)."""

_ROWS = 15600
"""Rows of a table: |X| is below so many, 10.4 standard deviations."""
_DRAWS = 4
"""Draws from a block."""
_TOP, _MIDDLE, _LAST = 31, 24, 64
"""Bits of a chance, from the left: of the first word beside its sign, of three bytes, of the shared words."""
_BITS = _TOP + _MIDDLE + _LAST
_DIGITS = 45

# x ≈ P(t)/Q(t) where Pr[|N| > x] = e^{−t²/2}: within 1e-5 up to 12.6 (least squares); half a row is 3e-4.
_P = (0.0, -0.0004118888815974313, 0.6317863507207018, 0.7857113244962198, 0.6596749353682791, 0.16197463906238146)
_Q = (1.0, 1.2909824822657663, 1.22047728167454, 0.6737402415310122, 0.1615687272992203, 6.742062057307763e-06)

Chances = list[int]


class Bits(NamedTuple):
    """A random whole number below 2^119 by its parts, each of shape (…): 31, 24, 32 and 32 bits."""

    top: jax.Array
    middle: jax.Array
    last: jax.Array
    very_last: jax.Array


def rounded_gaussians(key: jax.Array, count: int, part: jax.Array | int = 0) -> jax.Array:
    """`count` independent draws of round(s N), s = `SCALE`, as int32; `part` tells apart devices that share a key.

    Guarantee: all together are within `count` · `DISTANCE` of exact draws, in total variation, if the words of ChaCha20
    are fair coins. Bad input: a key of another kind gets `InputError`.
    """
    words = jax.random.key_data(key)
    if words.shape != (chacha.WORDS,):
        raise refuse("key", words.shape, "to be one of ChaCha20", 'Make it with fresh_key("lattice").', got="another")
    found = chacha.stream(words, -(-count // _DRAWS), chacha.NOISE, part, _draws)
    return found.reshape(-1)[:count]


def _draws(block: jax.Array) -> jax.Array:
    """The draws of blocks (16, n), (4, n): words 0-3 begin X, 4-7 Y; 8-11 have two bytes for each, 12 and 13 one."""
    extra, shifts = block[8:12], 8 * np.arange(_DRAWS, dtype=np.uint32)[:, None]
    more = [(word[None] >> shifts) & 0xFF for word in (block[12], block[13])]
    shared = [jnp.broadcast_to(word, extra.shape) for word in (block[14], block[15])]
    fine = _signed(block[:4], ((extra >> 16) << 8) | more[0], shared, "rounded")
    coarse = _signed(block[4:8], ((extra & 0xFFFF) << 8) | more[1], shared, "discrete")
    return fine + STEP * coarse


def _signed(first: jax.Array, middle: jax.Array, shared: list[jax.Array], law: str) -> jax.Array:
    size = magnitude(Bits(first & 0x7FFFFFFF, middle, *shared), law)
    return jnp.where(first >> _TOP, -size, size)


def magnitude(bits: Bits, law: str) -> jax.Array:
    """How many of a table's chances are at most the number of these bits: |X| or |Y|."""
    row = jnp.minimum(_quantile(bits).astype(jnp.int32), _ROWS - 1)
    below = jnp.zeros(row.shape, bool)
    for own, column in reversed(list(zip(bits, table(law), strict=True))):
        chance = jnp.asarray(column)[row]
        below = (own < chance) | ((own == chance) & below)
    return row + jnp.where(below, 0, 1)


def _quantile(bits: Bits) -> jax.Array:
    """s₁ x with Pr[|N| > x] what is left of 2^119 above the bits, as a share: to a hundredth, also far out."""
    top, middle, last = ~bits.top & 0x7FFFFFFF, ~bits.middle & 0xFFFFFF, ~bits.last
    # In halves of words, which can be taken as signed ones: that is faster.
    tiny = _float(last >> 16) + 2.0**-16 * (_float(last & 0xFFFF) + 2.0**-16 * _float(~bits.very_last >> 16))
    small = 2.0 ** -(_TOP + _MIDDLE) * (_float(middle) + 2.0**-16 * tiny)
    left = jnp.clip(_float(top) * 2.0**-_TOP + small, 2.0**-99, 1)  # beyond the last row, and not 0
    t = jnp.sqrt(-2 * jnp.log(left))
    return SMALL * jnp.maximum(_polynomial(_P, t) / _polynomial(_Q, t), 0)


def _float(word: jax.Array) -> jax.Array:
    return word.astype(jnp.int32).astype(jnp.float32)


def _polynomial(coefficients: tuple[float, ...], t: jax.Array) -> jax.Array:
    total = jnp.full_like(t, coefficients[-1])
    for one in coefficients[-2::-1]:
        total = total * t + one
    return total


@lru_cache
def table(law: str) -> tuple[npt.NDArray[np.uint32], ...]:
    """`chances` by their parts, as `Bits` has them."""
    return tuple(np.array(part, np.uint32) for part in zip(*map(parts_of, chances(law)), strict=True))


def parts_of(number: int) -> tuple[int, int, int, int]:
    """A number of at most 119 bits by its parts, as `Bits` has them; 2^119 passes all."""
    return number >> 88, (number >> 64) & 0xFFFFFF, (number >> 32) & 0xFFFFFFFF, number & 0xFFFFFFFF


def chances(law: str) -> Chances:
    """2^119 Pr[|X| <= m] for m = 0 … 15,599, rounded to the nearest, of the "rounded" or the "discrete" law.

    A rounded law's chance is that of the discrete one times Taylor's series of the density around the middle of its
    cell, of which less than 2^-120 is left out. The last row takes all that is further out.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        square = Decimal(SMALL) ** 2
        once = (-1 / (2 * square)).exp()
        weight, ratio, twice = Decimal(1), once, once * once
        total, sums = Decimal(0), []
        for m in range(15 * SMALL):  # further out there is less than 2^-160
            own = weight * (_cell(Decimal(m) ** 2 / square, square) if law == "rounded" else 1)
            total += own if m == 0 else 2 * own
            sums.append(total)
            weight, ratio = weight * ratio, ratio * twice
        return [int((2**_BITS * one / total).to_integral_value()) for one in sums[: _ROWS - 1]] + [2**_BITS]


def _cell(x2: Decimal, square: Decimal) -> Decimal:
    """∫ φ over a cell of width 1 / φ in its middle x: Σ He_2j(x) / (s^2j 4^j (2j+1)!)."""
    hermite = (
        x2 - 1,
        x2**2 - 6 * x2 + 3,
        x2**3 - 15 * x2**2 + 45 * x2 - 15,
        x2**4 - 28 * x2**3 + 210 * x2**2 - 420 * x2 + 105,
        x2**5 - 45 * x2**4 + 630 * x2**3 - 3150 * x2**2 + 4725 * x2 - 945,
    )
    terms = (he / ((4 * square) ** j * math.factorial(2 * j + 1)) for j, he in enumerate(hermite, 1))
    return 1 + sum(terms, start=Decimal(0))
