"""ChaCha20 in XLA: the stream cipher of RFC 8439 as a generator of random words, and of keys from a key.

    block(key, counter, nonce) = 16 words; 20 rounds of additions, rotations and exclusive ors over (constants, key, …)

Who does not know the 256 bits of the key cannot tell the words from fair coins, as far as anybody knows; nothing looks
at their values, so that time says nothing of them. The first word of the nonce says what the words are for: no two
purposes share any. JAX takes it as a kind of key of its own (`IMPLEMENTATION`), for `split`, `fold_in` and `bits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl

WORDS = 8
"""32-bit words of a key."""

BLOCK = 16
"""Words of a block."""

SPLIT, FOLD, BITS, NOISE, NUMBERED = 1, 2, 3, 4, 5
"""What a block is for: keys, keys by a number, random bits, noise, several keys by a number."""

_CONSTANTS = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], np.uint32)
_AT_ONCE = 2048
"""Blocks at a time: their states stay in the processor's cache."""

State = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
"""The four rows of the state, each (4, n)."""


def blocks(key: jax.Array, counters: jax.Array, nonce: tuple[Any, Any, Any]) -> jax.Array:
    """The blocks of these counters (n,) as columns, (16, n); `key` (8,), both of uint32."""
    last_row = jnp.stack([jnp.uint32(0), *(jnp.asarray(word).astype(jnp.uint32) for word in nonce)])
    column = jnp.concatenate([_CONSTANTS, key, last_row])
    first = jnp.broadcast_to(column[:, None], (BLOCK, counters.shape[0])).at[12].set(counters)

    def one_round(i: jax.Array, state: State) -> State:
        # Rounds of columns and of diagonals take turns: the rows are turned so that either are columns.
        a, b, c, d = _quarter(state)
        there = 1 + 2 * (i % 2)
        return a, _turn(b, there), jnp.concatenate([c[2:], c[:2]]), _turn(d, 4 - there)

    rows = first.reshape(4, 4, -1)
    last = lax.fori_loop(0, 20, one_round, (rows[0], rows[1], rows[2], rows[3]))
    return jnp.concatenate(last) + first


def stream(
    key: jax.Array,
    count: int,
    purpose: int,
    part: jax.Array | int = 0,
    make: Callable[[jax.Array], jax.Array] = lambda words: words,
) -> jax.Array:
    """At least `count` blocks from counter 0 on, some at a time: what `make` makes of (16, n), one after the other.

    `part` tells apart those who share a key.
    """
    at_once = min(count, _AT_ONCE)

    def some(start: jax.Array) -> jax.Array:
        return make(blocks(key, start + jnp.arange(at_once, dtype=jnp.uint32), (purpose, part, 0)))

    made: jax.Array = lax.map(some, at_once * jnp.arange(-(-count // max(at_once, 1)), dtype=jnp.uint32))
    return made


def bits(key: jax.Array, count: int) -> jax.Array:
    """`count` random words."""
    return stream(key, -(-count // BLOCK), BITS).reshape(-1)[:count]


def _quarter(state: State) -> State:
    a, b, c, d = state
    a = a + b
    d = _rotated(d ^ a, 16)
    c = c + d
    b = _rotated(b ^ c, 12)
    a = a + b
    d = _rotated(d ^ a, 8)
    c = c + d
    return a, _rotated(b ^ c, 7), c, d


def _rotated(word: jax.Array, places: int) -> jax.Array:
    return (word << places) | (word >> (32 - places))


def _turn(row: jax.Array, places: jax.Array) -> jax.Array:
    """Four words moved on by so many places, which XLA compiles faster than a branch."""
    return lax.dynamic_slice_in_dim(jnp.concatenate([row, row]), places, 4)


def numbered(key: jax.Array, number: jax.Array | int, count: int) -> jax.Array:
    """`count` keys (count, 8) of a number, in one go."""
    return blocks(key, jnp.arange(count, dtype=jnp.uint32), (NUMBERED, number, 0))[:WORDS].T


def _keys(key: jax.Array, numbers: jax.Array, purpose: int) -> jax.Array:
    return blocks(key, numbers, (purpose, 0, 0))[:WORDS].T


def _seed(seed: jax.Array) -> jax.Array:
    return jnp.zeros(WORDS, jnp.uint32).at[0].set(jnp.asarray(seed).astype(jnp.uint32))


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return _keys(key, jnp.arange(math.prod(shape), dtype=jnp.uint32), SPLIT).reshape(*shape, WORDS)


def _fold_in(key: jax.Array, number: jax.Array | int) -> jax.Array:
    return _keys(key, jnp.asarray(number).astype(jnp.uint32)[None], FOLD)[0]


def _random_bits(key: jax.Array, width: int, shape: tuple[int, ...]) -> jax.Array:
    size = math.prod(shape)
    if width == 64:
        words = bits(key, 2 * size).astype(jnp.uint64)
        return ((words[:size] << 32) | words[size:]).reshape(shape)
    return bits(key, size).astype(jnp.dtype(f"uint{width}")).reshape(shape)


IMPLEMENTATION = define_prng_impl(
    key_shape=(WORDS,), seed=_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in, name="chacha20", tag="cc"
)
"""The kind of key: `jax.random.wrap_key_data(words, impl=IMPLEMENTATION)`."""
