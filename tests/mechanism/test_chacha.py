import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.mechanism import chacha, fresh_key, seeded_key
from bayesdp.mechanism.key import key_of, keys_of_number, words_and_key


def words(text):
    return np.frombuffer(bytes.fromhex(text), "<u4")


def stream_of(key, counter, nonce, count=1):
    nonce_words = tuple(np.frombuffer(nonce, "<u4"))
    counters = jnp.arange(counter, counter + count, dtype=jnp.uint32)
    found = jax.jit(lambda key: chacha.blocks(key, counters, nonce_words))(jnp.asarray(key))
    return np.asarray(found).T.astype("<u4").tobytes().hex()


ASCENDING = np.frombuffer(bytes(range(32)), "<u4")


def test_blocks_are_those_of_rfc_8439():
    """Sections 2.3.2 and 2.4.2, and vectors 1, 2, 3 and 4 of appendix A.1."""
    assert stream_of(ASCENDING, 1, bytes.fromhex("000000090000004a00000000")) == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert stream_of(ASCENDING, 1, bytes.fromhex("000000000000004a00000000"), 2).startswith(
        "224f51f3401bd9e12fde276fb8631ded8c131f823d2c06e27e4fcaec9ef3cf78"
    )
    nothing = np.zeros(8, np.uint32)
    assert stream_of(nothing, 0, bytes(12), 2) == (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )
    one = np.frombuffer(bytes(31) + b"\x01", "<u4")
    assert stream_of(one, 1, bytes(12)).startswith("3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a")


def test_a_long_stream_is_its_blocks_one_after_the_other():
    count = chacha._AT_ONCE + 7
    found = jax.jit(lambda key: chacha.stream(key, count, chacha.NOISE, 3))(jnp.asarray(ASCENDING))
    for i in (0, chacha._AT_ONCE - 1, chacha._AT_ONCE, count - 1):
        alone = chacha.blocks(jnp.asarray(ASCENDING), jnp.array([i], jnp.uint32), (chacha.NOISE, 3, 0))[:, 0]
        assert np.array_equal(found[i // chacha._AT_ONCE, :, i % chacha._AT_ONCE], alone)


def test_keys_for_different_purposes_numbers_and_devices_have_nothing_in_common():
    key = fresh_key("lattice")
    data = jax.random.key_data
    made = [
        *data(jax.random.split(key, 4)),
        *(data(jax.random.fold_in(key, i)) for i in range(4)),
        *(one for i in range(4) for one in data(keys_of_number(key, i, 4))),
        *np.asarray(chacha.bits(data(key), 64)).reshape(8, 8),
        *(np.asarray(chacha.stream(data(key), 1, chacha.NOISE, part)).ravel()[:8] for part in range(4)),
        data(key),
    ]
    assert len({np.asarray(one).tobytes() for one in made}) == len(made)
    more, after = words_and_key(key, 40)
    assert not np.isin(np.asarray(more), np.asarray(data(after))).any()


def test_jax_draws_with_such_keys_alone_and_side_by_side():
    key = seeded_key(3, "lattice")
    together = jax.vmap(lambda one: jax.random.normal(one, (5,)))(jax.random.split(key, 3))
    assert np.array_equal(together[1], jax.random.normal(jax.random.split(key, 3)[1], (5,)))
    drawn = np.asarray(jax.random.normal(key, (20_000,)))
    assert abs(drawn.mean()) < 5 / np.sqrt(20_000)
    assert abs(drawn.std() - 1) < 0.03


def test_a_fresh_key_has_256_bits_from_the_system():
    data = np.array([np.asarray(jax.random.key_data(fresh_key("lattice"))) for _ in range(200)])
    bits = np.unpackbits(data.view(np.uint8), axis=1)
    assert bits.shape[1] == 256
    assert np.all((bits.mean(0) > 0.2) & (bits.mean(0) < 0.8))
    assert np.array_equal(jax.random.key_data(key_of(data, "lattice")), data)
