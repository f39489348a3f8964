"""An axis of a chart: where a value goes, and which ticks a reader gets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

STEPS = (1, 2, 2.5, 5, 10)
"""Distances between ticks that people can read, times a power of ten."""

SPREAD = 200
"""A largest value so many times the median is drawn on a logarithmic axis: a linear one would hide the rest."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, linear or logarithmic; `percent` writes shares as percentages."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False

    def place(self, value: float) -> float:
        """0 at `low`, 1 at `high`."""
        if self.log:
            value = max(value, self.low)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """At most about `most` values and how they are written."""
        values = _decades(self.low, self.high, most) if self.log else _even(self.low, self.high, most)
        return [(value, self.write(value)) for value in values]

    def write(self, value: float) -> str:
        """A tick's value."""
        if self.percent:
            return f"{100 * value:.6g} %"
        if value and not 1e-4 <= abs(value) < 1e7:
            return f"{value:.3g}"
        return f"{float(f'{value:.6g}'):,.10g}"


@dataclass(frozen=True)
class Names:
    """One row for each of `names`, the first at the top; a row's value is its place, 0 for the first."""

    label: str
    names: tuple[str, ...]

    @property
    def low(self) -> float:
        """The lower edge."""
        return len(self.names) - 0.5

    def place(self, value: float) -> float:
        """1 at the upper edge, 0 at the lower."""
        return 1 - (value + 0.5) / len(self.names)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Every row and its name, of at most `most` letters: a longer one loses its middle."""
        return [
            (float(row), name if len(name) <= most else _shortened(name, most)) for row, name in enumerate(self.names)
        ]


def _shortened(name: str, most: int) -> str:
    first = (most - 1) // 2
    return f"{name[:first]}…{name[len(name) - (most - 1 - first) :]}"


def from_zero(label: str, values: Iterable[float], *, percent: bool = False) -> Axis:
    """0 to a tick above the largest finite value; logarithmic when that value dwarfs the others."""
    finite = [value for value in values if math.isfinite(value)]
    positive = sorted(value for value in finite if value > 0)
    if not positive:
        return Axis(label, 0.0, 1.0, percent=percent)
    low, middle, high = positive[0], positive[len(positive) // 2], positive[-1]
    if high > SPREAD * middle and not percent:
        low = max(low, high * 1e-9)
        return Axis(f"{label} (logarithmic)", 10.0 ** math.floor(math.log10(low)), high * 1.3, log=True)
    return Axis(label, 0.0, _next_tick(high * 1.02), percent=percent)


def around(label: str, values: Iterable[float], *, percent: bool = False) -> Axis:
    """From a tick below the smallest finite value to one above the largest."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return Axis(label, 0.0, 1.0, percent=percent)
    low, high = min(finite), max(finite)
    width = (high - low) or abs(high) or 1.0
    step = _step(width, 5)
    return Axis(label, math.floor(low / step) * step, math.ceil(high / step + 1e-9) * step or step, percent=percent)


def exactly(label: str, low: float, high: float, *, percent: bool = False) -> Axis:
    """These ends, a little apart where they coincide."""
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return Axis(label, low, high, percent=percent)


def _step(width: float, most: int) -> float:
    scale = 10.0 ** math.floor(math.log10(width / most))
    return next(step * scale for step in STEPS if step * scale * most >= width * (1 - 1e-9))


def _next_tick(high: float) -> float:
    step = _step(high, 10)
    return math.ceil(high / step - 1e-9) * step


def _even(low: float, high: float, most: int) -> list[float]:
    step = _step(high - low, max(most, 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = last - first
    factors = (1, 2, 5) if 3 * decades <= most else (1,)
    every = max(1, math.ceil(decades / max(most, 1)))
    values = [factor * 10.0**power for power in range(first, last + 1, every) for factor in factors]
    return [float(value) for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)] or list(np.array([low]))
