"""Costs of many steps added up for many records at once, from stored distances: never below the truth.

    Σ_t f(u_t) <= Σ_j n_j f(v_j),   v_0 = 0 < v_1 < … a lattice of ratio ρ,   n_j how much of the u_t falls to v_j

f, the cost of the subsampled Gaussian at a squared shift u, is convex in u (`table`), so the chord between two lattice
points bounds it: a shift between v_j and v_{j+1} counts in parts for both. How often a record came near each point is
all that has to be known of it; one matrix product then costs all orders. The chord is above f by a factor of at most
1 + p(p-1) log(ρ)²/8 where f grows like the p-th power of u.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array, array

RATIO = 1.004
"""Of neighbouring squared shifts: 4e-6 above the truth where costs grow like the square of u, 4e-5 for u⁵. A few
percent where they explode, at orders that are far from the best for such shifts."""

SMALLEST = 1e-9
"""The first squared shift: below it the cost is as good as linear in u, and the chord from 0 exact."""

_ROUND_UP = 1 + 1e-12
"""For the rounding of parts and sums, which are of ten thousand terms at most."""

_BLOCK = 2**18
"""Distances that are looked at together: they, and the counts they fall into, stay in the processor's cache."""


_COUNTS = 2**22
"""Counts that are kept at a time: 32 MB."""


class CostLattice:
    """Costs at one sampling rate, summed over steps; see the module. Same orders and guarantees as `CostTable`."""

    def __init__(self, orders: Any, *, sampling_rate: float) -> None:
        self._table = CostTable(orders, sampling_rate=sampling_rate)
        self._points, self._costs = np.zeros(1), np.zeros((1, len(self._table.orders)))

    def __call__(self, squared_shifts: Any) -> Array:
        """Costs (records, orders) of all steps together, for squared shifts (steps, records).

        Bad input: no shifts, or some that are negative, not finite or not two-dimensional get `InputError`.
        """
        shifts = array("squared_shifts", squared_shifts, least=0, ndim=2)
        self._reach(float(shifts.max()))
        steps, records = shifts.shape
        block = max(1, min(_BLOCK // steps, _COUNTS // len(self._points)))
        return np.concatenate([self._summed(shifts[:, start : start + block]) for start in range(0, records, block)])

    def _summed(self, shifts: Array) -> Array:
        records, points = shifts.shape[1], len(self._points)
        flat = np.ascontiguousarray(shifts.T).ravel()
        with np.errstate(divide="ignore"):
            place = np.log(flat / SMALLEST)
        np.multiply(place, 1 / math.log(RATIO), out=place)
        # Rounding of the logarithm may be off by one cell, where the chord is continued: it is set right below.
        at = np.clip(place, -1, points - 3).astype(np.int32)
        at += 1
        at[flat < SMALLEST] = 0
        at -= flat < self._points[at]
        at += flat > self._points[at + 1]
        low = self._points[at]
        share = (flat - low) / (self._points[at + 1] - low)
        at += np.repeat(np.arange(records, dtype=np.int32) * points, shifts.shape[0])
        counts = np.bincount(at, 1 - share, minlength=records * points)
        counts += np.bincount(at + 1, share, minlength=records * points)
        return counts.reshape(records, points) @ self._costs

    def _reach(self, largest: float) -> None:
        """Make the lattice reach past the largest squared shift."""
        if self._points[-1] >= largest and len(self._points) > 2:
            return
        cells = max(2, 1 + math.ceil(math.log(max(largest, 2 * SMALLEST) / SMALLEST) / math.log(RATIO)))
        self._points = np.concatenate([[0.0], SMALLEST * RATIO ** np.arange(cells + 1)])
        self._costs = self._table(self._points) * _ROUND_UP
