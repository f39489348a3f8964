import jax
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.mechanism import fresh_key, seeded_key


def words(key):
    return np.asarray(jax.random.key_data(key))


def test_a_fresh_key_has_all_its_bits_from_the_system():
    bits = np.array([np.unpackbits(words(fresh_key()).view(np.uint8)) for _ in range(200)])
    assert bits.shape[1] == 64
    assert np.all((bits.mean(0) > 0.25) & (bits.mean(0) < 0.75))  # no bit is stuck: 7 standard errors


def test_a_seed_gives_the_key_that_jax_gives():
    assert np.array_equal(words(seeded_key(7)), words(jax.random.key(7)))


def test_large_seeds_differ_in_their_upper_half():
    assert not np.array_equal(words(seeded_key(5)), words(seeded_key(5 + 2**32)))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", True, None])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(InputError, match="seed"):
        seeded_key(seed)
