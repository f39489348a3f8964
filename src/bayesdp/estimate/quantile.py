"""Upper bounds on a quantile by order statistics (one fixed share H5, all shares at once H12).

Of `count` independent draws from any law, the share of the law at or below the rank-th smallest is at
least a Beta(rank, count − rank + 1) variable, with equality for a continuous law. Its lower quantile says
how much of the population the sample speaks for: `covered` for one rank fixed beforehand, `curve` for all
ranks at once, so that a coverage may be chosen after looking.

**Without replacement** from a finite population, as members are drawn from a data set, the number of draws from a share
p is hypergeometric: a sum of independent coins (its generating function has real roots), so that by Hoeffding (1956)
its tail is at most the binomial one from p·count + 1 on, and may be above it below that. The rank of a failure γ <= 1/4
is that high from the second on, because a binomial passes its mean with probability at least 1/4 (Greenberg and Mohri
2014); for the first rank Markov's inequality stands in.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from bayesdp.errors import Array, array, probability, refuse, whole

USUAL = (*(k / 20 for k in range(1, 20)), 0.99)
"""The shares that people ask for: 5, 10, … 95 and 99 %. A curve spends half of its failure probability on them."""

WITHOUT_REPLACEMENT = 0.25
"""The largest failure probability of a binomial rank for draws without replacement: larger ones count as it."""


def covered(rank: npt.ArrayLike, count: int, failure: float, *, replaced: bool = True) -> Array:
    """The γ quantile of Beta(rank, count − rank + 1): s with Pr[Binomial(count, s) ≥ rank] = γ (Clopper-Pearson, H5).

    With confidence 1 − γ, at least that share of the distribution is at or below the rank-th smallest of
    `count` independent draws (Clopper-Pearson); the maximum gives γ^(1/count). For one rank fixed before
    looking: see `curve` otherwise. `replaced=False` is for draws without replacement from a finite population of any
    size: γ above 1/4 counts as 1/4, and the first rank has γ/count, by Markov's inequality (see the module). Ranks
    outside 1..count or not whole, or γ outside (0, 1), get an `InputError`.
    """
    count = whole("count", count, least=1)
    ranks = array("rank", rank, least=1, most=count)
    if (ranks != np.floor(ranks)).any():
        raise refuse("rank", rank, "to hold whole numbers")
    return _covered(ranks, count, probability("failure", failure), replaced)


def most_covered(count: int, failure: float, *, replaced: bool = True) -> float:
    """γ^(1/count): the share that the maximum of `count` draws speaks for, the most they support (H5)."""
    return float(covered(count, count, failure, replaced=replaced))


def rank_for(coverage: float, count: int, failure: float, *, replaced: bool = True) -> int | None:
    """The smallest rank with `covered(rank, count, failure)` ≥ `coverage`; None when the draws are too few.

    With confidence 1 − γ the value at that rank bounds the `coverage` quantile, for a coverage fixed before
    looking (H12). `replaced` as for `covered`. `coverage` or γ outside (0, 1), or a count below 1, get an `InputError`.
    """
    coverage = probability("coverage", coverage)
    count = whole("count", count, least=1)
    failure = probability("failure", failure)
    ranks = range(1, count + 1)
    place = bisect_left(ranks, coverage, key=lambda rank: float(_covered(np.float64(rank), count, failure, replaced)))
    return ranks[place] if place < count else None


def curve(values: npt.ArrayLike, failure: float, *, replaced: bool = True) -> tuple[Array, Array]:
    """Coverages and values, both ascending: `covered(r, n, γ_r)` and the r-th smallest value, r = 1..n (curve, H12).

    Σ γ_r <= γ (`_levels`), so that with confidence 1 − γ *all* statements "at least this share of the distribution has
    at most this value" hold together (union bound over the ranks), and one may be picked after looking. `values` are
    independent draws, or without replacement (`replaced=False`, see `covered`); +inf is a value like others. NaN,
    another number of dimensions than one, or γ outside (0, 1) get an `InputError`.
    """
    draws = np.sort(array("values", values, ndim=1, infinite=True))
    ranks = np.arange(1.0, len(draws) + 1)
    shares = _covered(ranks, len(draws), _levels(len(draws), probability("failure", failure), replaced), replaced)
    # A value covers whatever a smaller one does.
    return np.maximum.accumulate(shares), draws


def _levels(count: int, failure: float, replaced: bool) -> Array:
    """γ_r of each rank: half of γ evenly over all, half over the ranks that `USUAL` shares need. None looks at a value.

    Evenly over 4,000 ranks the share 0.9 would need the rank 0.929; this way it needs 0.926.
    """
    even, more = failure / (2 * count), failure / (2 * len(USUAL))
    levels = np.full(count, even)
    ranks = {rank_for(share, count, even + more, replaced=replaced) for share in USUAL}
    levels[[rank - 1 for rank in ranks if rank is not None]] += more
    return levels


def at(coverages: Array, values: Array, coverage: float) -> float:
    """The smallest of `values` whose coverage is at least `coverage`; +inf when none is (H12).

    `at(*curve(values, failure), 0.9)` reads a curve. Infinity is the true answer for a coverage that the
    sample does not support: it bounds nothing there. Arrays that are not one ascending curve, or a
    coverage outside (0, 1), get an `InputError`.
    """
    shares = array("coverages", coverages, ndim=1, least=0, most=1)
    heights = array("values", values, ndim=1, infinite=True)
    if shares.shape != heights.shape:
        raise refuse(
            "values", heights.shape, "of the same length as coverages", got=f"{heights.shape} and {shares.shape}"
        )
    for name, points in (("coverages", shares), ("values", heights)):
        if (points[1:] < points[:-1]).any():
            raise refuse(name, points, "to be ascending, as `curve` returns them")
    place = int(np.searchsorted(shares, probability("coverage", coverage)))
    return float(heights[place]) if place < len(heights) else math.inf


def _covered(ranks: npt.ArrayLike, count: int, failure: float | Array, replaced: bool) -> Array:
    ranks = np.asarray(ranks, dtype=np.float64)
    if replaced:
        return np.asarray(betaincinv(ranks, count - ranks + 1, failure), dtype=np.float64)
    failure = np.minimum(failure, WITHOUT_REPLACEMENT)
    binomial = betaincinv(ranks, count - ranks + 1, failure)
    return np.asarray(np.where(ranks > 1, binomial, failure / count), dtype=np.float64)
