"""Costs of many steps added up for many records at once, from stored distances: never below the truth.

    Σ_t f(u_t) <= Σ_j n_j f(v_j),   v_0 = 0 < v_1 < … a lattice,   n_j how much of the u_t falls to v_j

f, the cost of the subsampled Gaussian at a squared shift u, is convex in u (`table`), so the chord between two lattice
points bounds it: a shift between v_j and v_{j+1} counts in parts for both. How often a record came near each point is
all that has to be known of it; a sparse matrix product then costs all orders.

Cells are halved until, at every order, twice the chord's distance from f in the middle, which is the most there is in
the cell (`table`), is below `TOLERANCE` of f. Where f bends, at large orders, they are narrow; else they are wide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array, array

TOLERANCE = 1e-4
"""Relative distance between a chord and the cost."""

NARROWEST = 2.0**-15
"""No cell is narrower than this share of its squared shift. It is too wide for `TOLERANCE` just below the bend of
orders α beyond some 1,000/log(1/q), where costs grow like u^(α log(1/q)): (α log(1/q) NARROWEST)²/8 too high."""

_WIDEST = 1.05
"""Ratio of neighbouring squared shifts before cells are halved."""

_BITS = 52 - 13
"""Of a number's 52 binary digits, those that finding its cell does not look at first: buckets of a share of 2^-13."""

SMALLEST = 1e-9
"""The first squared shift: below it the cost is as good as linear in u, and the chord from 0 exact."""

_ROUND_UP = 1 + 1e-12
"""For the rounding of parts and sums, which are of ten thousand terms at most."""

_BLOCK = 2**18
"""Distances that are looked at together: they stay in the processor's cache."""


class CostLattice:
    """Costs at one sampling rate, summed over steps; see the module. Same orders and guarantees as `CostTable`."""

    def __init__(self, orders: Any, *, sampling_rate: float) -> None:
        self._table = CostTable(orders, sampling_rate=sampling_rate)
        self._points, self._costs = np.zeros(1), np.zeros((1, len(self._table.orders)))
        self._first, self._cells, self._passes = 0, np.zeros(1, np.int32), 0

    def __call__(self, squared_shifts: Any) -> Array:
        """Costs (records, orders) of all steps together, for squared shifts (steps, records).

        Bad input: no shifts, or some that are negative, not finite or not two-dimensional get `InputError`.
        """
        shifts = array("squared_shifts", squared_shifts, least=0, ndim=2)
        self._reach(float(shifts.max()))
        steps, records = shifts.shape
        block = max(1, _BLOCK // steps)
        return np.concatenate([self._summed(shifts[:, start : start + block]) for start in range(0, records, block)])

    def _summed(self, shifts: Array) -> Array:
        flat = np.ascontiguousarray(shifts.T).ravel()
        bucket = flat.view(np.int64) >> _BITS
        bucket -= self._first
        at = self._cells.take(np.maximum(bucket, 0, out=bucket))
        for _ in range(self._passes):
            at += flat > self._points[at + 1]
        low = self._points[at]
        share = (flat - low) / (self._points[at + 1] - low)
        # A row of counts is mostly zeros: as a sparse one it is what was found, a step after the other.
        rows, shape = np.arange(0, flat.size + 1, shifts.shape[0]), (shifts.shape[1], len(self._points))
        lower, upper = (csr_array(part, shape=shape) for part in ((1 - share, at, rows), (share, at + 1, rows)))
        return np.asarray(lower @ self._costs + upper @ self._costs)

    def _reach(self, largest: float) -> None:
        """Make the lattice reach past the largest squared shift."""
        if self._points[-1] >= largest and len(self._points) > 2:
            return
        top = max(1.001 * largest, 2 * SMALLEST)
        points = np.geomspace(SMALLEST, top, 2 + math.ceil(math.log(top / SMALLEST) / math.log(_WIDEST)))
        self._points = np.concatenate([[0.0], self._halved(points)])
        self._costs = self._table(self._points) * _ROUND_UP
        # Positive numbers are ordered like their bits, which so are a logarithm that costs nothing.
        self._first, last = (int(one) for one in np.array([SMALLEST, top]).view(np.int64) >> _BITS)
        edges = (np.arange(self._first, last + 2, dtype=np.int64) << _BITS).view(np.float64)
        cells = np.clip(np.searchsorted(self._points, edges, side="right") - 1, 0, len(self._points) - 2)
        self._cells, self._passes = cells[:-1].astype(np.int32), int(np.diff(cells).max())

    def _halved(self, points: Array) -> Array:
        """Points between these until every chord is near its cost at every order."""
        costs = self._table(points)
        while True:
            low, high = points[:-1], points[1:]
            middle = (low + high) / 2
            value = self._table(middle)
            with np.errstate(invalid="ignore"):  # beyond float64 there is nothing to refine
                gap = (costs[:-1] + costs[1:]) / 2 - value
                bad = (2 * gap > TOLERANCE * value).any(axis=1) & (high - low > NARROWEST * low)
            if not bad.any():
                return points
            at = np.flatnonzero(bad) + 1
            points, costs = np.insert(points, at, middle[bad]), np.insert(costs, at, value[bad], axis=0)
