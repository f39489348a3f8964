"""Upper bounds on a quantile by order statistics (H5, H12).

Of `count` independent draws from any law, the share of the law at or below the rank-th smallest is at
least a Beta(rank, count − rank + 1) variable, with equality for a continuous law. Its lower quantile says
how much of the population the sample speaks for: `covered` for one rank fixed beforehand, `curve` for all
ranks at once, so that a coverage may be chosen after looking.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from bayesdp.errors import Array, InputError, array, probability, refuse, whole


def covered(rank: npt.ArrayLike, count: int, failure: float) -> Array:
    """The γ quantile of Beta(rank, count − rank + 1): s with Pr[Binomial(count, s) ≥ rank] = γ (H5).

    With confidence 1 − γ, at least that share of the distribution is at or below the rank-th smallest of
    `count` independent draws (Clopper-Pearson); the maximum gives γ^(1/count). For one rank fixed before
    looking: see `curve` otherwise. Ranks outside 1..count or not whole, or γ outside (0, 1), get an
    `InputError`.
    """
    count = whole("count", count, least=1)
    ranks = array("rank", rank, least=1, most=count)
    if (ranks != np.floor(ranks)).any():
        raise refuse("rank", rank, "to hold whole numbers")
    return _covered(ranks, count, probability("failure", failure))


def most_covered(count: int, failure: float) -> float:
    """γ^(1/count): the share that the maximum of `count` draws speaks for, the most they support (H5)."""
    return float(covered(count, count, failure))


def rank_for(coverage: float, count: int, failure: float) -> int | None:
    """The smallest rank with `covered(rank, count, failure)` ≥ `coverage`; None when the draws are too few.

    With confidence 1 − γ the value at that rank bounds the `coverage` quantile, for a coverage fixed before
    looking (H12). `coverage` or γ outside (0, 1), or a count below 1, get an `InputError`.
    """
    coverage = probability("coverage", coverage)
    count = whole("count", count, least=1)
    failure = probability("failure", failure)
    ranks = range(1, count + 1)
    place = bisect_left(ranks, coverage, key=lambda rank: float(_covered(np.float64(rank), count, failure)))
    return ranks[place] if place < count else None


def curve(values: npt.ArrayLike, failure: float) -> tuple[Array, Array]:
    """Coverages and values, both ascending: `covered(r, n, γ/n)` and the r-th smallest value, r = 1..n (H12).

    With confidence 1 − γ *all* statements "at least this share of the distribution has at most this
    value" hold together (union bound over the ranks), so one may be picked after looking. `values` are
    independent draws; +inf is a value like others. NaN, another number of dimensions than one, or γ
    outside (0, 1) get an `InputError`.
    """
    draws = np.sort(array("values", values, ndim=1, infinite=True))
    ranks = np.arange(1.0, len(draws) + 1)
    return _covered(ranks, len(draws), probability("failure", failure) / len(draws)), draws


def at(coverages: Array, values: Array, coverage: float) -> float:
    """The smallest of `values` whose coverage is at least `coverage`; +inf when none is (H12).

    `at(*curve(values, failure), 0.9)` reads a curve. Infinity is the true answer for a coverage that the
    sample does not support: it bounds nothing there. Arrays that are not one ascending curve, or a
    coverage outside (0, 1), get an `InputError`.
    """
    shares = array("coverages", coverages, ndim=1, least=0, most=1)
    heights = array("values", values, ndim=1, infinite=True)
    if shares.shape != heights.shape:
        raise InputError(f"Expected values of the same length as coverages, got {heights.shape} and {shares.shape}.")
    for name, points in (("coverages", shares), ("values", heights)):
        if (points[1:] < points[:-1]).any():
            raise refuse(name, points, "to be ascending, as `curve` returns them")
    place = int(np.searchsorted(shares, probability("coverage", coverage)))
    return float(heights[place]) if place < len(heights) else math.inf


def _covered(ranks: npt.ArrayLike, count: int, failure: float) -> Array:
    ranks = np.asarray(ranks, dtype=np.float64)
    return np.asarray(betaincinv(ranks, count - ranks + 1, failure), dtype=np.float64)
