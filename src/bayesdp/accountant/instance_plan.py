"""What an instance accountant is told before the run: which records, which composition, which orders and bounds.

Everything here is public and fixed in advance; a combination that has no meaning is refused now rather than at the
first step.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.accountant.averaging import Averaging
from bayesdp.accountant.step_cost import DIRECTIONS, StepCost
from bayesdp.accountant.tallies import Expected, ExPost, Filtered, OneHolder, Tally
from bayesdp.compose.filters import GaussianFilter, RenyiBudgets, RenyiFilter
from bayesdp.compose.orders import default_orders
from bayesdp.convert import STRENGTHS, Strength
from bayesdp.errors import Array
from bayesdp.estimate import METHODS
from bayesdp.guarantee import ADJACENCIES, Adjacency

COMPOSITIONS = ("ex-post", "expected", "one-holder", "filter", "gdp-filter")
AVERAGES = ("expected", "one-holder")
"""Compositions that average over runs."""

_FEW_ORDERS = np.array([1.5, 2, 3, 4, 6, 8, 16, 32, 64])
"""Orders of "expected", which needs costs at many inflated orders for each of these."""


@dataclass(frozen=True, kw_only=True)
class InstancePlan:
    """The settings of an `InstanceAccountant`, checked: see there for what each of them means."""

    records: int
    composition: str
    orders: Array
    weights: Array | None
    total_steps: int | None
    cap: float | None
    adjacency: Adjacency
    direction: str
    failure: float
    estimator: str
    p: float | str
    budget: float | Array | None
    strength: Strength

    def __post_init__(self) -> None:
        def put(**values: object) -> None:
            for name, value in values.items():
                object.__setattr__(self, name, value)

        errors.one_of("composition", self.composition, COMPOSITIONS)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        if self.composition != "ex-post" and self.adjacency == "replace-one":
            raise errors.refuse("adjacency", self.adjacency, f'to be "add-remove" for {self._composition}')
        errors.one_of("direction", self.direction, DIRECTIONS)
        errors.one_of("estimator", self.estimator, METHODS)
        errors.one_of("strength", self.strength, STRENGTHS)
        if self.strength == "strong" and self.composition != "ex-post":
            raise errors.refuse(
                "strength", self.strength, f'to be "weak" for {self._composition}, which bounds no tail of the loss'
            )
        given, default = self.orders, _FEW_ORDERS if self.composition == "expected" else default_orders()
        put(
            records=errors.whole("records", self.records, least=1),
            total_steps=None if self.total_steps is None else errors.whole("total_steps", self.total_steps, least=1),
            cap=None if self.cap is None else errors.number("cap", self.cap, above=0),
            failure=errors.probability("failure", self.failure),
            p=self.p if self.p == "3n" else errors.number("p", self.p, above=1),
            orders=default if given is None else errors.orders("orders", given),
        )
        put(weights=self._checked_weights(given), budget=self._checked_budget(given))
        if self.composition in AVERAGES and METHODS[self.estimator].needs_range and self.cap is None:
            raise errors.refuse(
                "cap",
                None,
                f"to be given for {errors.Argument('estimator', self.estimator)}: a bound on an average over runs "
                "needs the worst case",
                f'Or use {errors.named("estimator")}="plug-in", which is an estimate and says so.',
                got="",
            )

    def config(self) -> dict[str, Any]:
        """The settings by name, as plain values and arrays: `InstancePlan(**config)` is the same plan."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}

    def new_tally(self) -> Tally:
        """The tally of this composition, with nothing charged."""
        averaging = Averaging(self.estimator, self.failure)
        if self.composition == "expected":
            return Expected(self.records, self.orders, averaging, self.p, self.cap)
        if self.composition == "one-holder":
            return OneHolder(self.records, self.orders, averaging)
        if isinstance(self.budget, np.ndarray) and self.composition == "filter":
            return Filtered(RenyiBudgets(self.orders, self.budget))
        if self.budget is not None and self.composition == "filter":
            return Filtered(RenyiFilter(self.records, float(self.orders[0]), float(self.budget)))
        if self.budget is not None:
            return Filtered(GaussianFilter(self.records, self.budget))
        return ExPost(self.records, self.orders, self.weights, self.cap, self.adjacency, self.strength)

    def step_cost(self) -> StepCost:
        """What a step costs at these orders."""
        return StepCost(self.orders, adjacency=self.adjacency, direction=self.direction, cap=self.cap)

    @property
    def _composition(self) -> errors.Argument:
        return errors.Argument("composition", self.composition)

    def _checked_weights(self, orders: Any) -> Array | None:
        weights = self.weights
        if weights is None:
            return None
        result = errors.array("weights", weights, above=0, ndim=1)
        if self.composition != "ex-post":
            raise errors.refuse("weights", weights, f'to be left out unless {errors.named("composition")}="ex-post"')
        if np.shape(orders) != result.shape or not np.array_equal(self.orders, np.asarray(orders, dtype=float)):
            raise errors.refuse("orders", orders, "to be ascending, one for each of the weights")
        if not math.isclose(result.sum(), 1, rel_tol=1e-9):
            raise errors.refuse("weights", weights, "to sum to 1")
        return result

    def _checked_budget(self, orders: Any) -> float | Array | None:
        if self.composition not in ("filter", "gdp-filter"):
            if self.budget is not None:
                expected = 'to be left out unless composition is "filter" or "gdp-filter"'
                raise errors.refuse("budget", self.budget, expected)
            return None
        if self.direction == "add":
            expected = f'to be "both" for {self._composition}'
            raise errors.refuse("direction", self.direction, expected, "DP is both directions.")
        chosen = self.budget is not None and np.ndim(self.budget) > 0
        if self.composition == "filter" and (orders is None or (len(self.orders) != 1 and not chosen)):
            expected = f'to be one order for {errors.named("composition")}="filter"'
            raise errors.refuse("orders", orders, expected, "A filter fixes its order.")
        if not chosen:
            return errors.number("budget", self.budget, above=0)
        shape = (self.records,) if self.composition == "gdp-filter" else (self.records, len(self.orders))
        each = errors.array("budget", self.budget, least=0, infinite=self.composition == "filter", ndim=(1, 2))
        if each.shape == (self.records,) and shape == (self.records, 1):
            each = each[:, None]
        if each.shape != shape:
            raise errors.refuse("budget", each.shape, f"to be a number or of shape {shape}", got=f"shape {each.shape}")
        return each
