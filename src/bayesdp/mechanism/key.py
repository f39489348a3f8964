"""Where private randomness comes from: the operating system, or a seed, which makes a run reproducible, not private.

"lattice"   a ChaCha20 key of 256 bits, for noise that leaks nothing (H26)
"float"     a Threefry key of 64 bits, for the fast float noise of research
"""

from __future__ import annotations

import secrets
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.extend.random import threefry_2x32

from bayesdp.errors import one_of, refuse
from bayesdp.mechanism import chacha

NoiseKind = Literal["lattice", "float"]
NOISE_KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)

IMPLEMENTATIONS: dict[str, Any] = {"float": "threefry2x32", "lattice": chacha.IMPLEMENTATION}
"""Counter-based generators: the same numbers on every platform and number of devices."""

_WORDS = {"float": 2, "lattice": chacha.WORDS}


def fresh_key(kind: NoiseKind = "float") -> jax.Array:
    """A key with all of its bits drawn from the operating system's generator (house rule 6).

    Nobody can repeat the run, the person who started it included. Threefry is a statistical generator of good
    standing with a 64-bit key, not a cryptographic one; whoever must withstand an adversary who can search 2^64 keys
    takes the kind "lattice".
    """
    words = _WORDS[one_of("kind", kind, NOISE_KINDS)]
    return key_of(np.frombuffer(secrets.token_bytes(4 * words), dtype=np.uint32), kind)


def seeded_key(seed: int, kind: NoiseKind = "float") -> jax.Array:
    """The key of a seed in [0, 2^64): for "float" equal to `jax.random.key(seed)` below 2^32.

    The run is reproducible, **not private**: who knows the seed can subtract the noise. The caller marks the run so.

    Bad input: a seed that is not a whole number in that range gets `InputError`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**64:
        raise refuse("seed", seed, "to be a whole number >= 0 and < 2^64", "Leave it out for a private run.")
    words = np.zeros(_WORDS[one_of("kind", kind, NOISE_KINDS)], np.uint32)
    words[-2:] = int(seed) >> 32, int(seed) & 0xFFFFFFFF
    return key_of(words, kind)


def key_of(words: npt.NDArray[np.uint32], kind: NoiseKind) -> jax.Array:
    """The keys (…,) of words (…, 2) or (…, 8)."""
    key: jax.Array = jax.random.wrap_key_data(jnp.asarray(words), impl=IMPLEMENTATIONS[kind])
    return key


def keys_of_number(key: jax.Array, number: jax.Array | int, count: int) -> jax.Array:
    """`count` keys of a number: of all numbers and places different ones."""
    if is_chacha(key):
        words = chacha.numbered(jax.random.key_data(key), number, count)
        keys: jax.Array = jax.random.wrap_key_data(words, impl=chacha.IMPLEMENTATION)
        return keys
    return jax.random.split(jax.random.fold_in(key, number), count)


def words_and_key(key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """`count` random words, and a key to go on with; `key` is then used up."""
    if is_chacha(key):  # all from one stream, for which XLA compiles one program and not two
        found = chacha.bits(jax.random.key_data(key), chacha.WORDS + count)
        after: jax.Array = jax.random.wrap_key_data(found[: chacha.WORDS], impl=chacha.IMPLEMENTATION)
        return found[chacha.WORDS :], after
    after, now = jax.random.split(key)
    return random_words(now, count), after


def is_chacha(key: jax.Array) -> bool:
    """Whether a key is one of ChaCha20."""
    return jax.random.key_data(key).shape == (chacha.WORDS,)


def random_words(key: jax.Array, count: int) -> jax.Array:
    """`count` random 32-bit words, by the key's own generator, each of its words used once."""
    data = jax.random.key_data(key)
    if is_chacha(key):
        return chacha.bits(data, count)
    # Threefry gives two words for each counter; `jax.random.bits` would use one of them.
    words: jax.Array = threefry_2x32(data, jnp.arange(count + count % 2, dtype=jnp.uint32))[:count]
    return words
