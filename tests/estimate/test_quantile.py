"""Order statistics: vectors of I-13 and H12, exact binomial oracles, picking after looking, bad input."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesdp.errors import InputError
from bayesdp.estimate import quantile

failures = st.sampled_from([0.5, 0.05, 1e-6, 1e-12])


def test_the_maximum_of_ten_thousand():
    assert 1 - quantile.most_covered(10_000, 1e-6) == pytest.approx(0.00138059715348, abs=0.6e-14)
    assert float(quantile.covered(10_000, 10_000, 1e-6)) == quantile.most_covered(10_000, 1e-6)


@pytest.mark.parametrize(
    ("coverage", "share", "evenly"),
    [(0.9, 0.925, 0.929), (0.5, 0.5435, 0.550), (0.8, 0.834, 0.839), (0.87, 0.9027, 0.902)],
)
def test_ranks_of_the_simultaneous_curve(coverage, share, evenly):
    """A usual share needs a lower rank than where all ranks have γ/n each; another one hardly a higher one (H12)."""
    assert quantile.rank_for(coverage, 4000, 1e-6 / 4000) / 4000 == pytest.approx(evenly, abs=5.1e-4)
    coverages, values = quantile.curve(np.arange(1, 4001), 1e-6)
    assert quantile.at(coverages, values, coverage) / 4000 == pytest.approx(share, abs=5.1e-4)


@pytest.mark.parametrize("count", [1, 7, 60, 4000])
@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("failure", [0.05, 1e-6])
def test_the_ranks_of_a_curve_spend_its_failure_and_no_more(count, failure, replaced):
    """What each rank may fail with, from the binomial law of what it says: together at most γ (union bound)."""
    coverages, _ = quantile.curve(np.zeros(count), failure, replaced=replaced)
    ranks, first = np.arange(1, count + 1), np.diff(coverages, prepend=-1) > 0
    # A rank that says no more than the one before fails only together with it.
    spent = stats.binom.sf(ranks[first] - 1, count, coverages[first]).sum()
    assert spent <= failure * (1 + 1e-6)
    assert replaced is False or spent >= failure / 2 * (1 - 1e-6)


@given(st.integers(1, 400), st.floats(0, 1), failures)
def test_covered_is_the_binomial_limit(count, place, failure):
    rank = 1 + round(place * (count - 1))
    share = float(quantile.covered(rank, count, failure))
    with mp.workdps(40):
        chance = mp.betainc(rank, count - rank + 1, 0, mp.mpf(share), regularized=True)
    assert float(chance / failure) == pytest.approx(1, rel=1e-9)
    # Pr[Binomial(count, share) ≥ rank]: `rank` draws or more below a point that so small a share lies below.
    assert stats.binom.sf(rank - 1, count, share) == pytest.approx(failure, rel=1e-8)


@given(st.integers(1, 3000), st.floats(0.001, 0.9999), failures)
def test_rank_for_is_the_smallest_that_suffices(count, coverage, failure):
    rank = quantile.rank_for(coverage, count, failure)
    if rank is None:
        assert quantile.most_covered(count, failure) < coverage
        return
    assert quantile.covered(rank, count, failure) >= coverage
    assert rank == 1 or quantile.covered(rank - 1, count, failure) < coverage
    # The same rank from the binomial law: reached with a probability of at most `failure`.
    assert stats.binom.sf(rank - 1, count, coverage) <= failure * (1 + 1e-8)


@given(st.lists(st.floats(0, 10) | st.just(math.inf), min_size=1, max_size=60), failures)
def test_the_curve_goes_up(values, failure):
    coverages, heights = quantile.curve(values, failure)
    assert (np.diff(coverages) >= 0).all()
    np.testing.assert_array_equal(heights, sorted(values))
    ranks = np.arange(1, len(values) + 1)
    assert (coverages >= quantile.covered(ranks, len(values), failure / (2 * len(values)))).all()
    assert (coverages <= quantile.covered(ranks, len(values), failure)).all()
    assert (coverages < ranks / len(values)).all()


@pytest.mark.parametrize("failure", [0.9, 0.5, 0.3, 0.1, 1e-3, 1e-6])
def test_members_are_drawn_without_replacement(failure):
    """All populations of up to 40: whatever lies below the promised share reaches the rank with at most γ."""
    binomial_would_fail = 0
    for size in range(1, 41):
        below = np.arange(size)[:, None]
        for count in range(1, size + 1):
            ranks = np.arange(1, count + 1)
            reached = stats.hypergeom.sf(ranks - 1, size, below, count)
            fails = (below / size < quantile.covered(ranks, count, failure, replaced=False)) & (
                reached > failure * (1 + 1e-9)
            )
            assert not fails.any()
            drawn = quantile.covered(ranks, count, failure)
            binomial_would_fail += ((below / size < drawn) & (reached > failure * (1 + 1e-9))).sum()
            assert (quantile.covered(ranks, count, failure, replaced=False) <= drawn).all()
    assert (binomial_would_fail > 0) == (failure >= 0.1)


@given(st.integers(2, 2000), st.floats(0, 1), st.sampled_from([0.25, 0.1, 1e-3, 1e-9]))
def test_without_replacement_costs_nothing_beyond_the_first_rank(count, place, failure):
    rank = 2 + round(place * (count - 2))
    share = quantile.covered(rank, count, failure, replaced=False)
    assert share == quantile.covered(rank, count, failure)
    assert rank >= count * share + 1 - 1e-9  # where Hoeffding (1956) compares the tails
    assert float(quantile.covered(1, count, failure, replaced=False)) == pytest.approx(failure / count)


def test_reading_a_curve():
    coverages, values = quantile.curve([3.0, 1.0, math.inf, 2.0], 0.2)
    for share, value in zip(coverages, values, strict=True):
        assert quantile.at(coverages, values, share) == value
    assert quantile.at(coverages, values, coverages[0] / 2) == 1.0
    assert quantile.at(coverages, values, (coverages[1] + coverages[2]) / 2) == 3.0
    assert quantile.at(coverages, values, 0.999) == math.inf
    finite = quantile.curve([1.0, 2.0], 0.2)
    assert quantile.at(*finite, 0.999) == math.inf  # not supported
    assert quantile.rank_for(0.999, 2, 0.1) is None


def test_picking_the_coverage_after_looking():
    """Uniform draws: the share below a value is the value itself. Pick the rank where the promise is worst.

    One rank fixed beforehand fails at the stated 5 %; the worst of a thousand fails 64 % of the time (H12).
    """
    count, runs, failure = 1000, 3000, 0.05
    draws = np.sort(np.random.default_rng(0).random((runs, count)), axis=1)
    pointwise = quantile.covered(np.arange(1, count + 1), count, failure)
    most_misses = stats.binom.isf(1e-6, runs, failure)
    for rank in (1, 500, 900, 1000):
        misses = (draws[:, rank - 1] < pointwise[rank - 1]).sum()
        assert stats.binom.ppf(1e-6, runs, failure) <= misses <= most_misses
    assert (draws < pointwise).any(axis=1).mean() == pytest.approx(0.64, abs=0.04)
    simultaneous, _ = quantile.curve(draws[0], failure)
    assert 0 < (draws < simultaneous).any(axis=1).sum() <= most_misses


def test_a_law_with_atoms_is_covered_at_least_as_well():
    """Values 0, 1, 2 with ties: the share at or below the chosen value, not below it."""
    shares = np.array([0.5, 0.85, 1.0])
    count, runs, failure = 200, 3000, 0.05
    draws = np.sort(np.searchsorted(shares, np.random.default_rng(1).random((runs, count))), axis=1)
    rank = quantile.rank_for(0.8, count, failure)
    misses = (shares[draws[:, rank - 1]] < 0.8).sum()
    assert misses <= stats.binom.isf(1e-6, runs, failure)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quantile.covered(0, 10, 0.05), "rank=0"),
        (lambda: quantile.covered([1, 11], 10, 0.05), r"rank\[1\]=11"),
        (lambda: quantile.covered(1.5, 10, 0.05), "rank=1.5"),
        (lambda: quantile.covered(1, 0, 0.05), "count=0"),
        (lambda: quantile.covered(1, 10, 0.0), "failure=0"),
        (lambda: quantile.most_covered(10, 1.0), "failure=1"),
        (lambda: quantile.rank_for(1.0, 10, 0.05), "coverage=1"),
        (lambda: quantile.rank_for(0.9, 2.5, 0.05), "count=2.5"),
        (lambda: quantile.curve([1.0, math.nan], 0.05), r"values\[1\]=nan"),
        (lambda: quantile.curve([[1.0]], 0.05), "1 dimension"),
        (lambda: quantile.curve([], 0.05), "at least one"),
        (lambda: quantile.curve([1.0], 2.0), "failure=2"),
        (lambda: quantile.at([0.1, 0.2], [1.0], 0.1), "same length"),
        (lambda: quantile.at([0.2, 0.1], [1.0, 2.0], 0.1), "coverages to be ascending"),
        (lambda: quantile.at([0.1, 0.2], [2.0, 1.0], 0.1), "values to be ascending"),
        (lambda: quantile.at([0.1, 0.2], [1.0, 2.0], 0.0), "coverage=0"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()
