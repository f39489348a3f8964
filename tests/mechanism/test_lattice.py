from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.mechanism import (
    Activation,
    BookKeeping,
    Conv2D,
    Dense,
    Flatten,
    Mean,
    ModelLoss,
    PerExample,
    PrivateStep,
    Sequential,
    fresh_key,
    lattice,
    random_subset,
    record_mesh,
    seeded_key,
    spread,
)
from bayesdp.mechanism.rounded_gaussian import SCALE

RECORDS = 12
MODEL = Sequential((Conv2D(3, 3), Activation("relu"), Flatten(), Dense(9), Activation("tanh"), Dense(4)))
PARAMS = MODEL.init(jax.random.key(0), (6, 5, 1))
PER_UNIT = jnp.float32(SCALE * lattice.SLACK)  # noise as large as the clip norm


def cross_entropy(logits, y):
    return jax.nn.logsumexp(logits) - logits[y]


LOSS = ModelLoss(MODEL, cross_entropy)
ENGINES = {"books": BookKeeping(LOSS), "vmap": PerExample(LOSS, "vmap")}


def people():
    """Ordinary records, and records whose gradients are tiny, huge, or along one weight."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(RECORDS, 6, 5, 1)).astype(np.float32)
    x *= np.geomspace(1e-6, 1e6, RECORDS, dtype=np.float32)[:, None, None, None]
    x[5] = 0
    x[5, 2, 2] = 3e4
    return x, rng.integers(0, 4, RECORDS).astype(np.int32)


def whole(tree):
    return np.concatenate([np.asarray(leaf, np.int64).ravel() for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("engine", ENGINES)
def test_no_record_moves_a_sum_on_the_lattice_by_more_than_the_clip_norm_and_sums_are_exact(engine):
    x, y = people()
    for clip in (1.0, 0.01):
        sums = jax.jit(lambda mask, clip=clip: ENGINES[engine].clip_sum(PARAMS, (x, y), mask, clip, None, PER_UNIT))
        each = [sums(jnp.arange(RECORDS) == i) for i in range(RECORDS)]
        lengths = np.array([np.sqrt(float(np.sum(whole(total).astype(object) ** 2))) for total, _ in each])
        reported = np.array([float(norms.clipped[i]) for i, (_, norms) in enumerate(each)])
        assert (lengths <= SCALE * clip).all()
        assert (lengths <= SCALE * reported).all()
        assert (lengths[-3:] > 0.9 * SCALE * clip).all()  # those that are clipped come close
        together, _ = sums(jnp.ones(RECORDS, bool))
        assert together[0]["kernel"].dtype == jnp.int32
        assert np.array_equal(whole(together), sum(whole(total) for total, _ in each))  # in any order, to the last bit


def test_a_sum_on_the_lattice_is_the_float_sum_with_small_entries_cut_off():
    x, y = people()
    mask = jnp.ones(RECORDS, bool)
    floats, _ = jax.jit(lambda: ENGINES["books"].clip_sum(PARAMS, (x, y), mask, 1.0))()
    cut, _ = jax.jit(lambda: ENGINES["books"].clip_sum(PARAMS, (x, y), mask, 1.0, None, PER_UNIT))()
    for exact, ours in zip(jax.tree.leaves(floats), jax.tree.leaves(cut), strict=True):
        assert np.linalg.norm(ours / SCALE - exact) < 0.02 * np.linalg.norm(exact) + 1e-4


def test_weights_outside_of_the_subset_stay_0():
    x, y = people()
    subset = random_subset(jax.random.key(1), PARAMS, 0.4)
    here = jnp.ones(RECORDS, bool)
    found = jax.jit(lambda: ENGINES["books"].clip_sum(PARAMS, (x, y), here, 1.0, subset, PER_UNIT)[0])()
    chosen = whole(jax.tree.map(lambda leaf: leaf > 0, subset)) > 0
    assert found[0]["kernel"].dtype == jnp.int32
    assert not whole(found)[~chosen].any()
    assert whole(found)[chosen].any()


def test_products_of_whole_numbers_are_exact_for_many_records_and_the_largest_digits():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-300, 301, (700, 5)), rng.integers(-300, 301, (700, 3))
    a[:, 0], b[:, 0] = 2048, 748  # with 700 records the largest: their products add up to nearly 2^30
    a[:256, 1], b[:256, 1] = 2048, 32  # all digits to one side: 2^24 at a time
    a[256:512, 1], b[256:512, 1] = 2047, -31
    for inputs, outputs in ((a, b), (b, a)):
        found = lattice.products(lattice.Factors(jnp.asarray(inputs, jnp.float32), jnp.asarray(outputs, jnp.float32)))
        assert np.array_equal(found, inputs.T @ outputs)


def test_factors_stay_within_what_can_be_added_up_exactly():
    rng = np.random.default_rng(1)
    for records in (16, 160, 256, 700):
        a, g = rng.normal(size=(4, 30)) * [[1], [1e3], [1e-3], [0]], rng.normal(size=(4, 10)) * [[1e6], [1], [1e9], [1]]
        norms = tuple(jnp.asarray(np.linalg.norm(x, axis=1), jnp.float32) for x in (a, g))
        given = (jnp.asarray(x, jnp.float32) for x in (a, g))
        inputs, outputs = lattice.factors_of(*given, norms, jnp.full(4, 20.0), records)
        assert np.abs(inputs).max() * min(records, 256) * 32 <= 2**24
        assert np.abs(outputs).max() <= 2048
        entries = np.einsum("xi,xj->xij", np.asarray(inputs, np.float64), np.asarray(outputs, np.float64))
        exact = np.minimum(1, 2**30 / records / np.maximum(20 * norms[0] * norms[1], 1))[:, None, None]
        wanted = 20 * exact * np.einsum("xi,xj->xij", a, g)
        assert (np.abs(entries) <= np.abs(wanted) * (1 + 2.0**-20)).all()
        kept = np.linalg.norm(entries[:3], axis=(1, 2)) / np.linalg.norm(wanted[:3], axis=(1, 2))
        assert (kept > 0.95).all()


def test_sums_of_microbatches_pass_32_bits():
    more = {"w": jnp.array([2**30, -(2**30), 5], jnp.int32)}
    sums = lattice.zero({"w": jnp.zeros(3)})
    for _ in range(100):
        sums = lattice.plus(sums, more)
    exact = np.asarray(sums["w"].high, np.int64) * 2**15 + np.asarray(sums["w"].low)
    assert exact.tolist() == [100 * 2**30, -100 * 2**30, 500]
    assert np.allclose(lattice.lengths(sums, jnp.float32(0.5))["w"], 0.5 * exact)


def test_the_same_number_is_released_however_its_words_came_about():
    number = lattice.Whole(jnp.array([7, -3]), jnp.array([5, 40_000]))
    other = lattice.Whole(jnp.array([5, -2]), jnp.array([5 + 2 * 2**15, 40_000 - 2**15]))
    assert np.array_equal(lattice.lengths(number, jnp.float32(0.1)), lattice.lengths(other, jnp.float32(0.1)))


def test_so_many_records_fit_into_32_bits_as_the_noise_allows():
    assert lattice.microbatch_for(1.0) > 900
    assert 9 <= lattice.microbatch_for(0.01) <= 10
    with pytest.raises(InputError, match="noise_multiplier"):
        lattice.microbatch_for(1e-4)


def released(kind, data, std, steps, divisor=1.0):
    """So many releases of one number by the real step: a sum of records with noise."""
    mesh = record_mesh()
    records = spread((np.asarray(data, np.float32),), mesh)
    engine = PerExample(lambda w, record: w[0] * record[0], "vmap")
    step = PrivateStep(engine, 1.0, divisor, mesh=mesh, microbatch=len(data), noise=kind)
    key = seeded_key(11, kind)

    def one(number):
        return step(key, number, jnp.zeros(1), records, clip_norm=1.0, noise_std=std)[0][0]

    return np.asarray(jax.jit(partial(jax.lax.map, one))(jnp.arange(steps)))


def possible_in_floats(values, total, std):
    """Whether some float32 normal n gives round(total + std n) = value: the attack on float noise."""
    found = np.zeros(len(values), bool)
    guess = ((values.astype(np.float64) - total) / std).astype(np.float32)
    for direction in (-np.inf, np.inf):
        n = guess.copy()
        for _ in range(64):
            found |= (total + std * n.astype(np.float64)).astype(np.float32) == values
            n = np.nextafter(n, np.float32(direction))
    # Where very many normals lead to one value it is not worth while to look.
    coarse = np.spacing(np.abs(values)) > 32 * std * np.spacing(np.abs(guess))
    return found | coarse


def possible_on_a_lattice(values, total, std):
    """Whether some whole number n within reach gives float(total + n) g = value, `total` a whole number."""
    per_unit = np.asarray(lattice.per_length(std))
    near = np.rint(values.astype(np.float64) * per_unit).astype(np.int64)
    found = np.zeros(len(values), bool)
    for n in range(-4, 5):
        number = near + n
        words = lattice.Whole(jnp.asarray(number >> 15, jnp.int32), jnp.asarray(number & 0x7FFF, jnp.int32))
        same = np.asarray(jax.jit(lattice.lengths)(words, 1 / lattice.per_length(std))) == values
        found |= same & (np.abs(number - total) < 9 * SCALE)
    return found


def test_the_last_bits_of_float_noise_exclude_a_record_and_those_on_the_lattice_never_do():
    """One number is released, the attacker knows all records but one: is it there or not?"""
    count, std = 4000, 1.0
    record = float(np.float32(0.7312))
    absent, present = (released("float", [0.0, last], std, count) for last in (0.0, record))
    assert possible_in_floats(absent, 0.0, std).all()  # the truth is never excluded …
    assert possible_in_floats(present, record, std).all()
    assert possible_in_floats(absent, record, std).mean() < 0.9  # … the other record often, for certain
    unit = int(np.float32(record) * np.asarray(lattice.per_length(std)))
    for last in (0, 1):
        values = released("lattice", [0.0, last * record], std, count)
        assert possible_on_a_lattice(values, last * unit, std).all()
        assert possible_on_a_lattice(values, (1 - last) * unit, std).all()
        # A hypothesis that is not on the lattice would be excluded: the attack can succeed.
        assert not possible_on_a_lattice(values + np.float32(0.4) / np.float32(SCALE), 0, std).all()


def test_the_last_digits_on_the_lattice_are_alike_for_neighbours():
    per_unit = np.asarray(lattice.per_length(1.0), np.float64)
    last = [
        np.rint(released("lattice", [0.3, one], 1.0, 6000) * per_unit).astype(np.int64) % 8 for one in (0.0, 0.7312)
    ]
    counts = [np.bincount(one, minlength=8) for one in last]
    # Floats above 2^24 steps lose last digits by themselves, in either: who guesses by them is right half of the time.
    advantage = np.abs(counts[0] - counts[1]).sum() / (2 * 6000)
    assert advantage < 0.05


def test_the_released_mean_has_the_noise_that_was_asked_for():
    values = released("lattice", [0.5, 0.25, -1.0], 2.0, 6000, divisor=3.0)
    assert abs(values.mean() - (-0.25 / 3)) < 5 * (2 / 3) / np.sqrt(6000)
    assert abs(values.std() - 2 / 3) < 5 * (2 / 3) / np.sqrt(2 * 6000)


def test_the_mean_rule_is_refused():
    with pytest.raises(InputError, match="lattice"):
        PrivateStep(PerExample(lambda w, record: w[0]), 1.0, 1.0, update=Mean(2), noise="lattice")


def test_a_float_key_is_refused():
    mesh = record_mesh()
    step = PrivateStep(PerExample(lambda w, record: w[0] * record[0]), 1.0, 1.0, mesh=mesh, noise="lattice")
    records = spread((np.ones(3, np.float32),), mesh)
    with pytest.raises(InputError, match="ChaCha20"):
        jax.eval_shape(lambda key: step(key, 0, jnp.zeros(1), records, clip_norm=1.0, noise_std=1.0), fresh_key())
