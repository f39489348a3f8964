"""Poisson sampling without a coin per record: the gaps between sampled records, drawn microbatch by microbatch.

With every record in the batch independently with probability q, the number G of records passed over before the next
sampled one is geometric, Pr[G >= k] = (1-q)^k, and gaps are independent. The binary digits of G are independent too,

    Pr[digit j of G is 1] = 1 / (1 + (1-q)^(-2^j)),

because (1-q)^G is a product over the digits of G. So a gap is a handful of coins compared with 32 random bits each: no
logarithm, no rounding of a float that would favour some gaps (in float32, floor(log U / log(1-q)) is off by 0.1 % at
some gaps when q = 1e-4, by 6 % when q = 1e-6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from bayesdp.errors import rate as checked_rate
from bayesdp.errors import whole

Carry = TypeVar("Carry")

MOST_RECORDS = 2**29
"""Positions are 32-bit: a device holds fewer records than this."""


def poisson_fold(
    key: jax.Array,
    body: Callable[[Carry, jax.Array, jax.Array], Carry],
    init: Carry,
    *,
    sampling_rate: float,
    count: jax.Array | int,
    capacity: int,
    microbatch: int,
) -> Carry:
    """Fold `carry = body(carry, indices, mask)` over a Poisson batch of the records 0 … count-1 (A3).

    `indices` and `mask` have shape (microbatch,): where the mask is true, `indices` are the sampled records, each at
    most once and in increasing order; elsewhere they point at some record and must have no effect. The batch may have
    any size: the loop runs until the records are used up, at least once, so nothing is truncated, an empty batch is an
    ordinary one, and one compilation serves all sizes. The size never leaves the device unless `body` carries it out.
    `count` may be traced and is at most `capacity`, the length of the arrays that `indices` point into.

    Guarantee: each record is in with probability `sampling_rate` independently of all others; every coin is right to
    within 2^-33 of its probability (those that decide the last gap are rounded towards not sampling). How long a step
    takes on the wall clock does depend on the batch size.

    Bad input: a rate outside [0, 1], a microbatch below 1 or a capacity of 2^29 records or more get `InputError`.
    """
    q = checked_rate("sampling_rate", sampling_rate)
    microbatch = whole("microbatch", microbatch, least=1)
    capacity = whole("capacity", capacity, least=0, most=MOST_RECORDS - 1)
    coins = gap_coins(q, capacity)
    end = jnp.asarray(0 if q == 0 else count, jnp.int32)

    def unfinished(state: tuple[jax.Array, jax.Array, Carry]) -> jax.Array:
        return state[1] < end

    def draw(state: tuple[jax.Array, jax.Array, Carry]) -> tuple[jax.Array, jax.Array, Carry]:
        key, last, carry = state
        key, now = jax.random.split(key)
        # A sum of gaps could pass 2^31: it is held at the capacity, where there are no records any more.
        ahead = lax.associative_scan(lambda a, b: jnp.minimum(a + b, capacity + 1), 1 + gaps(now, coins, microbatch))
        positions = jnp.minimum(last + ahead, end)
        indices = jnp.minimum(positions, max(capacity - 1, 0))
        return key, positions[-1], body(carry, indices, positions < end)

    return lax.while_loop(unfinished, draw, (key, jnp.int32(-1), init))[2]


def gap_coins(sampling_rate: float, capacity: int) -> npt.NDArray[np.uint32]:
    """2^32 Pr[digit j of G is 1] for the digits below 2^K > capacity, and last 2^32 Pr[G >= 2^K], rounded up."""
    digits = max(capacity, 1).bit_length()
    hazard = -math.log1p(-sampling_rate) if sampling_rate < 1 else math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(hazard * 2.0 ** np.arange(digits))
    chances = np.append(np.rint(2**32 / (1 + odds)), math.ceil(2**32 * math.exp(-hazard * 2.0**digits)))
    result: npt.NDArray[np.uint32] = np.minimum(chances, 2**32 - 1).astype(np.uint32)
    return result


def gaps(key: jax.Array, coins: npt.NDArray[np.uint32], shape: int) -> jax.Array:
    """`shape` independent geometric gaps from the coins of `gap_coins`; those beyond the last digit count as 2^K."""
    heads = jax.random.bits(key, (shape, len(coins)), jnp.uint32) < coins
    worth = np.int32(1) << np.arange(len(coins), dtype=np.int32)
    below = jnp.sum(jnp.where(heads[:, :-1], worth[:-1], 0), axis=1, dtype=jnp.int32)
    return jnp.where(heads[:, -1], worth[-1], below)
