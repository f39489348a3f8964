"""What many runs of one plan say about named records: an interval for the value of an a-priori bound.

    D_α(P‖Q)  <=  V_α = min( one-Hölder (H2) over a, expected composition (E7) at p = 3n, worst case at the clip norm )

H2 and E7 hold expectations over runs of P, the first argument's chain. From a sample of runs V_α is known up to

    upper     with the expectations replaced by upper confidence bounds (H9): D_α <= V_α <= upper
    estimate  with the sample's own means: a plug-in, biased low (ERR 19), and called an estimate
    lower     a lower confidence bound of E_P[S_α], the mean of a run's summed divergence at α itself

**Lemma**: E_P[S_α] <= V_α, hence lower <= V_α. By Jensen log E exp(v) >= E v, so that H2 at an inflated order o is at
least E[S_o] and E7 at least Σ_t E[D_{g_t}]; divergences grow with the order. So `lower` is what *no number of runs* can
bring this bound below. It is not a lower bound on the divergence, nor on what an attacker learns.

Values range up to e^{worst cost}, so an upper bound needs about that many runs to say anything at an order. At the
orders that an ε at small δ is read off, ten runs as a rule certify the worst case and no more (E9, ERR 18).
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant.averaging import Averaging
from bayesdp.accountant.repeated_runs.sample_size import log_runs
from bayesdp.accountant.repeated_runs.shift_history import ShiftHistory
from bayesdp.accountant.step_cost import StepCost
from bayesdp.compose import expected, one_holder
from bayesdp.divergence import sgm
from bayesdp.errors import Array
from bayesdp.estimate import METHODS

Way = Literal["lower", "estimate", "upper"]
WAYS: tuple[Way, ...] = get_args(Way)

INFLATIONS = (1.05, 1.12, 1.25, 1.6, 2.5)
"""The a of one-Hölder (H2) that are tried, fixed in advance: small for costs that vary little, large for few runs."""

_EXACT = 4096
"""Up to this many distances are costed one by one; more of them by lookup."""

_AT_ONCE = 2**16
"""Distances that are looked up together."""


class ManyRuns:
    """Bounds for several records from `distances`, (runs, steps, records), along runs of the first argument's chain.

    Args:
        distances: how far each record moves each update, in units of the step's sensitivity: at most 1. Single
            precision is raised by 1e-5.
        noise, rates: the noise multiplier z_t and the sampling rate q_t of every step: public, the same in all runs.
        direction: "remove" for D(with the record ‖ without it), from runs on the data *with* it; "add" for
            D(without ‖ with), from runs *without* it. Costs are exact in H2; E7 takes those of the remove direction,
            which bound the others (add below remove, B6).
        failure: what all answers of one call may fail with together, per record and per side of the interval.
        estimator: an upper bound of `bayesdp.estimate` that holds for every law.
        by_step: whether distances are functions of the state before a step, as for the sum rule. Where the batch or a
            drawn subset of weights takes part (it then counts as released), E7's first step would be an average too:
            only H2 is used.

    Assumptions: the runs are independent, start from one initialisation and follow one plan. Bad input gets
    `InputError`; queries change nothing.
    """

    def __init__(
        self,
        distances: Any,
        noise: Any,
        rates: Any,
        *,
        direction: str,
        failure: float,
        estimator: str = "betting",
        by_step: bool = True,
    ) -> None:
        given = np.asarray(distances)
        if given.ndim != 3:
            raise errors.refuse(
                "distances", given.shape, "with axes (runs, steps, records)", got=f"shape {given.shape}"
            )
        self.direction = errors.one_of("direction", direction, sgm.DIRECTIONS)
        self.failure = errors.probability("failure", failure)
        self.estimator = errors.one_of("estimator", estimator, [name for name in METHODS if METHODS[name].needs_range])
        self.noise = errors.array("noise", noise, above=0, ndim=1)
        self.rates = errors.array("rates", rates, least=0, most=1, ndim=1)
        self.runs, self.steps, self.records = given.shape
        if (len(self.noise), len(self.rates)) != (self.steps, self.steps):
            raise errors.unmet(
                "noise",
                len(self.noise),
                f"{errors.named('noise')} and {errors.named('rates')} for each of the {self.steps} steps",
                f"{len(self.noise)} and {len(self.rates)}",
            )
        if self.runs < METHODS[estimator].least_samples:
            raise errors.refuse("runs", self.runs, f"to be at least {METHODS[estimator].least_samples} for {estimator}")
        checked = self._costing([2.0]).distances("distances", given.reshape(-1, self.records))
        self.distances = checked.reshape(given.shape)
        self.by_step = by_step
        self._history: ShiftHistory | None = None

    def divergences(self, orders: Any, way: Way = "upper") -> Array:
        """D_α or an end of its bound's interval, (records, orders): see the module. Orders are fixed in advance.

        For "upper" and "lower" the failure probability is shared out over the orders of this call, the two methods,
        the a of H2 and the steps of E7 (union bound, C12). Infinite where even the worst case is beyond float64.
        """
        grid = errors.orders("orders", orders)
        errors.one_of("way", way, WAYS)
        if way == "lower":
            return self._mean_sums(grid)
        return np.asarray(np.min(list(self.by_method(grid, way).values()), axis=0))

    def by_method(self, orders: Any, way: Literal["estimate", "upper"] = "upper") -> dict[str, Array]:
        """The terms of V_α by name: "one-holder", "worst", and "expected" where E7 is used. As in `divergences`."""
        grid = errors.orders("orders", orders)
        worst = np.broadcast_to(self.worst(grid), (self.records, len(grid)))
        found = {"one-holder": self._one_holder(grid, way), "worst": worst}
        return {**found, "expected": self._expected(grid, way)} if self.by_step else found

    def sums(self, order: float) -> Array:
        """What each run cost each record at one order, Σ_t D_α(step t given the past): (runs, records)."""
        alpha = errors.number("order", order, above=1)
        return np.asarray(self._sums(np.array([alpha]))[..., 0] / (alpha - 1))

    def worst(self, orders: Any) -> Array:
        """The data-independent D_α of the plan in this direction, (orders,): every distance at the clip norm."""
        grid = errors.orders("orders", orders)
        return self._worst_cost(grid) / (grid - 1)

    def runs_needed(self, order: float, share: float = 0.5) -> float:
        """The log of how many runs would certify `share` of the worst case at `order`, by Hoeffding (E9, ERR 18).

        The least over the methods, half of the allowance for the mean itself and half for its error; at the failure
        probability that one estimate of a single order gets.
        """
        alpha = errors.number("order", order, above=1)
        errors.number("share", share, above=0, below=1)
        kappa, target = alpha - 1, share * float(self.worst([alpha])[0])
        larger = _inflated(alpha)
        gap = (larger - alpha) / kappa
        limits = self._worst_cost(larger) / gap
        found = [log_runs(limits, target * (larger - 1) / gap, error=0.5, failure=self._share(len(larger)))]
        if self.by_step and self.steps > 1:
            p = expected.exponent(self.steps)
            ladder = expected.inflated_order(alpha, np.arange(self.steps)[::-1], p)
            worst = [float(self._worst_at(np.array([ladder[t]]), t)[0]) for t in (0, -1)]
            scale = 3 * kappa * target
            found.append(log_runs(p * max(worst), scale, error=0.5, failure=self._share(self.steps - 1)))
        return float(min(np.min(one) for one in found))

    def _one_holder(self, grid: Array, way: Way) -> Array:
        larger = [_inflated(float(alpha)) for alpha in grid]
        every = np.unique(np.concatenate(larger))
        sums, worst = self._sums(every), self._worst_cost(every)
        mean = self._mean(sum(map(len, larger)), way)
        result = np.empty((self.records, len(grid)))
        for column, (alpha, inflated) in enumerate(zip(grid, larger, strict=True)):
            at = np.searchsorted(every, inflated)
            bounds = [
                one_holder.one_holder(sums[..., k], float(alpha), float(every[k]), log_mean=mean, worst=worst[k])
                for k in at
            ]
            result[:, column] = np.min(bounds, axis=0)
        return result

    def _expected(self, grid: Array, way: Way) -> Array:
        if self._history is None:
            self._history = ShiftHistory(self.records)
            for run, path in enumerate(self.distances):
                for distances, setting in zip(path, zip(self.noise, self.rates, strict=True), strict=True):
                    self._history.add(run, distances, (float(setting[0]), float(setting[1])), 1)
        mean = self._mean(len(grid) * max(1, self.steps - 1), way)
        return np.stack([self._history.divergence(float(alpha), "3n", mean, 1.0) for alpha in grid], axis=-1)

    def _mean_sums(self, grid: Array) -> Array:
        """γ^{1/l} (Π_i C_i)^{1/l} <= E[C] with probability 1 − γ, for l independent runs of summed cost C >= 0.

        Proof: Π_i C_i/E[C] is not negative and has mean 1, so by Markov it reaches 1/γ with probability at most γ. No
        range is needed, and costs that vary little lose little.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(self._sums(grid)).mean(axis=0)
        return np.asarray(np.exp(logs + math.log(self.failure / len(grid)) / self.runs) / (grid - 1))

    def _mean(self, estimates: int, way: Way) -> Any:
        """The mean over runs inside a method that makes so many estimates."""
        name = "plug-in" if way == "estimate" else self.estimator
        return Averaging(name, self._share(1)).over(estimates)

    def _share(self, estimates: int) -> float:
        """The failure probability of one of a method's estimates; the methods share equally."""
        return self.failure / ((2 if self.by_step else 1) * estimates)

    def _sums(self, orders: Array) -> Array:
        """Σ_t cost_t along every run, (runs, records, orders), not above the worst case."""
        cost, total = self._costing(orders), np.zeros((self.runs, self.records, len(orders)))
        for level, rate, steps in self._settings():
            if self.distances.size <= _EXACT:
                shifts = self.distances[:, steps] / level
                total += sgm.cost(shifts, orders, sampling_rate=rate, direction=self.direction).sum(axis=1)
                continue
            parts = np.array_split(steps, math.ceil(len(steps) * self.records / _AT_ONCE))
            together = max(1, _AT_ONCE // (len(steps) * self.records))
            for part, start in itertools.product(parts, range(0, self.runs, together)):
                some = slice(start, start + together)
                total[some] += cost(self.distances[some][:, part], level, rate).sum(axis=1)
        return np.minimum(total, self._worst_cost(orders))  # a table may be a millionth above the exact worst case

    def _worst_cost(self, orders: Array) -> Array:
        cost = self._costing(orders)
        with np.errstate(over="ignore"):
            each = [len(steps) * self._at_cap(cost, z, q) for z, q, steps in self._settings()]
        return np.asarray(np.sum(each, axis=0))

    def _worst_at(self, orders: Array, step: int) -> Array:
        return self._at_cap(self._costing(orders), float(self.noise[step]), float(self.rates[step]))

    @staticmethod
    def _at_cap(cost: StepCost, level: float, rate: float) -> Array:
        at_cap = cost.worst(level, rate)
        assert at_cap is not None
        return at_cap

    def _costing(self, orders: Any) -> StepCost:
        return StepCost(np.asarray(orders, dtype=float), adjacency="add-remove", direction=self.direction, cap=1.0)

    def _settings(self) -> list[tuple[float, float, npt.NDArray[np.int64]]]:
        """The different (noise, rate) of the plan and the steps that have them."""
        kinds, place = np.unique(np.stack([self.noise, self.rates], axis=1), axis=0, return_inverse=True)
        return [(float(z), float(q), np.flatnonzero(place.ravel() == i)) for i, (z, q) in enumerate(kinds)]


def _inflated(alpha: float) -> Array:
    """The orders o = 1 + a(α − 1) of one-Hölder (H2), whole where that is cheaper and costs little."""
    orders = 1 + np.array(INFLATIONS) * (alpha - 1)
    return np.unique(np.where(orders >= 9, np.ceil(orders), orders)[orders > alpha])
