"""Individual budgets: each record takes part until its own is spent (individual filters, H4), which is ordinary DP.

    "rdp"   Σ_t D_α(step t, record i) <= R   at one order α fixed beforehand, any sampling rate
    "gdp"   Σ_t (c_{t,i}/s_t)² <= μ²          without sampling only

A plan whose steps would cost everybody more than ε in the worst case may then go on: those whose gradients are small
stay in, those who have paid ε are left out of every later step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.compose.orders import default_orders
from bayesdp.divergence import hockey_stick, sgm
from bayesdp.errors import Argument, Array, unmet
from bayesdp.learn.loop.schedule import phases

if TYPE_CHECKING:
    from bayesdp.learn.loop.plan import Plan

KINDS = ("rdp", "gdp")
_BISECTIONS = 100


@dataclass(frozen=True)
class Filter:
    """A budget that every record has of its own.

    Args:
        epsilon: the DP ε, at the plan's δ, that a record's steps may add up to: one for all, or one for each record of
            the data, as people chose: each is promised its own, and everybody the largest, which must be public. One
            that pays for nothing, such as 0, means to take part in nothing.
        kind: "rdp", or "gdp" where every record is in every step (sampling rate 1), which loses nothing in conversion.
        order: the Rényi order of "rdp"; None takes the one that pays for most steps of a record at the clip norm: with
            budgets of their own, for each of them, so that nobody's choice has a say in another's.

    Bad input gets `InputError` naming the field.

    Examples:
        >>> bd.Filter(2.0).largest, bd.Filter([0.5, 2.0, 1.0]).largest
        (2.0, 2.0)
    """

    epsilon: float | tuple[float, ...] | Array
    kind: Literal["rdp", "gdp"] = "rdp"
    order: float | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.epsilon) == 0:
            errors.number("filter epsilon", self.epsilon, above=0)
        else:
            chosen = errors.array("filter epsilon", self.epsilon, least=0, ndim=1)
            if not (chosen > 0).any():
                raise errors.refuse("filter epsilon", 0.0, "to be above 0 for somebody")
            object.__setattr__(self, "epsilon", tuple(chosen.tolist()))  # compared and hashed like any other field
        errors.one_of("filter kind", self.kind, KINDS)
        if self.order is not None:
            errors.number("filter order", self.order, above=1)
            if self.kind == "gdp":
                raise errors.refuse("filter order", self.order, 'to be left out for kind="gdp"')

    def check(self, plan: Plan) -> None:
        """Refuse a plan that this filter cannot serve."""
        if not plan.bounded:
            raise unmet("clip_norm", None, "a clip norm with a filter", f"{Argument('clip_norm', None)}")
        if plan.adjacency != "add-remove":
            raise errors.refuse(
                "adjacency", plan.adjacency, 'to be "add-remove" with a filter', "Filters drop records."
            )
        if self.kind == "gdp" and (plan.rates < 1).any():
            raise errors.refuse(
                "sampling_rate",
                plan.sampling_rate,
                'to be 1 for a filter of kind="gdp"',
                'A sampled step has no Gaussian filter (H4). Use kind="rdp".',
            )

    def accountant(self, records: int, plan: Plan, witnesses: int = 0) -> InstanceAccountant:
        """What admits the records of a run of `plan`, then its witnesses; distances in units of the step's sensitivity.

        Bad input: an ε too small for any order at the plan's δ, or for one step at the clip norm: then nobody would
        take part in anything.
        """
        order, budget, steps = self._settled(plan, self.largest)
        if steps < 1:
            raise errors.refuse(
                "filter epsilon",
                self.largest,
                "to pay for at least one step of a record at the clip norm",
                f"It pays for {steps:.2g} of one. Use more noise, or a lower sampling rate.",
            )
        if isinstance(self.epsilon, tuple):
            return self._of_each(records, witnesses, plan, self.epsilon)
        known = records + witnesses
        if order is None:
            return InstanceAccountant(records=known, composition="gdp-filter", budget=budget, cap=1.0)
        return InstanceAccountant(
            records=known, composition="filter", orders=[order], budget=budget * (1 - 1e-12), cap=1.0
        )

    def paid(self, plan: Plan) -> float:
        """How many average steps of the plan a record at the clip norm can pay for: a public number."""
        return self._settled(plan, self.largest)[2]

    @property
    def largest(self) -> float:
        """The ε that everybody is promised."""
        return max(self.epsilon) if isinstance(self.epsilon, tuple) else float(self.epsilon)

    def _of_each(self, records: int, witnesses: int, plan: Plan, chosen: tuple[float, ...]) -> InstanceAccountant:
        """Records of the data first; witnesses beyond them are charged as if they had chosen the largest."""
        if len(chosen) != records:
            raise errors.refuse(
                "filter epsilon", len(chosen), f"for each of the {records} records", got=f"{len(chosen)} of them"
            )
        wanted = np.array([*chosen, *[self.largest] * witnesses])
        different, place = np.unique(wanted, return_inverse=True)
        if self.kind == "gdp":
            mu = np.array([_mu(float(epsilon), plan.delta) if epsilon > 0 else 0.0 for epsilon in different])
            return InstanceAccountant(records=len(wanted), composition="gdp-filter", budget=mu[place], cap=1.0)
        grid = default_orders() if self.order is None else np.array([self.order])
        budgets = different[:, None] - convert.epsilon_per_order(np.zeros_like(grid), grid, plan.delta)
        best = np.argmax(budgets / _worst_case(plan, grid), axis=1)
        used, column = np.unique(best, return_inverse=True)
        limits, rows = np.full((len(different), len(used)), np.inf), np.arange(len(different))
        # An ε of 0 is no wish to be one of δ's.
        limits[rows, column] = np.where(different > 0, np.maximum(budgets[rows, best], 0.0), 0.0) * (1 - 1e-12)
        return InstanceAccountant(
            records=len(wanted), composition="filter", orders=grid[used], budget=limits[place], cap=1.0
        )

    def _settled(self, plan: Plan, epsilon: float) -> tuple[float | None, float, float]:
        """Order (None for "gdp"), budget, and how many steps at the clip norm it pays for."""
        if (plan.noise == 0).any():
            raise errors.refuse("noise_multiplier", plan.noise_multiplier, "to be above 0 with a filter")
        if self.kind == "gdp":
            mu = _mu(epsilon, plan.delta)
            return None, mu, float(plan.steps * mu**2 / np.sum(plan.noise**-2.0))
        orders = default_orders() if self.order is None else np.array([self.order])
        budgets = epsilon - convert.epsilon_per_order(np.zeros_like(orders), orders, plan.delta)
        if budgets.max() <= 0:
            raise errors.refuse(
                "filter epsilon",
                epsilon,
                f"large enough at δ={plan.delta:g}",
                f"The least that leaves a budget is {float((epsilon - budgets).min()):.3g}"
                + (f" at order {self.order:g}." if self.order is not None else "."),
            )
        share = budgets / _worst_case(plan, orders)
        best = int(np.argmax(share))
        return float(orders[best]), float(budgets[best]), float(share[best] * plan.steps)


def _worst_case(plan: Plan, orders: Array) -> Array:
    """Σ_t D_α of a record at the clip norm, for every order."""
    kinds = phases(plan.noise, plan.rates)
    costs = sum(count * sgm.cost([1 / z], orders, sampling_rate=q)[0] for z, q, count in kinds)
    return np.asarray(costs / (orders - 1))


def _mu(epsilon: float, delta: float) -> float:
    """The largest μ whose Gaussian has at most this ε (hockey stick, B8)."""
    low, high = 0.0, 1.0
    while hockey_stick.gaussian_epsilon(delta, high) <= epsilon and high < 1e6:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if hockey_stick.gaussian_epsilon(delta, middle) <= epsilon else (low, middle)
    return low
