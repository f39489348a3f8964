"""Poisson sampling without a coin per record: the gaps between sampled records, drawn microbatch by microbatch.

With every record in the batch independently with probability q, the number G of records passed over before the next
sampled one is geometric, Pr[G >= k] = (1-q)^k, and gaps are independent. The digits of G to any base b are independent
too, because (1-q)^G is a product over them: digit j is a geometric number below b with 1-q to the power b^j,

    Pr[digit j >= m] = (w^m - w^b) / (1 - w^b),    w = (1-q)^(b^j).

So a gap is a few hexadecimal digits, each 32 random bits compared with fifteen numbers: no logarithm, no rounding of a
float that would favour some gaps (in float32, floor(log U / log(1-q)) is off by 0.1 % at some gaps when q = 1e-4, by
6 % when q = 1e-6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax
from jax.extend.random import threefry_2x32

from bayesdp.errors import rate as checked_rate
from bayesdp.errors import whole

Carry = TypeVar("Carry")

DIGIT = 4
"""Bits of a digit of a gap: more take fewer random words, and more comparisons."""

MOST_RECORDS = 2**29
"""Positions are 32-bit: a device holds fewer records than this."""


def poisson_fold(
    key: jax.Array,
    body: Callable[[Carry, jax.Array, jax.Array], Carry],
    init: Carry,
    *,
    sampling_rate: float | tuple[float, ...],
    count: jax.Array | int,
    capacity: int,
    microbatch: int,
    phase: jax.Array | int = 0,
    last: jax.Array | int = -1,
) -> Carry:
    """Fold `carry = body(carry, indices, mask)` over a Poisson batch of the records 0 … count-1 (A3).

    `indices` and `mask` have shape (microbatch,): where the mask is true, `indices` are the sampled records, each at
    most once and in increasing order; elsewhere they point at some record and must have no effect. The batch may have
    any size: the loop runs until the records are used up, at least once, so nothing is truncated, an empty batch is an
    ordinary one, and one compilation serves all sizes. The size never leaves the device unless `body` carries it out.
    `count` may be traced and is at most `capacity`, the length of the arrays that `indices` point into. With several
    rates, `phase`, which may be traced, says which of them it is. After `poisson_first` the fold goes on with its key
    behind its `last` record.

    Guarantee: each record is in with probability `sampling_rate` independently of all others; every digit's chances are
    right to within 2^-32 (those that decide the last gap are rounded towards not sampling). How long a step
    takes on the wall clock does depend on the batch size.

    Bad input: a rate outside [0, 1], a microbatch below 1 or a capacity of 2^29 records or more get `InputError`.
    """
    draw, end = _drawing(sampling_rate, count, capacity, microbatch, phase)

    def unfinished(state: tuple[jax.Array, jax.Array, Carry]) -> jax.Array:
        return jnp.asarray(state[1] < end)

    def fold(state: tuple[jax.Array, jax.Array, Carry]) -> tuple[jax.Array, jax.Array, Carry]:
        key, last, carry = state
        key, positions, indices = draw(key, last)
        return key, positions[-1], body(carry, indices, positions < end)

    return lax.while_loop(unfinished, fold, (key, jnp.asarray(last, jnp.int32), init))[2]


class First(NamedTuple):
    """The first microbatch of a Poisson batch, and the key and the last record to go on with."""

    indices: jax.Array
    mask: jax.Array
    key: jax.Array
    last: jax.Array


def poisson_first(
    key: jax.Array,
    *,
    sampling_rate: float | tuple[float, ...],
    count: jax.Array | int,
    capacity: int,
    microbatch: int,
    phase: jax.Array | int = 0,
) -> First:
    """What `poisson_fold` draws first: with its rest it is the same batch. It can be drawn for many steps at once."""
    draw, end = _drawing(sampling_rate, count, capacity, microbatch, phase)
    key, positions, indices = draw(key, jnp.int32(-1))
    return First(indices, positions < end, key, positions[-1])


def _drawing(
    sampling_rate: float | tuple[float, ...],
    count: jax.Array | int,
    capacity: int,
    microbatch: int,
    phase: jax.Array | int,
) -> tuple[Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]], jax.Array]:
    """draw(key, last) → next key, positions, indices; and the position where records end."""
    rates = [checked_rate("sampling_rate", q) for q in np.atleast_1d(sampling_rate)]
    microbatch = whole("microbatch", microbatch, least=1)
    capacity = whole("capacity", capacity, least=0, most=MOST_RECORDS - 1)
    table = pick([gap_table(q, capacity) for q in rates], phase)
    end: jax.Array = pick([np.int32(q > 0) for q in rates], phase) * jnp.asarray(count, jnp.int32)

    def draw(key: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        key, now = jax.random.split(key)
        # A sum of gaps could pass 2^31: it is held at the capacity, where there are no records any more.
        ahead = lax.associative_scan(lambda a, b: jnp.minimum(a + b, capacity + 1), 1 + gaps(now, table, microbatch))
        positions = jnp.minimum(last + ahead, end)
        return key, positions, jnp.minimum(positions, max(capacity - 1, 0))

    return draw, end


def pick(values: Sequence[Any], phase: jax.Array | int) -> Any:
    """The value of a phase, which may be traced; the only one, as it is, where there is one."""
    return values[0] if len(values) == 1 else jnp.asarray(np.stack(values))[phase]


def gap_table(sampling_rate: float, capacity: int) -> npt.NDArray[np.uint32]:
    """2^32 Pr[digit j >= m], a row for each digit and a column for each m = 1 … 16, rounded to the nearest.

    The last digit is not bounded: what reaches its top counts as 2^K > capacity, which ends a batch, and its numbers
    are rounded up. A column that a digit does not reach is 0.
    """
    bits = max(capacity, 1).bit_length()
    widths = [DIGIT] * ((bits - 1) // DIGIT) + [(bits - 1) % DIGIT + 1]
    hazard = -math.log1p(-sampling_rate) if sampling_rate < 1 else math.inf
    table = np.zeros((len(widths), 2**DIGIT), np.uint32)
    for j, width in enumerate(widths):
        last, base = j == len(widths) - 1, 2**width
        m = np.arange(1, base + last)
        exponent = hazard * 2.0 ** (DIGIT * j)
        chances = 2.0**32 * np.exp(-exponent * m)
        if not last and sampling_rate > 0:
            chances *= np.expm1(-exponent * (base - m)) / np.expm1(-exponent * base)
        table[j, : len(m)] = np.minimum(np.ceil(chances) if last else np.rint(chances), 2**32 - 1)
    return table


def gaps(key: jax.Array, table: npt.NDArray[np.uint32] | jax.Array, shape: int) -> jax.Array:
    """`shape` independent geometric gaps from a `gap_table`; those beyond the last digit count as 2^K."""
    digits = len(table)
    half = (digits * shape + 1) // 2
    # Threefry gives two words for each counter; `jax.random.bits` would use one of them.
    words = threefry_2x32(jax.random.key_data(key), jnp.arange(2 * half, dtype=jnp.uint32))
    words = words[: digits * shape].reshape(digits, shape, 1)
    reached = jnp.sum(words < table[:, None, :], axis=-1, dtype=jnp.int32)
    return jnp.sum(reached << (DIGIT * np.arange(digits, dtype=np.int32))[:, None], axis=0, dtype=jnp.int32)
