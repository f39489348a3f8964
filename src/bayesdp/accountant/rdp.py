"""The Rényi curve of a fixed run, and the order at which it says most (costs add, B11; conversion B10).

    cost(α) = Σ_runs steps · (α−1) D_α(step),      ε(δ) = min over α of the conversion of cost(α)

add-remove:   D_α of the subsampled Gaussian with shift 1/z (the remove direction bounds the other, B6)
replace-one:  D_α of the pair with shifts +1/z and −1/z, which dominates every other pair (H10)

Any order gives a valid bound, so the search may be greedy: its result can be loose, never wrong.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

from bayesdp.divergence import replace_one, sgm
from bayesdp.errors import Array


class Run(NamedTuple):
    """`steps` steps with the same noise multiplier z (noise / clip norm) and Poisson sampling rate q."""

    noise_multiplier: float
    sampling_rate: float
    steps: int


History = tuple[Run, ...]
Score = Callable[[Array, Array], Array]
"""(costs, orders) → what is to be minimised, per order: an ε or a log δ."""

GRID: Array = np.concatenate([np.arange(11, 110) / 10, np.arange(11, 64), 2.0 ** np.arange(7, 11)])
"""The orders of dp-accounting: fractional below 11, whole to 63, then 128 … 1024."""

_FINE = 63.0
"""Up to here the grid is dense; from here, and below its first order, the search goes on by itself."""
_LARGEST_SHIFT = 1e6
_RATES = (1e-7, 4096.0)
"""λ = α − 1 between which the search moves: at the upper end log(1/δ)/λ is 0.003 for δ = 1e-5."""


def phases(noise: Array, rates: Array) -> list[Run]:
    """The different (noise, rate) of a run and how many steps each has: all that worst-case accounting asks."""
    # As complex numbers: those are sorted a hundred times faster than rows.
    kinds, counts = np.unique(noise + 1j * rates, return_counts=True)
    return [Run(float(kind.real), float(kind.imag), int(count)) for kind, count in zip(kinds, counts, strict=True)]


def cost(history: History, adjacency: str, orders: Array) -> Array:
    """Σ steps · (α−1) D_α at each order, by our own exact sums and integrals (sampled Gaussian B4 and
    B5, worst replace-one pair H10).

    Infinite where the noise is below a millionth of the clip norm: nothing finite that is worth saying.
    """
    total = np.zeros_like(orders)
    for rate in {run.sampling_rate for run in history}:
        runs = [run for run in history if run.sampling_rate == rate]
        shifts = np.array([1 / run.noise_multiplier for run in runs])
        if rate > 0 and shifts.max() > _LARGEST_SHIFT:
            return np.full_like(orders, np.inf)
        counts = np.array([run.steps for run in runs], dtype=np.float64)
        kinds = tuple(np.minimum(shifts, _LARGEST_SHIFT).tolist())
        total += [counts @ _of_steps(kinds, rate, adjacency, order) for order in orders.tolist()]
    return total


@lru_cache(maxsize=4096)
def _of_steps(shifts: tuple[float, ...], rate: float, adjacency: str, order: float) -> Array:
    """(α−1) D_α of one step of each kind. Kept, because a run is asked for its ε many times on its way."""
    moved = np.array(shifts)
    if adjacency == "add-remove":
        return sgm.cost(moved, order, sampling_rate=rate)
    # Quadrature keeps about ten digits: rounded up.
    return np.asarray(replace_one.cost(moved, moved, order, sampling_rate=rate) * (1 + 1e-9))


def minimum(history: History, adjacency: str, score: Score, orders: Array | None = None) -> float:
    """The least score over orders of any kind; over `orders` alone when they are given.

    Under add-remove dp-accounting's curve on the grid counts beside our own, the larger of the two at each order, so
    that a slip in either cannot under-count; an order that is worse by our own is not asked of the other. An optimum at
    an end of the grid is followed outwards (I-2 has one near order 400, small noise has them near 1).
    """
    grid = GRID if orders is None else orders

    @cache
    def ours(place: int) -> float:
        one = grid[place : place + 1]
        return float(score(cost(history, adjacency, one), one)[0])

    best, places = 0, iter(sorted(range(grid.size), key=ours)) if orders is not None else iter(())
    if orders is None:
        best = _lowest(ours, grid.size)
        places = _outwards(ours, grid.size, best)
    least = math.inf
    for place in places:
        if ours(place) >= least:
            break
        one = grid[place : place + 1]
        theirs = float(score(_borrowed(history, one), one)[0]) if adjacency == "add-remove" else -math.inf
        least = min(least, max(ours(place), theirs))
    inside = best > 0 and grid[best] < _FINE
    if orders is not None or inside:
        return least

    def at(rates: Array) -> Array:
        return score(cost(history, adjacency, 1 + rates), 1 + rates)

    # Half-integers upwards: the integral of a fractional order costs the same at any order, the sum does not.
    start, factor = (0.1, 0.5) if best == 0 else (_FINE - 0.5, 2.0)
    return min(least, _follow(at, start, factor, lambda rates: rates))


def _lowest(value: Callable[[int], float], size: int) -> int:
    """The place of the least of values that fall and then rise, by bisection.

    Scores do: the cost and the terms of the conversion are convex in λ = α − 1, and a convex function of λ over λ falls
    and then rises.
    """
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if value(middle) <= value(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def _outwards(value: Callable[[int], float], size: int, start: int) -> Iterator[int]:
    """`start` and then its neighbours on both sides, the one with the smaller value first."""
    yield start
    left, right = start - 1, start + 1
    while left >= 0 or right < size:
        if right >= size or (left >= 0 and value(left) <= value(right)):
            yield left
            left -= 1
        else:
            yield right
            right += 1


def whole_minimum(history: History, adjacency: str, score: Score, orders: Array | None = None) -> float:
    """The least score over whole orders ≥ 2, or over `orders`: the moments accountant's search (C16).

    λ doubles until the score rises (it is unimodal in λ: the cost is convex and 0 at 0), then the bracket is
    narrowed to neighbouring whole numbers.
    """
    if orders is not None:
        return float(score(cost(history, adjacency, orders), orders).min())
    return _follow(
        lambda rates: score(cost(history, adjacency, 1 + rates), 1 + rates),
        1.0,
        2.0,
        lambda rates: np.rint(rates),
    )


def _follow(at: Callable[[Array], Array], start: float, factor: float, snap: Callable[[Array], Array]) -> float:
    rates = [start]
    values = [float(at(np.array(rates))[0])]
    while _RATES[0] < rates[-1] * factor <= _RATES[1]:
        rates.append(rates[-1] * factor)
        values.append(float(at(np.array(rates[-1:]))[0]))
        if values[-1] > values[-2]:
            break
    points, scores = np.array(rates), np.array(values)
    least = float(scores.min())
    for _ in range(6):
        order = np.argsort(points)
        points, scores = points[order], scores[order]
        i = int(scores.argmin())
        ends = points[max(i - 1, 0)], points[min(i + 1, points.size - 1)]
        narrower = np.unique(snap(np.geomspace(*ends, 9)))
        if np.isin(narrower, points).all():
            break
        points, scores = narrower, at(narrower)
        least = min(least, float(scores.min()))
    return least


def _borrowed(history: History, orders: Array) -> Array:
    divergences = sum(run.steps * _one_step(run.noise_multiplier, run.sampling_rate, tuple(orders)) for run in history)
    # A sum that rounds to just below zero is no credit.
    costs: Array = np.maximum(divergences * (orders - 1), 0.0)
    # Where its series did not converge dp-accounting says infinity; our integral has no such region.
    given_up = np.isinf(costs)
    if given_up.any():
        costs[given_up] = cost(history, "add-remove", orders[given_up])
    return costs


@lru_cache(maxsize=1024)
def _one_step(noise_multiplier: float, sampling_rate: float, orders: tuple[float, ...]) -> Array:
    """dp-accounting's D_α of one step. Kept, because a run is asked for its ε many times on its way."""
    accountant = RdpAccountant(list(orders))
    with _without_word_of_given_up_orders():
        accountant.compose(event(Run(noise_multiplier, sampling_rate, 1)))
    divergences: Array = np.asarray(accountant.rdp)
    return divergences


@contextmanager
def _without_word_of_given_up_orders() -> Iterator[None]:
    """Keep dp-accounting's warnings about series that we replace off the user's terminal."""
    logger = logging.getLogger("absl")

    def other(record: logging.LogRecord) -> bool:
        return "failed to converge" not in record.getMessage()

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


def event(run: Run) -> dp_event.DpEvent:
    """One step of `run` in dp-accounting's words."""
    gaussian = dp_event.GaussianDpEvent(run.noise_multiplier)
    return gaussian if run.sampling_rate == 1 else dp_event.PoissonSampledDpEvent(run.sampling_rate, gaussian)
