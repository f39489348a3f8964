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

SPLIT, FOLD, BITS, NOISE = 1, 2, 3, 4
"""What a block is for: keys, keys by a number, random bits, noise."""

_CONSTANTS = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], np.uint32)
_ROWS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_TURN = (0, 1, 2, 3, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14)
"""Where the diagonals stand as columns."""
_BACK = tuple(int(i) for i in np.argsort(_TURN))
_AT_ONCE = 2048
"""Blocks at a time: their states stay in the processor's cache."""

Words = list[jax.Array]


def blocks(key: jax.Array, counters: jax.Array, nonce: tuple[Any, Any, Any]) -> jax.Array:
    """The blocks of these counters (n,) as columns, (16, n); `key` (8,), both of uint32."""
    fixed = [*_CONSTANTS, *(key[i] for i in range(WORDS)), None, *nonce]
    first = [
        counters if word is None else jnp.broadcast_to(jnp.asarray(word, jnp.uint32), counters.shape) for word in fixed
    ]

    def two_rounds(_: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        turned = [_columns(list(state))[i] for i in _TURN]
        # The barrier: XLA would work out the first round anew for each word of the second.
        turned = _columns(list(lax.optimization_barrier(tuple(turned))))
        return tuple(turned[i] for i in _BACK)

    last = lax.fori_loop(0, 10, two_rounds, tuple(first))
    return jnp.stack([a + b for a, b in zip(last, first, strict=True)])


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

    return lax.map(some, at_once * jnp.arange(-(-count // max(at_once, 1)), dtype=jnp.uint32))


def bits(key: jax.Array, count: int) -> jax.Array:
    """`count` random words."""
    return stream(key, -(-count // BLOCK), BITS).reshape(-1)[:count]


def _columns(s: Words) -> Words:
    for row in _ROWS:
        for i, word in zip(row, _quarter(*(s[i] for i in row)), strict=True):
            s[i] = word
    return s


def _quarter(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array) -> Words:
    a = a + b
    d = _turned(d ^ a, 16)
    c = c + d
    b = _turned(b ^ c, 12)
    a = a + b
    d = _turned(d ^ a, 8)
    c = c + d
    return [a, _turned(b ^ c, 7), c, d]


def _turned(word: jax.Array, places: int) -> jax.Array:
    return (word << places) | (word >> (32 - places))


def _keys(key: jax.Array, numbers: jax.Array, purpose: int) -> jax.Array:
    return blocks(key, numbers, (purpose, 0, 0))[:WORDS].T


def _seed(seed: jax.Array) -> jax.Array:
    return jnp.zeros(WORDS, jnp.uint32).at[0].set(jnp.asarray(seed).astype(jnp.uint32))


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return _keys(key, jnp.arange(math.prod(shape), dtype=jnp.uint32), SPLIT).reshape(*shape, WORDS)


def _fold_in(key: jax.Array, number: jax.Array) -> jax.Array:
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
