"""Where private randomness comes from: the operating system, or a seed, which makes a run reproducible, not private."""

from __future__ import annotations

import secrets

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.errors import refuse

IMPLEMENTATION = "threefry2x32"
"""JAX's counter-based generator: the same numbers on every platform and number of devices."""

_WORDS = 2  # a Threefry key is two 32-bit words


def fresh_key() -> jax.Array:
    """A key with all of its 64 bits drawn from the operating system's generator (house rule 6).

    Nobody can repeat the run, the person who started it included. Threefry is a statistical generator of good
    standing with a 64-bit key, not a certified cryptographic one; whoever must withstand an adversary who can search
    2^64 keys should say so in the report.
    """
    return _key(np.frombuffer(secrets.token_bytes(4 * _WORDS), dtype=np.uint32))


def seeded_key(seed: int) -> jax.Array:
    """The key of a seed in [0, 2^64): equal to `jax.random.key(seed)` below 2^32.

    The run is reproducible, **not private**: who knows the seed can subtract the noise. The caller marks the run so.

    Bad input: a seed that is not a whole number in that range gets `InputError`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**64:
        raise refuse("seed", seed, "to be a whole number >= 0 and < 2^64", "Leave it out for a private run.")
    return _key(np.array([int(seed) >> 32, int(seed) & 0xFFFFFFFF], dtype=np.uint32))


def _key(words: npt.NDArray[np.uint32]) -> jax.Array:
    key: jax.Array = jax.random.wrap_key_data(jnp.asarray(words), impl=IMPLEMENTATION)
    return key
