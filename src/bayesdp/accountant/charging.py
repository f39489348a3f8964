"""From what is told about a step to its charge: the cost (α−1) D_α of every record, exact, averaged or bounded.

(records,)            distances of the sum rule              →  the cost itself (B4, B14)
(records, batches)    Δ(B) for all batches B, with weights   →  their average (H1)
(records, batches)    Δ(B) for sampled batches               →  an upper confidence bound of that average (H1, H9)
(steps, records)      stored distances of many steps         →  their mean, by a lattice (`replayed`)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant.instance_plan import InstancePlan
from bayesdp.accountant.tallies import Charge, ExPost, OneHolder, Tally
from bayesdp.errors import Array


class Charging:
    """Checks what is told about steps of `plan` and costs it for `tally`; keeps nothing of it.

    `signal` is what the argument that describes a step is called. Bad input gets `InputError`.
    """

    def __init__(self, plan: InstancePlan, tally: Tally, signal: str) -> None:
        self.plan, self.tally, self.signal = plan, tally, signal
        self.step_cost = plan.step_cost()

    def described(
        self, run: int, count: int, sensitivities: Any, noise_std: Any, sampling_rate: Any, batch_weights: Any
    ) -> Charge:
        """Of `count` equal steps, by how far each record moves the update."""
        plan, adjacency = self.plan, self.plan.adjacency
        noise = errors.noise("noise_std", noise_std)
        rate = errors.rate("sampling_rate", sampling_rate)
        distances = self.step_cost.distances(self.signal, sensitivities)
        composition = errors.Argument("composition", plan.composition)
        if len(distances) != plan.records:
            expected = f"with one entry for each of the {plan.records} records"
            raise errors.refuse(self.signal, len(distances), expected, got=f"{len(distances)}")
        if distances.ndim == 2 and (self.tally.by_distance or adjacency == "replace-one"):
            expected = f"of shape ({plan.records},) for {composition} and {errors.Argument('adjacency', adjacency)}"
            raise errors.refuse(self.signal, distances.shape, expected, got=f"shape {distances.shape}")
        if distances.ndim == 1 and batch_weights is not None:
            raise errors.refuse("batch_weights", batch_weights, "to be left out without a batch axis")
        if distances.ndim == 2 and batch_weights is None and plan.composition != "ex-post":
            raise errors.refuse(
                "batch_weights",
                None,
                f"to be given for {composition}: an estimate over sampled batches has a failure probability that only "
                '"ex-post" pays for',
                got="",
            )
        costs = None if self.tally.by_distance else self._costs(distances, noise, rate, batch_weights)
        return Charge(run, count, noise, rate, distances, costs, self._worst(noise, rate))

    def handed_in(self, run: int, count: int, cost: Any, sampling_rate: Any) -> Charge:
        """Of `count` equal steps, by their costs (records, orders) from any divergence."""
        plan, rate = self.plan, errors.rate("sampling_rate", sampling_rate)
        if plan.cap is not None or self.tally.by_distance:
            composition = f"{errors.Argument('composition', plan.composition)}"
            reason = "a cap, which is a distance" if plan.cap is not None else composition
            raise errors.unmet(self.signal, None, errors.named(self.signal), f"cost, which does not go with {reason}")
        costs = errors.array("cost", cost, least=-1e-12, infinite=True, ndim=2)
        if costs.shape != (plan.records, len(plan.orders)):
            expected = f"of shape ({plan.records} records, {len(plan.orders)} orders)"
            raise errors.refuse("cost", costs.shape, expected, got=f"{costs.shape}")
        return Charge(run, count, None, rate, None, np.maximum(costs, 0), None)

    @property
    def adds_up(self) -> bool:
        """Whether the costs of many steps may be added up before they are charged (`replayed`)."""
        return isinstance(self.tally, ExPost | OneHolder) and self.step_cost.can_sum

    def replayed(self, run: int, distances: npt.NDArray[Any], noise_std: Any, sampling_rate: Any) -> Charge:
        """Of all steps of stored `distances`, (steps, records), where they add up."""
        noise, rate = errors.noise("noise_std", noise_std), errors.rate("sampling_rate", sampling_rate)
        costs = self.step_cost.mean_of_steps(self.signal, distances, noise, rate)
        return Charge(run, len(distances), noise, rate, None, costs, self._worst(noise, rate))

    def _worst(self, noise: float, rate: float) -> Array | None:
        return self.step_cost.worst(noise, rate) if isinstance(self.tally, OneHolder) else None

    def _costs(self, distances: Array, noise: float, rate: float, batch_weights: Any) -> Array:
        if distances.ndim == 1:
            return self.step_cost(distances, noise, rate)
        if batch_weights is not None:
            weights = errors.array("batch_weights", batch_weights, least=0, ndim=1)
            if len(weights) != distances.shape[1] or abs(weights.sum() - 1) > 1e-9:
                expected = f"to be {distances.shape[1]} probabilities that sum to 1"
                raise errors.refuse("batch_weights", batch_weights, expected)
            return self.step_cost.averaged(distances, noise, rate, weights)
        if self.plan.total_steps is None:
            raise errors.refuse(
                "total_steps",
                None,
                "to be given: sampled batches are estimated at every step, and the failure probability is shared out "
                "over all of them",
                "Or give batch_weights if the batches are all there are.",
                got="",
            )
        share = self.plan.failure / (self.plan.total_steps * len(self.plan.orders))
        return self.step_cost.bounded(distances, noise, rate, self.plan.estimator, share)
