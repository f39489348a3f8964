"""Poisson sampling without a coin per record: the gaps between sampled records, drawn microbatch by microbatch.

With every record in the batch independently with probability q, the number G of records passed over before the next
sampled one is geometric, Pr[G >= k] = (1-q)^k, and gaps are independent. The digits of G to any base b are independent
too, because (1-q)^G is a product over them: digit j is a geometric number below b with 1-q to the power b^j,

    Pr[digit j >= m] = (w^m - w^b) / (1 - w^b),    w = (1-q)^(b^j).

So a gap is a few hexadecimal digits, each 32 random bits compared with fifteen numbers: no logarithm, no rounding of a
float that would favour some gaps (in float32, floor(log U / log(1-q)) is off by 0.1 % at some gaps when q = 1e-4, by
6 % when q = 1e-6).

What is rounded are the chances of digits, to 2^-32. The last digit's are the smallest: below 16^J <= capacity a gap has
its last digit in any one place with a chance of about q 16^J, so that a record is in with a chance of

    q (1 ± r),    r <= 2^-32 / (q 16^J) + (J+1) 2^-28.

Rates so small that the first term passes 1e-6 are refused: at q = 1e-15 the first of 1,000 records would be taken 909
times too often. No batch that is worth taking is near that: q times the records would be below 0.004.
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

from bayesdp.errors import rate as checked_rate
from bayesdp.errors import refuse, whole
from bayesdp.mechanism.key import words_and_key

Carry = TypeVar("Carry")

RATE_ERROR = 1e-6
"""How far a record's chance may be off, as a share of it, for the rounding of the last digit."""

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
    """Fold `carry = body(carry, indices, mask)` over a Poisson batch of the records 0 … count-1.

    `indices` and `mask` have shape (microbatch,): where the mask is true, `indices` are the sampled records, each at
    most once and in increasing order; elsewhere they point at some record and must have no effect. The batch may have
    any size: the loop runs until the records are used up, at least once, so nothing is truncated, an empty batch is an
    ordinary one, and one compilation serves all sizes. The size never leaves the device unless `body` carries it out.
    `count` may be traced and is at most `capacity`, the length of the arrays that `indices` point into. With several
    rates, `phase`, which may be traced, says which of them it is. After `poisson_first` the fold goes on with its key
    behind its `last` record.

    Guarantee: each record is in with probability `sampling_rate`, to 2e-6 of it, independently of all others; every
    digit's chances are right to within 2^-32 (those that decide the last gap are rounded towards not sampling). How
    long a step takes on the wall clock does depend on the batch size.

    Bad input: a rate outside [0, 1] or too small for the capacity (`drawable`), a microbatch below 1 or a capacity of
    2^29 records or more get `InputError`.
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
    draw, end = _drawing(sampling_rate, count, capacity, microbatch, phase, side_by_side=True)
    key, positions, indices = draw(key, jnp.int32(-1))
    return First(indices, positions < end, key, positions[-1])


def _drawing(
    sampling_rate: float | tuple[float, ...],
    count: jax.Array | int,
    capacity: int,
    microbatch: int,
    phase: jax.Array | int,
    *,
    side_by_side: bool = False,
) -> tuple[Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]], jax.Array]:
    """draw(key, last) → next key, positions, indices; and the position where records end.

    `side_by_side`: many are drawn at once, under `vmap`.
    """
    microbatch = whole("microbatch", microbatch, least=1)
    capacity = whole("capacity", capacity, least=0, most=MOST_RECORDS - 1)
    rates = [drawable("sampling_rate", q, capacity) for q in np.atleast_1d(sampling_rate)]
    table = pick([gap_table(q, capacity) for q in rates], phase)
    end: jax.Array = pick([np.int32(q > 0) for q in rates], phase) * jnp.asarray(count, jnp.int32)

    def add(a: jax.Array, b: jax.Array) -> jax.Array:
        # A sum of gaps could pass 2^31: it is held at the capacity, where there are no records any more.
        return jnp.minimum(a + b, capacity + 1)

    def draw(key: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        words, key = words_and_key(key, len(table) * microbatch)
        ahead = (_running if side_by_side else lax.associative_scan)(add, 1 + gaps(words, table))
        positions = jnp.minimum(last + ahead, end)
        return key, positions, jnp.minimum(positions, max(capacity - 1, 0))

    return draw, end


def _running(add: Callable[[jax.Array, jax.Array], jax.Array], values: jax.Array) -> jax.Array:
    """What `lax.associative_scan` gives, one value after the other, which is fast for many sums side by side.

    A loop's result is also kept: that of an associative scan would be worked out anew for every number that is fetched.
    """

    def one(total: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = add(total, value)
        return total, total

    return lax.scan(one, jnp.zeros_like(values[0]), values)[1]


def pick(values: Sequence[Any], phase: jax.Array | int) -> Any:
    """The value of a phase, which may be traced; the only one, as it is, where there is one."""
    return values[0] if len(values) == 1 else jnp.asarray(np.stack(values))[phase]


def drawable(name: str, rate: Any, capacity: int = MOST_RECORDS - 1) -> float:
    """A rate that gaps of 32-bit chances can follow, to `RATE_ERROR` of it; by default for as many records as can be.

    Bad input: a rate outside [0, 1], or too small for so many records.
    """
    q = checked_rate(name, rate)
    least = 2.0**-32 / (RATE_ERROR * 2.0 ** (DIGIT * _last_digit(capacity)))
    if 0 < q < least:
        raise refuse(
            name,
            rate,
            f"to be at least {least:.2g} for {capacity:,} records on a device",
            f"Below that, a record's chance is off by more than {RATE_ERROR:g} of it (chances have 32 bits), here by "
            f"up to {RATE_ERROR * least / q:.2g}. Take larger batches in fewer steps.",
        )
    return q


def _last_digit(capacity: int) -> int:
    return (max(capacity, 1).bit_length() - 1) // DIGIT


def gap_table(sampling_rate: float, capacity: int) -> npt.NDArray[np.uint32]:
    """2^32 Pr[digit j >= m], a row for each digit and a column for each m = 1 … 16, rounded to the nearest.

    The last digit is not bounded: what reaches its top counts as 2^K > capacity, which ends a batch, and its numbers
    are rounded up. A column that a digit does not reach is 0.
    """
    bits = max(capacity, 1).bit_length()
    widths = [DIGIT] * _last_digit(capacity) + [(bits - 1) % DIGIT + 1]
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


def gaps(words: jax.Array, table: npt.NDArray[np.uint32] | jax.Array) -> jax.Array:
    """Independent geometric gaps from a `gap_table` and as many random words for each as it has digits; those beyond
    the last digit count as 2^K.
    """
    digits = len(table)
    words = words.reshape(digits, -1)
    # Column by column: a sum over the table's short last axis would not be vectorised.
    passed = [(words < table[:, m, None]).astype(jnp.int32) for m in range(2**DIGIT)]
    reached = sum(passed[1:], start=passed[0])
    return jnp.sum(reached << (DIGIT * np.arange(digits, dtype=np.int32))[:, None], axis=0, dtype=jnp.int32)
