"""The cost of steps averaged over a population, estimated from a sample of it at every step (C5).

    total(α) = Σ_t (1/T) log U_t,     U_t an upper bound of E_x[ exp(T cost_t(x)) ]

T = 1 is S1's product rule (C6), T the planned number of steps S0's Hölder rule (C7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.accountant import state as states
from bayesdp.accountant.step_cost import StepCost
from bayesdp.compose.orders import default_orders
from bayesdp.errors import Array
from bayesdp.estimate import upper_mean

KIND = "bayesdp/population"
VERSION = 1


class PopulationCost:
    """Streams one estimate per step and order; memory does not grow with steps."""

    def __init__(
        self,
        records: int,
        *,
        orders: Any,
        total_steps: int | None,
        cap: float | None,
        exponent: int | None,
        estimator: str,
        failure: float,
        adjacency: str,
        direction: str = "both",
    ) -> None:
        self.records, self.total_steps, self.cap = records, total_steps, cap
        self.exponent, self.estimator, self.failure, self.adjacency = exponent or 1, estimator, failure, adjacency
        self.direction = direction
        self.orders = default_orders() if orders is None else errors.orders("orders", orders)
        self.weights = None
        self._step_cost = StepCost(self.orders, adjacency=adjacency, direction=direction, cap=cap)
        self.total = np.zeros(len(self.orders))
        self.steps = 0
        self.sampled = False

    def step(
        self, distances: Any = None, *, noise_std: Any, sampling_rate: Any, steps: int = 1, cost: Any = None
    ) -> None:
        """Add one estimate of a step's cost, `steps` times: E[Y^T]^(steps/T) is still one estimate."""
        count = errors.whole("steps", steps, least=1)
        errors.more_steps(self.total_steps, self.steps, count)
        rate = errors.rate("sampling_rate", sampling_rate)
        costs, worst = self._costs(distances, noise_std, rate, cost)
        if len(costs) != self.records:
            raise errors.refuse(
                "distances",
                len(costs),
                f"with one entry for each of the {self.records} records",
                got=f"{len(costs)}",
            )
        scale = float(self.exponent)
        bound = upper_mean(
            scale * costs,
            method=self.estimator,
            failure=self.failure,
            log_high=None if worst is None else scale * worst,
        )
        self.total = self.total + count * bound / scale
        self.steps += count
        self.sampled |= rate < 1

    def cost(self, order: float) -> float:
        """The total at one of the orders."""
        at = np.flatnonzero(self.orders == errors.number("order", order, above=1))
        if not len(at):
            raise errors.refuse("order", order, f"to be one of {np.array2string(self.orders, threshold=8)}")
        return float(self.total[int(at[0])])

    def state(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "version": VERSION,
            "config": {
                "records": self.records,
                "orders": self.orders,
                "total_steps": self.total_steps,
                "cap": self.cap,
                "exponent": self.exponent,
                "estimator": self.estimator,
                "failure": self.failure,
                "adjacency": self.adjacency,
                "direction": self.direction,
            },
            "total": self.total,
            "steps": self.steps,
            "sampled": self.sampled,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PopulationCost:
        states.check(state, KIND, VERSION, {"config", "total", "steps", "sampled"})
        self = cls(**state["config"])
        self.total = states.shaped(state["total"], (len(self.orders),))
        self.steps, self.sampled = errors.whole("steps", state["steps"], least=0), bool(state["sampled"])
        return self

    def _costs(self, distances: Any, noise_std: Any, rate: float, cost: Any) -> tuple[Array, Array | None]:
        if (cost is None) == (distances is None):
            raise errors.unmet(
                "distances",
                distances,
                f"either {errors.named('distances')} or {errors.named('cost')}",
                "both" if cost is not None else "none",
            )
        if cost is not None:
            if self.cap is not None:
                raise errors.unmet(
                    "distances",
                    None,
                    errors.named("distances"),
                    "cost, which does not go with a cap, which is a distance",
                )
            given = errors.array("cost", cost, least=-1e-12, infinite=True, ndim=2)
            if given.shape[1] != len(self.orders):
                raise errors.refuse(
                    "cost", given.shape, f"with {len(self.orders)} orders on the last axis", got=f"{given.shape}"
                )
            return np.maximum(given, 0), None
        noise = errors.noise("noise_std", noise_std)
        checked = self._step_cost.distances("distances", distances)
        if checked.ndim != 1:
            raise errors.refuse("distances", checked.shape, "with 1 dimension(s)", got=f"shape {checked.shape}")
        costs, worst = self._step_cost(checked, noise, rate), self._step_cost.worst(noise, rate)
        return (costs, None) if worst is None else (np.minimum(costs, worst), worst)
