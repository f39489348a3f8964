"""A study certified by truncation (H21): how often does a run of the plan cost a record more than a public budget?

    P(S)  <=  P(S, cost <= c) + p  <=  e^ε Q(S) + δ₁ + p,      p >= Pr_P[cost > c]

A run that would be cut off when its summed Rényi cost passes c is a filtered one (H4): (ε, δ₁) at every data set. Where
it is not cut it is the run of the plan itself, under either law. p is a probability of zeros and ones and bounded by
Clopper and Pearson over independent runs of P, the first argument's chain, so no exponential moment has to be known:

    none of l runs cut, confidence 1 − γ:     p = 1 − γ^{1/l},    about ln(1/γ)/p runs for p

ε, δ₁ and the order are fixed before the runs, and c follows from them and from the public plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant.repeated_runs.interval import ManyRuns
from bayesdp.compose.orders import default_orders
from bayesdp.errors import Array
from bayesdp.estimate import clopper_pearson_upper

_ROUNDING = 1 - 1e-12


class Budget(NamedTuple):
    """c: the `divergence` of one order that the costs of a run may add up to."""

    order: float
    divergence: float


@dataclass(frozen=True)
class Truncation:
    """What is to be certified, fixed before the runs.

    Args:
        epsilon: the ε aimed at, which stays as it is.
        delta: the δ aimed at; it comes out as δ₁ + p.
        share: how much of δ is for p, the runs that cost more: the rest is δ₁.
        order: the Rényi order of the budget; None takes the one that pays for most steps of a record at the clip norm.

    Bad input gets `InputError` naming the field.

    Examples:
        >>> bd.Truncation(epsilon=0.5, delta=0.002).runs_needed(failure=0.05)
        2995
    """

    epsilon: float
    delta: float
    share: float = 0.5
    order: float | None = None

    def __post_init__(self) -> None:
        errors.number("truncation epsilon", self.epsilon, above=0)
        errors.probability("truncation delta", self.delta)
        errors.probability("truncation share", self.share)
        if self.order is not None:
            errors.number("truncation order", self.order, above=1)

    @property
    def kept(self) -> float:
        """δ₁: what the filtered run may fail with."""
        return (1 - self.share) * self.delta

    def budget(self, runs: ManyRuns) -> Budget:
        """The c that follows from the public plan of the runs. Bad input: an ε too small for any order at δ₁."""
        orders = default_orders() if self.order is None else np.array([self.order])
        left = self.epsilon - convert.epsilon_per_order(np.zeros_like(orders), orders, self.kept)
        if left.max() <= 0:
            raise errors.refuse(
                "truncation epsilon",
                self.epsilon,
                f"large enough at δ₁={self.kept:g}",
                f"The least that leaves a budget is {float((self.epsilon - left).min()):.3g}.",
            )
        best = int(np.argmax(left / runs.worst(orders)))
        return Budget(float(orders[best]), float(left[best]) * _ROUNDING)

    def runs_needed(self, failure: float) -> int:
        """How many runs certify δ if none of them is cut, `failure` being what p may be wrong with: ln(1/γ)/p."""
        return math.ceil(math.log(errors.probability("failure", failure)) / math.log1p(-self.share * self.delta))

    def least_delta(self, runs: int, failure: float) -> float:
        """The δ that so many runs certify when none is cut: no study of theirs certifies less."""
        return self.kept + clopper_pearson_upper(0, runs, failure)


class Certified(NamedTuple):
    """For each record: how many runs were cut, and the δ at the truncation's ε, at most 1."""

    cut: Any
    delta: Array


def certified(runs: ManyRuns, truncation: Truncation) -> Certified:
    """(ε, δ₁ + p) of every record in the direction of `runs` (H21), right for each record but with `runs.failure`.

    Assumptions: the runs are independent runs of the first argument's chain, their number and `truncation` were fixed
    before them.
    """
    budget = truncation.budget(runs)
    sums = runs.sums(budget.order)
    cut = (sums > budget.divergence).sum(axis=0)
    p = np.array([clopper_pearson_upper(int(count), runs.runs, runs.failure) for count in cut])
    return Certified(cut, np.minimum(truncation.kept + p, 1.0))
