"""Cost table: what a step costs a whole population, by lookup, never below the truth.

    f(u) = cost of the subsampled Gaussian at squared shift u = r²,  linear between knots u_0 < u_1 < ...

**Theorem** (convexity; for whole orders it is a log-sum-exp of linear terms; here for every real
order α > 1). f is convex in u, so a chord is an upper bound. Proof: with h(u, y) = log E[(1-q + q e^(y + B_u -
u/2))^α], B Brownian motion, the heat equation gives v := h_u with v_u = (v_yy + (2 h_y - 1) v_y)/2, hence
m := v_u obeys m_u = (m_yy + (2 h_y - 1) m_y)/2 + v_y², a parabolic equation with bounded coefficients and a
non-negative source. At u = 0, with P the logistic function of y + log(q/(1-q)), v = α(α-1)P²/2 and
m = α(α-1)P²(1-P)(1 + P(2α-3))/2 >= 0, since 1 + P(2α-3) is linear in P between 1 and 2(α-1). By the maximum
principle m = f'' >= 0 for all u. ∎ (In the add direction, α replaced by -λ, the sign fails: see `RoundedUp`.)

Three facts turn convexity into a certificate of tightness for each cell [a, b]:
  * chord - f is concave and zero at both ends, so its maximum is at most twice its value in the middle;
  * f(u) >= f'(0) u with f'(0) = q² α(α-1)/2, which bounds the first cell, where f(0) = 0;
  * α log q + u α(α-1)/2 <= f(u), and f' <= α(α-1)/2, which bounds the open last cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.divergence import sgm
from bayesdp.errors import Array

TOLERANCE = 1e-6
"""Relative distance between a looked-up cost and the exact one."""

_ROUND_UP = 1 + 1e-11
"""Covers the evaluation error of `sgm.cost`, so that a knot is never below the exact value."""

_FAR = 1e30
"""The last knot: the open cell reaches every squared shift that is a number in practice."""

_REACH = 4.0
"""Squared shift up to which knots are built at once (noise as large as half the distance); then by factors of 4."""

Knots = tuple[Array, Array]


class CostTable:
    """Costs of one step at `sampling_rate` for many records and all `orders` at once.

    Guarantees: exact <= lookup <= (1 + 1e-6) exact, for any squared shift up to 1e30; infinity beyond. Knots
    are built on first use, as far as the shifts at hand reach, and shared by all tables of the process.
    """

    def __init__(self, orders: Any, *, sampling_rate: float) -> None:
        self.orders = errors.orders("orders", orders)
        self.sampling_rate = errors.rate("sampling_rate", sampling_rate)

    def __call__(self, squared_shift: Array) -> Array:
        """Costs of shape (records, orders) for a one-dimensional array of squared shifts.

        Records are visited in the order of their shifts, so that each lookup starts where the last one ended.
        """
        ranks = np.argsort(squared_shift)
        ascending = squared_shift[ranks]
        largest = min(max(float(ascending[-1]), 1.0), _FAR)
        level = max(0, math.ceil(math.log(largest / _REACH) / math.log(4)))
        beyond = np.inf if self.sampling_rate > 0 else 0.0
        result = np.empty((len(self.orders), len(ascending)))
        for row, order in zip(result, self.orders, strict=True):
            row[ranks] = np.interp(ascending, *_knots(float(order), self.sampling_rate, level), right=beyond)
        return result.T


@lru_cache(maxsize=4096)
def _knots(order: float, rate: float, level: int) -> Knots:
    """Knots up to a squared shift of 4^level x _REACH; beyond it too once the open last cell is tight."""
    steepest = order * (order - 1) / 2
    if rate in (0.0, 1.0):
        return np.array([0.0, _FAR]), np.array([0.0, _FAR * steepest * rate])
    allowed = 0.9 * TOLERANCE

    def exact(u: Array) -> Array:
        return sgm.cost(np.sqrt(u), [order], sampling_rate=rate)[..., 0]

    def last_is_tight(u: float) -> bool:
        f = float(exact(np.array([u]))[0])
        return f - (order * math.log(rate) + steepest * u) <= allowed * f

    if level > 0:
        inner = _knots(order, rate, level - 1)
        if inner[0][-1] == _FAR:
            return inner
        start = float(inner[0][-1])
    else:
        start = 1 / steepest
        while float(exact(np.array([start]))[0]) > (1 + allowed) * start * steepest * rate**2:
            start /= 2
        inner = np.zeros(1), np.zeros(1)
    end = max(_REACH * 4.0**level, 2 * start)
    closed = last_is_tight(end)
    if closed:
        while end / 1.25 > start and last_is_tight(end / 1.25):
            end /= 1.25
    u, f = _refine(exact, np.geomspace(start, end, 32), allowed)
    f = f * _ROUND_UP
    if level > 0:
        u, f = u[1:], f[1:]
    if closed:
        u, f = np.append(u, _FAR), np.append(f, (f[-1] + steepest * (_FAR - u[-1])) * _ROUND_UP)
    u, f = np.concatenate([inner[0], u]), np.concatenate([inner[1], f])
    u.flags.writeable = f.flags.writeable = False
    return u, f


def _refine(exact: Callable[[Array], Array], u: Array, allowed: float) -> Knots:
    """Halve cells until each is certified: twice the gap at the middle <= allowed x the value at its left."""
    f = exact(u)
    open_cells = np.arange(len(u) - 1)
    while len(open_cells):
        middle = (u[open_cells] + u[open_cells + 1]) / 2
        value = exact(middle)
        gap = (f[open_cells] + f[open_cells + 1]) / 2 - value
        bad = 2 * gap > allowed * f[open_cells]
        at = open_cells[bad] + 1
        u, f = np.insert(u, at, middle[bad]), np.insert(f, at, value[bad])
        left = open_cells[bad] + np.arange(bad.sum())
        open_cells = np.sort(np.concatenate([left, left + 1]))
    return u, f


class RoundedUp:
    """Costs that are known to grow with the shift, and not known to be convex: shifts rounded up (H11).

        lookup(r) = exact(smallest lattice point >= r),  lattice of ratio 1.001

    Guarantees: never below the exact value if `exact` is non-decreasing. Each lattice point is costed once.
    """

    _STEP = math.log(1.001)

    def __init__(self, exact: Callable[[Array], Array]) -> None:
        self._exact = exact
        self._rows: dict[int, Array] = {}

    def __call__(self, shift: Array) -> Array:
        """Costs of shape (records, orders) for a one-dimensional array of shifts; a zero shift counts as 1e-300."""
        index = np.ceil(np.log(np.maximum(shift, 1e-300)) / self._STEP).astype(int)
        points, inverse = np.unique(index, return_inverse=True)
        new = np.array([i for i in points.tolist() if i not in self._rows], dtype=float)
        if new.size:
            lattice = np.exp(new * self._STEP) * _ROUND_UP
            self._rows.update(zip(new.astype(int).tolist(), self._exact(lattice), strict=True))
        return np.stack([self._rows[i] for i in points.tolist()])[inverse]
