"""Public bounds of columns: u = 2 (x − low)/(high − low) − 1, x clipped to [low, high], so that |u| <= 1.

Bounds are declared, not read from the data: whoever reads them from the data gives its most extreme records away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array

Declared = tuple[Any, Any] | Mapping[str, tuple[float, float]]
"""(low, high) for all columns, a pair of arrays with one entry each, or {column: (low, high)} for data frames."""


class Bounds(NamedTuple):
    """The least and the largest value of each column, (columns,)."""

    low: Array
    high: Array

    def scaled(self, x: Array) -> Array:
        """Columns on [−1, 1]; what lies outside is moved to the nearer end. Missing values stay missing."""
        return 2 * (np.clip(x, self.low, self.high) - self.low) / (self.high - self.low) - 1

    def unscaled(self, u: Array) -> Array:
        """The inverse of `scaled` on [−1, 1]."""
        return self.low + (u + 1) / 2 * (self.high - self.low)


def declared(name: str, bounds: Declared, columns: int, names: Sequence[str] | None = None) -> Bounds:
    """What was declared of so many columns, called `names`.

    Bad input: a column without bounds, another number of them, a low that is not below its high.
    """
    if isinstance(bounds, Mapping):
        if names is None:
            raise errors.refuse(name, bounds, "to be (low, high) where columns have no names", "Give a data frame.")
        missing = [one for one in names if one not in bounds]
        if missing:
            raise errors.refuse(name, bounds, f"to have an entry for every column, also for {missing[0]!r}", got="none")
        bounds = (np.array([bounds[one][0] for one in names]), np.array([bounds[one][1] for one in names]))
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise errors.refuse(name, bounds, "to be (low, high)")
    low, high = (errors.array(name, end, ndim=(0, 1)) for end in bounds)
    for end in (low, high):
        if end.ndim and len(end) != columns:
            raise errors.refuse(name, len(end), f"with an entry for each of {columns} columns", got=f"{len(end)}")
    low, high = np.broadcast_to(low, columns), np.broadcast_to(high, columns)
    if not (low < high).all():
        place = int(np.argmin(low < high))
        raise errors.refuse(name, (float(low[place]), float(high[place])), "to be (low, high) with low < high")
    return Bounds(low, high)
