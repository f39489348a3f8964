from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayesdp import InputError
from bayesdp.mechanism import poisson_fold
from bayesdp.mechanism.key import random_words
from bayesdp.mechanism.sampling import drawable, gap_table, gaps


def counts_of(key, rate, count, capacity, microbatch):
    """How often each record was taken."""

    def add(taken, indices, mask):
        return taken.at[indices].add(mask.astype(jnp.int32))

    init = jnp.zeros(capacity, jnp.int32)
    return poisson_fold(key, add, init, sampling_rate=rate, count=count, capacity=capacity, microbatch=microbatch)


@cache
def batches(rate, records=40, runs=20_000, microbatch=4):
    draw = jax.jit(jax.vmap(partial(counts_of, rate=rate, count=records, capacity=records, microbatch=microbatch)))
    return np.asarray(draw(jax.random.split(jax.random.key(0), runs)))


@pytest.mark.parametrize("rate", [0.5, 0.04, 1e-3, 1e-6])
def test_the_digits_make_a_geometric_gap(rate):
    tails = np.column_stack([np.ones(3), gap_table(rate, 1000) / 2.0**32, np.zeros(3)])
    chance = -np.diff(tails)  # of each digit being 0 … 16
    k = np.arange(1000)
    pmf = np.prod([chance[j, (k >> 4 * j) & 15] for j in range(3)], axis=0)
    wanted = rate * (1 - rate) ** k
    # Each chance is within 2^-32, most of them near 1/16; the last digit's matter most when hardly anybody is sampled.
    assert np.all(np.abs(pmf - wanted) < 40 * 2**-32 * max(rate, 1e-3))
    assert pmf.sum() <= 1 - (1 - rate) ** 1000 + 1e-9
    # Ten bits: the last digit has two of them, and the place above is "beyond all records".
    assert tails[2, 4] >= (1 - rate) ** 1024
    assert not tails[2, 5:].any()


@pytest.mark.parametrize("rate", [0.5, 0.04])
def test_drawn_gaps_are_geometric(rate):
    drawn = np.asarray(jax.jit(lambda key: gaps(random_words(key, 150_000), gap_table(rate, 1000)))(jax.random.key(1)))
    edges = np.unique(stats.geom(rate, loc=-1).ppf(np.linspace(0.001, 0.99, 20)).astype(int))
    seen = np.histogram(drawn, np.append(edges, 2**30))[0]
    tails = stats.geom(rate, loc=-1).sf(edges - 1)
    wanted = 50_000 * (tails - np.append(tails[1:], 0))
    assert stats.chisquare(seen, wanted).pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.02, 0.13, 0.9])
def test_every_record_has_the_same_chance_independently_of_the_others_and_another_rate_would_be_noticed(rate):
    taken = batches(rate)
    assert taken.max() == 1
    runs, records = taken.shape
    spread = (taken.mean(0) - rate) / np.sqrt(rate * (1 - rate) / runs)
    assert stats.chi2(records).sf(np.sum(spread**2)) > 1e-3
    pairs = np.corrcoef(taken.T)[np.triu_indices(records, 1)] * np.sqrt(runs)
    assert stats.kstest(pairs, "norm").pvalue > 1e-3
    sizes = taken.sum(1)  # binomial, empty batches among them

    wanted = stats.binom(records, rate).pmf(np.arange(records + 1)) * runs
    enough, seen = wanted > 5, np.bincount(sizes, minlength=records + 1)
    counts = [np.append(values[enough], values[~enough].sum()) for values in (seen, wanted)]
    assert stats.chisquare(*counts).pvalue > 1e-3
    assert stats.binomtest(int(sizes.sum()), taken.size, 0.95 * rate).pvalue < 1e-6
    assert (sizes == 0).mean() == pytest.approx((1 - rate) ** 40, abs=0.015)


def test_no_batch_is_truncated_by_the_microbatch():
    sizes = batches(0.3, runs=500, microbatch=1).sum(1)
    assert sizes.mean() == pytest.approx(12, abs=0.6)
    assert sizes.max() > 18


@pytest.mark.parametrize("records", [1, 40])
def test_rate_one_takes_everybody_once_and_rate_zero_nobody(records):
    assert np.all(batches(1.0, records, runs=20) == 1)
    assert np.all(batches(0.0, records, runs=20) == 0)


def test_places_beyond_the_count_are_never_taken_and_a_last_record_leaves_the_others_alone():
    draw = jax.jit(partial(counts_of, rate=0.3, capacity=30, microbatch=4))
    for seed in range(200):
        fewer, more = (np.asarray(draw(jax.random.key(seed), count=n)) for n in (20, 21))
        assert np.array_equal(fewer[:20], more[:20])
        assert fewer[20:].sum() == 0
        assert more[21:].sum() == 0
    assert np.asarray(draw(jax.random.key(0), count=0)).sum() == 0


def test_one_compilation_serves_all_batch_sizes():
    traced = []

    @jax.jit
    def draw(key):
        traced.append(1)
        return counts_of(key, 0.5, 50, 50, 4)

    sizes = {int(draw(jax.random.key(seed)).sum()) for seed in range(20)}
    assert len(sizes) > 5
    assert len(traced) == 1


def test_large_gaps_do_not_overflow():
    def add(seen, indices, mask):
        return seen + jnp.sum(mask), jnp.minimum(jnp.min(indices), 0)

    size, lowest = poisson_fold(
        jax.random.key(0),
        lambda state, i, m: add(state[0], i, m),
        (jnp.int32(0), jnp.int32(0)),
        sampling_rate=1e-8,
        count=2**29 - 1,
        capacity=2**29 - 1,
        microbatch=64,
    )
    assert 0 <= int(size) < 25  # 5.4 expected
    assert int(lowest) == 0


@pytest.mark.parametrize(
    ("change", "word"),
    [({"rate": 1.5}, "sampling_rate"), ({"rate": -0.1}, "sampling_rate"), ({"microbatch": 0}, "microbatch")],
)
def test_bad_input(change, word):
    arguments = {"rate": 0.1, "count": 4, "capacity": 4, "microbatch": 2} | change
    with pytest.raises(InputError, match=word):
        counts_of(jax.random.key(0), **arguments)


def inclusion(rate, records):
    """Each record's chance of being in, by the renewal equation from the numbers of the table; exact to float64."""
    table = gap_table(rate, records).astype(np.int64)
    tails = np.column_stack([np.full(len(table), 2**32), table, np.zeros(len(table), np.int64)])
    chance = -np.diff(tails) / 2.0**32  # of each digit being 0 … 16
    k = np.arange(records)
    first = np.prod([chance[j, (k >> 4 * j) & 15] for j in range(len(table))], axis=0)
    found = np.zeros(records)
    for i in range(records):
        found[i] = first[i] + first[:i] @ found[:i][::-1]
    return found


@pytest.mark.parametrize("records", [1, 15, 16, 100, 255, 1000])
def test_rates_that_are_not_refused_are_right_to_a_millionth_and_the_bound_is_near_the_truth(records):
    place = 16 ** (int(np.log2(records)) // 4)
    least = 2.0**-32 / (1e-6 * place)
    for rate in (0.5, 0.04, 1e-3, least * 1.0001):
        assert drawable("q", rate, records) == rate
        assert np.abs(inclusion(rate, records) / rate - 1).max() < 1e-6
    for rate in (least * 0.999, least / 1e3, least / 1e9):
        with pytest.raises(InputError, match="at least"):
            drawable("q", rate, records)
        off = np.abs(inclusion(rate, records) / rate - 1).max()
        assert off <= 2.0**-32 / (rate * place) * 1.001 + 3 * 2.0**-28
    assert off > 0.9 * 2.0**-32 / (rate * place)  # at least / 1e9 the chances are hundreds of times too large


def test_a_rate_that_gaps_cannot_follow_is_refused_by_the_sampler():
    assert inclusion(1e-15, 1000).max() > 900e-15
    with pytest.raises(InputError, match=r"sampling_rate to be at least 9.1e-07 for 1,000 records.*larger batches"):
        counts_of(jax.random.key(0), 1e-15, 1000, 1000, 16)
    assert drawable("q", 0.0, 1000) == 0
