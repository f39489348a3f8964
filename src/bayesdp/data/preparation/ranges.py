"""The range of a column of numbers from noisy counts, without any bound given beforehand (H22).

    first    how many values have 2^(k−1) <= |value| < 2^k, for k = −67 … 60        →  the largest k that matters, b
    second   how many values lie in each of B equal bins of [−2^b, 2^b]              →  the range where most of them are

Both grids are public: powers of two, and what the first count released. B is as many as can stand out of the noise: a
power of two from 8 to 256, by the noise and the noisy number of values. Noise is Gaussian and the same on every bin, so
that bins put together later would have more of it than one bin had. Whatever is made of noisy counts is free: here the
bins where they stand out of the noise.

    instead  how many are 0, and how many of each sign have 2^(k−1) <= |value| < 2^k   →  the octaves where most are

Where records are too few for two histograms a column there is this one, whose counts have 1/√2 of the noise: a range
is then as wide as its octaves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesdp.errors import Array

OCTAVES = np.arange(-67, 61)
"""k of the first histogram; what is smaller counts nowhere, and larger numbers are refused (`table.LARGEST`)."""

BINS = (8, 256)
"""The fewest and the most of the second histogram."""

_VALUES_PER_BIN = 0.75
"""How many standard deviations of the noise the values would have in a bin if they filled all: they fill a part."""

_LEVEL = 1.5
"""A group of bins speaks for a range if it holds more than this many standard deviations of the noise."""

_LEAST = 2.5
"""A run of groups counts if it exceeds that level by this many standard deviations in total."""

_WIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""How many bins are looked at together."""

_NEARLY = 0.85
"""The share of the values that a finer look may miss."""

_GROUPS = 8
"""How many groups of bins moments are taken of, where there are as many."""

SURE = 2.0
"""Standard deviations of the noise that octaves at an end must hold to stay: one too many doubles what comes of it."""

_TAIL = 0.01
"""The share of the values that may be cut off at either end, beside what noise hides."""


class Reach(NamedTuple):
    """What the first histogram says: values are within ±`most`, and so many of them are not 0, about."""

    most: float
    mass: float


class Found(NamedTuple):
    """A range, and the mean and standard deviation of what lies in it."""

    low: float
    high: float
    mean: float
    scale: float


def octave_counts(values: Array) -> Array:
    """The first histogram: each value counts in one bin or in none."""
    exponents = np.frexp(np.abs(values[values != 0]))[1]
    inside = exponents[(exponents >= OCTAVES[0]) & (exponents <= OCTAVES[-1])]
    return np.bincount(inside - OCTAVES[0], minlength=len(OCTAVES)).astype(np.float64)


def reach(noisy: Array, std: float) -> Reach | None:
    """2^b, the upper end of the octaves that matter, and how many values they have; None where there are none."""
    run = crowded(noisy, std)
    return None if run is None else Reach(float(2.0 ** OCTAVES[_trimmed(noisy, SURE * std, run)[1] - 1]), run.mass)


def bins_for(known: Reach, std: float) -> int:
    """B: how many bins the values found by the first histogram are counted in, under that noise."""
    fewest, most = BINS
    if known.mass <= fewest * _VALUES_PER_BIN * std:
        return fewest
    if known.mass >= most * _VALUES_PER_BIN * std:
        return most
    return int(2 ** math.floor(math.log2(known.mass / (_VALUES_PER_BIN * std))))


def bin_counts(values: Array, most: float, bins: int) -> Array:
    """The second histogram: each value counts in one bin or, beyond ±`most`, in none."""
    places = np.floor((values[np.abs(values) <= most] / most + 1) * (bins / 2)).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(np.float64)


def range_of(noisy: Array, known: Reach, std: float) -> Found:
    """The bins that matter, and the moments of the noisy counts in them; all of ±2^b where there are none, or fewer
    values in them than half of those that have a size.
    """
    run, most = crowded(noisy, std), known.most
    if run is None or run.mass < known.mass / 2:
        return Found(-most, most, 0.0, most / math.sqrt(3))
    first, last = _trimmed(noisy, std, run)
    width = max(1, min(run.width, (last - first) // _GROUPS))
    starts = np.arange(first, last, width)
    counts = np.maximum(np.add.reduceat(noisy[first:last], starts - first), 0.0)
    left, right = (most * (2 * place / len(noisy) - 1) for place in (starts, np.minimum(starts + width, last)))
    weights = counts if counts.any() else np.ones_like(counts)
    mean = float(np.average((left + right) / 2, weights=weights))
    variance = np.average(((left + right) / 2 - mean) ** 2 + (right - left) ** 2 / 12, weights=weights)
    return Found(float(left[0]), float(right[-1]), mean, math.sqrt(variance))


def signed_counts(values: Array) -> Array:
    """The only histogram: the octaves of values below 0, a count of zeros, the octaves of those above."""
    zeros = np.array([np.count_nonzero(values == 0)], dtype=np.float64)
    return np.concatenate([octave_counts(values[values < 0]), zeros, octave_counts(values[values > 0])])


def range_of_octaves(noisy: Array, std: float) -> Found | None:
    """The octaves that matter and the moments of the noisy counts in them; None where none matter.

    One sign alone is taken where that has the run with the most values, else both, and 0 lies between them; 0 also
    joins a run of one sign if zeros stand out of the noise.
    """
    below, zeros, above = noisy[: len(OCTAVES)], float(noisy[len(OCTAVES)]), noisy[len(OCTAVES) + 1 :]
    sides = [(counts, crowded(counts, noise)) for counts, noise in _sides(below, above, std)]
    mass = [0.0 if run is None else run.mass for _, run in sides]
    together, both = 2, sides[2][1]  # of both signs, which must hold more than the noise of the other side could add
    more = 1.5 * std * math.sqrt(2 * (both.last - both.first)) if both is not None else math.inf
    which = together if mass[together] > max(mass[:2]) + more else int(np.argmax(mass[:2]))
    counts, run = sides[which]
    if run is None:
        return None
    first, last = _trimmed(counts, std * (math.sqrt(2) if which == together else SURE), run)
    most = float(2.0 ** OCTAVES[last - 1])
    if which == together:
        return Found(-most, most, 0.0, most / math.sqrt(6))
    left = 2.0 ** (OCTAVES[first:last] - 1)
    weights, middles, variances = np.maximum(counts[first:last], 0.0), 1.5 * left, left**2 / 12
    least = float(left[0])
    if zeros > 2 * std:
        weights, middles, variances = (np.append(a, b) for a, b in ((weights, zeros), (middles, 0), (variances, 0)))
        least = 0.0
    weights = weights if weights.any() else np.ones_like(weights)
    mean = float(np.average(middles, weights=weights))
    scale = math.sqrt(np.average((middles - mean) ** 2 + variances, weights=weights))
    return Found(least, most, mean, scale) if which else Found(-most, -least, -mean, scale)


def _sides(below: Array, above: Array, std: float) -> list[tuple[Array, float]]:
    """Counts by size of values below 0, of those above, and of both, each with its noise."""
    return [(below, std), (above, std), (below + above, std * math.sqrt(2))]


class Run(NamedTuple):
    """Bins [first, last), looked at in groups of `width`, with `mass` in their noisy counts."""

    first: int
    last: int
    width: int
    mass: float


def crowded(noisy: Array, std: float) -> Run | None:
    """Where the values are: at the finest resolution that sees nearly as many as any does; None where none sees any.

    Groups of w bins have w times the values and only √w times the noise: few values are found in coarse groups alone.
    """
    found = [run for width in _WIDTHS if 4 * width <= len(noisy) and (run := _run(noisy, std, width)) is not None]
    most = max((run.mass for run in found), default=0.0)
    return next((run for run in found if run.mass >= _NEARLY * most), None)


def _run(noisy: Array, std: float, width: int) -> Run | None:
    """The run of groups whose counts exceed the level by most in total (Kadane's sum); None if by too little."""
    groups, noise = noisy.reshape(-1, width).sum(axis=1), std * math.sqrt(width)
    best, total, start, ends = 0.0, 0.0, 0, (0, 0)
    for place, excess in enumerate(groups - _LEVEL * noise):
        if total <= 0:
            total, start = 0.0, place
        total += float(excess)
        if total > best:
            best, ends = total, (start, place + 1)
    if best < _LEAST * noise:
        return None
    first, last = ends
    return Run(width * first, width * last, width, float(groups[first:last].sum()))


def _trimmed(noisy: Array, std: float, run: Run) -> tuple[int, int]:
    """The run without the bins at its ends that hold next to nothing: less than their noise and a small share."""

    def empty(counts: Array) -> int:
        lengths = np.arange(1, len(counts))
        few = np.cumsum(counts[:-1]) <= std * np.sqrt(lengths) + _TAIL * run.mass
        return int(lengths[few].max(initial=0))

    bins = noisy[run.first : run.last]
    last = run.last - empty(bins[::-1])
    return run.first + empty(noisy[run.first : last]), last
