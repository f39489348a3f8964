"""Individual budgets: each record takes part until its own is spent (SPEC H4), which is ordinary DP.

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
from bayesdp.errors import Array, InputError
from bayesdp.learn.schedule import phases

if TYPE_CHECKING:
    from bayesdp.learn.plan import Plan

KINDS = ("rdp", "gdp")
_BISECTIONS = 100


@dataclass(frozen=True)
class Filter:
    """A budget that every record has of its own.

    Args:
        epsilon: the DP ε, at the plan's δ, that a record's steps may add up to.
        kind: "rdp", or "gdp" where every record is in every step (sampling rate 1), which loses nothing in conversion.
        order: the Rényi order of "rdp"; None takes the one that pays for most steps of a record at the clip norm.

    Bad input gets `InputError` naming the field.
    """

    epsilon: float
    kind: Literal["rdp", "gdp"] = "rdp"
    order: float | None = None

    def __post_init__(self) -> None:
        errors.number("filter epsilon", self.epsilon, above=0)
        errors.one_of("filter kind", self.kind, KINDS)
        if self.order is not None:
            errors.number("filter order", self.order, above=1)
            if self.kind == "gdp":
                raise errors.refuse("filter order", self.order, 'to be left out for kind="gdp"')

    def check(self, plan: Plan) -> None:
        """Refuse a plan that this filter cannot serve."""
        if not plan.bounded:
            raise InputError("Expected a clip norm with a filter, got clip_norm=None.")
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

    def accountant(self, records: int, plan: Plan) -> InstanceAccountant:
        """What admits the records of a run of `plan`; distances in units of the step's sensitivity.

        Bad input: an ε too small for any order at the plan's δ, or for one step at the clip norm: then nobody would
        take part in anything.
        """
        order, budget, steps = self._settled(plan)
        if steps < 1:
            raise errors.refuse(
                "filter epsilon",
                self.epsilon,
                "to pay for at least one step of a record at the clip norm",
                f"It pays for {steps:.2g} of one. Use more noise, or a lower sampling rate.",
            )
        if order is None:
            return InstanceAccountant(records, "gdp-filter", budget=budget, cap=1.0)
        return InstanceAccountant(records, "filter", orders=[order], budget=budget * (1 - 1e-12), cap=1.0)

    def paid(self, plan: Plan) -> float:
        """How many average steps of the plan a record at the clip norm can pay for: a public number."""
        return self._settled(plan)[2]

    def _settled(self, plan: Plan) -> tuple[float | None, float, float]:
        """Order (None for "gdp"), budget, and how many steps at the clip norm it pays for."""
        if (plan.noise == 0).any():
            raise errors.refuse("noise_multiplier", plan.noise_multiplier, "to be above 0 with a filter")
        if self.kind == "gdp":
            mu = _mu(self.epsilon, plan.delta)
            return None, mu, float(plan.steps * mu**2 / np.sum(plan.noise**-2.0))
        orders = default_orders() if self.order is None else np.array([self.order])
        budgets = self.epsilon - convert.epsilon_per_order(np.zeros_like(orders), orders, plan.delta, "hockey-stick")
        if budgets.max() <= 0:
            raise errors.refuse(
                "filter epsilon",
                self.epsilon,
                f"large enough at δ={plan.delta:g}",
                f"The least that leaves a budget is {float((self.epsilon - budgets).min()):.3g}"
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
    """The largest μ whose Gaussian has at most this ε (B8)."""
    low, high = 0.0, 1.0
    while hockey_stick.gaussian_epsilon(delta, high) <= epsilon and high < 1e6:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if hockey_stick.gaussian_epsilon(delta, middle) <= epsilon else (low, middle)
    return low
