"""The squared shifts of every run, step and record, for expected composition (E7).

Theorem 3.3 needs step t of n at the order g_{n-t} > α, which depends on n, and an average over runs at every step:
so nothing can be summed on the way, and memory grows with the number of steps here and nowhere else.

    cost at an order between two knots <= chord between the costs at the knots,

because λ D_{λ+1} = log E exp(λL) is convex in λ. So a few knots of the order serve thousands of steps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.compose import expected
from bayesdp.compose.averages import LogMean
from bayesdp.divergence import sgm
from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array, InputError

_OWN_ORDERS = 64
"""Up to this many steps are costed at their own orders, longer runs by chords between knots."""

_KNOTS = 8
"""Knots of a longer run: orders grow by 1.4 in all (p = 3n), so a chord is within half a per cent of the cost."""

_EXACT = 4096
"""Signals between two knots that are costed one by one; more of them by lookup."""


class ShiftHistory:
    """Squared shifts (runs, steps, records), with the public noise and rate of every step."""

    def __init__(self, records: int) -> None:
        self.records = records
        self.runs: dict[int, list[Array]] = {}
        self.settings: list[tuple[float, float]] = []

    @property
    def steps(self) -> int:
        """Steps of the longest run."""
        return len(self.settings)

    def worst_cost(self, orders: Array, cap: float) -> Array:
        """Σ_t cost at the cap, at the orders themselves."""
        total = np.zeros(len(orders))
        for (noise, rate), count in Counter(self.settings).items():
            total += count * sgm.cost(cap / noise, orders, sampling_rate=rate)
        return total

    def refusal(self, run: int, setting: tuple[float, float], count: int) -> InputError | None:
        """Why these steps do not fit what the other runs did, or None."""
        at = len(self.runs.get(run, ()))
        planned = self.settings[at : at + count]
        if any(known != setting for known in planned):
            return errors.unmet(
                "noise_std",
                setting[0],
                f"every run to use the same plan: step {at + 1} has {errors.named('noise_std')}={planned[0][0]:g} and "
                f"{errors.named('sampling_rate')}={planned[0][1]:g} in another run",
                f"{setting[0]:g} and {setting[1]:g}",
            )
        return None

    def add(self, run: int, distances: Array, setting: tuple[float, float], count: int) -> None:
        steps = self.runs.setdefault(run, [])
        self.settings.extend([setting] * (len(steps) + count - len(self.settings)))
        steps.extend([(distances / setting[0]) ** 2] * count)

    def divergence(self, order: float, p: float | str, log_mean: LogMean, cap: float | None) -> Array:
        """D_α of the whole run for each record (E7), with worst-case costs at `cap` as limits where given."""
        lengths = {len(steps) for steps in self.runs.values()}
        if len(lengths) != 1:
            raise errors.unmet("run", sorted(lengths), "all runs to have equally many steps", f"{sorted(lengths)}")
        squared = np.array(list(self.runs.values()))  # (runs, steps, records)
        runs, steps, records = squared.shape
        power = expected.exponent(steps, p)
        orders = expected.inflated_order(order, np.arange(steps)[::-1], power)
        noise, rate = np.array(self.settings[:steps]).T
        costs = np.empty((steps, runs, records))
        for chosen, low, high, share in _by_knots(orders, rate):
            q = float(rate[chosen[0]])
            block, knots = squared[:, chosen], np.unique([low, high])
            if block.size <= _EXACT:
                ends = sgm.cost(np.sqrt(block), knots, sampling_rate=q)
            else:
                ends = CostTable(knots, sampling_rate=q)(block.ravel()).reshape(*block.shape, -1)
            costs[chosen] = np.moveaxis(_chord(ends, share[:, None]), 1, 0)
        worst = None
        if cap is not None:
            worst = np.empty(steps)
            for chosen, low, high, share in _by_knots(orders, rate):
                at = sgm.cost(cap / noise[chosen], np.unique([low, high]), sampling_rate=float(rate[chosen[0]]))
                worst[chosen] = _chord(at, share)
            costs = np.minimum(costs, worst[:, None, None])
        return expected.expected(costs, order, power, log_mean=log_mean, worst=worst)

    def state(self) -> dict[str, Any]:
        return {
            "runs": {str(run): np.array(steps).reshape(-1, self.records) for run, steps in self.runs.items()},
            "settings": np.array(self.settings).reshape(-1, 2),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        squared = {int(run): errors.array("state runs", steps, least=0, ndim=2) for run, steps in state["runs"].items()}
        if any(steps.shape[1] != self.records for steps in squared.values()):
            raise errors.unmet("state", None, f"a state with the squared shifts of {self.records} records")
        self.runs = {run: list(steps.copy()) for run, steps in squared.items()}
        self.settings = [(errors.noise("noise", noise), errors.rate("rate", rate)) for noise, rate in state["settings"]]
        if len(self.settings) != max(map(len, self.runs.values()), default=0):
            raise errors.unmet(
                "state", len(self.settings), "a state with the plan of its longest run", f"{len(self.settings)} steps"
            )


def _chord(costs: Array, share: Array) -> Array:
    """Between the first and the last of the trailing axis: `share` of the way."""
    low, high = costs[..., 0], costs[..., -1]
    with np.errstate(invalid="ignore"):  # beyond float64 at the larger order: no chord
        return np.where(np.isinf(high), np.inf, (1 - share) * low + share * high)


def _by_knots(orders: Array, rates: Array) -> list[tuple[Any, float, float, Array]]:
    """Groups of steps with one rate between two knots: (steps, low knot, high knot, share of the way up)."""
    knots = _knots(orders)
    cell = np.clip(np.searchsorted(knots, orders, side="right") - 1, 0, max(len(knots) - 2, 0))
    groups = []
    for rate in np.unique(rates):
        for j in np.unique(cell[rates == rate]):
            chosen = np.flatnonzero((rates == rate) & (cell == j))
            low, high = float(knots[j]), float(knots[min(j + 1, len(knots) - 1)])
            share = np.zeros(len(chosen)) if high == low else (orders[chosen] - low) / (high - low)
            groups.append((chosen, low, high, np.clip(share, 0, 1)))
    return groups


def _knots(orders: Array) -> Array:
    """Orders to cost at: all of them when few; whole numbers, which are cheap, from 8 on."""
    low, high = float(orders.min()), float(orders.max())
    if len(orders) <= _OWN_ORDERS:
        return np.unique(orders)
    between = np.geomspace(low - 1, high - 1, _KNOTS) + 1
    if low < 8:
        return np.append(between[:-1], high)
    return np.unique(np.concatenate([[math.floor(low)], np.ceil(between), [math.ceil(high)]]))
