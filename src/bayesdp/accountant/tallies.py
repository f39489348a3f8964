"""What is kept along a run for each record, and what is made of it: one class for each composition.

    ExPost      Σ cost per run and order         →  ε of the run that happened: ex-post (H3, H12)
    OneHolder   Σ cost per run and order         →  one average over runs: one-Hölder (H2)
    Expected    every squared shift              →  an average over runs at every step: expected composition (E7)
    Filtered    what each record has spent       →  the budget of a filter, as ordinary DP (H4)

All have the same verbs: `refusal` (before anything changes), `charge`, `epsilon`, `state`, `restore`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bayesdp import convert, errors
from bayesdp.accountant import state as states
from bayesdp.accountant.averaging import Averaging
from bayesdp.accountant.repeated_runs.shift_history import ShiftHistory
from bayesdp.accountant.step_cost import FAR
from bayesdp.accountant.worst_case import PlanDP, WorstCaseAccountant
from bayesdp.compose import ex_post, one_holder
from bayesdp.compose.filters import GaussianFilter, RenyiBudgets, RenyiFilter
from bayesdp.convert import Strength
from bayesdp.divergence import hockey_stick
from bayesdp.errors import Array, InputError, whole
from bayesdp.guarantee import Adjacency

Mask = npt.NDArray[np.bool_]


class Charge(NamedTuple):
    """`steps` steps of one run: distances where a Gaussian step was described, costs where they are needed."""

    run: int
    steps: int
    noise: float | None
    rate: float
    distances: Array | None
    costs: Array | None
    worst: Array | None


class Tally(Protocol):
    """The common verbs."""

    by_distance: bool
    """Whether distances are charged, and no costs are needed."""

    def refusal(self, charge: Charge) -> InputError | None: ...

    def charge(self, charge: Charge) -> Mask | None: ...

    def epsilon(self, delta: float, run: int | None, dp: PlanDP | None) -> tuple[Array, PlanDP | None]:
        """ε of every record, and the DP of the plan that limits it (None where there is none); `dp` if it is known."""
        ...

    def cost(self, column: int, run: int | None) -> Array: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


class _Sums:
    by_distance = False

    def __init__(self, records: int, orders: Array) -> None:
        self.records, self.orders = records, orders
        self.sums: dict[int, Array] = {}

    def refusal(self, charge: Charge) -> InputError | None:  # noqa: ARG002 - one signature for all tallies
        return None

    def charge(self, charge: Charge) -> None:
        assert charge.costs is not None
        if charge.run in self.sums:
            self.sums[charge.run] += charge.steps * charge.costs
        else:
            self.sums[charge.run] = charge.steps * charge.costs

    def cost(self, column: int, run: int | None) -> Array:
        chosen = self.chosen(run)
        if len(chosen) > 1:
            raise errors.refuse(
                "run",
                run,
                f"to be one of {sorted(self.sums)}: there are several",
            )
        return self.sums[chosen[0]][:, column].copy() if chosen else np.zeros(self.records)

    def chosen(self, run: int | None) -> list[int]:
        if run is None:
            return sorted(self.sums)
        if run not in self.sums:
            raise errors.refuse("run", run, f"to be one of {sorted(self.sums)}")
        return [run]

    def state(self) -> dict[str, Any]:
        # Copies: the sums go on growing in place.
        return {"sums": {str(run): value.copy() for run, value in self.sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        shape = (self.records, len(self.orders))
        self.sums = {int(run): states.shaped(value, shape) for run, value in state["sums"].items()}


class ExPost(_Sums):
    """The loss of the run that happened (H3): weak (H14), with a cap mixed with the plan's own DP; or strong (H12)."""

    def __init__(
        self,
        records: int,
        orders: Array,
        weights: Array | None,
        cap: float | None,
        adjacency: Adjacency,
        strength: Strength,
    ) -> None:
        super().__init__(records, orders)
        self.weights, self.cap, self.adjacency, self.strength = weights, cap, adjacency, strength
        self.dp: dict[int, WorstCaseAccountant] = {}

    def refusal(self, charge: Charge) -> InputError | None:
        if self.cap is not None and charge.noise is not None and not 0 < charge.noise / self.cap < math.inf:
            return errors.unmet(
                "noise_std",
                charge.noise,
                f"{errors.named('noise_std')}/{errors.named('cap')} to be a positive number",
                f"{errors.named('noise_std')}={charge.noise:g}, {errors.named('cap')}={self.cap:g}",
            )
        return None

    def charge(self, charge: Charge) -> None:
        super().charge(charge)
        if self.cap is not None and charge.noise is not None:
            dp = self.dp.setdefault(charge.run, WorstCaseAccountant(engine="pld", adjacency=self.adjacency))
            dp.step(noise_multiplier=charge.noise / self.cap, sampling_rate=charge.rate, steps=charge.steps)

    def epsilon(self, delta: float, run: int | None, dp: PlanDP | None) -> tuple[Array, PlanDP | None]:
        runs = self.chosen(run)
        if dp is None and self.cap is not None:
            each = [PlanDP.of(self.dp[r], delta) for r in runs]
            dp = PlanDP(*(max(values) for values in zip(*each, strict=True)))
        return self._mixed(delta, runs, dp.at_share if dp is not None and self.strength == "weak" else None), dp

    def uncapped(self, delta: float, run: int | None) -> Array:
        """ε of every record by its own costs alone, without what the plan promises everybody."""
        return self._mixed(delta, self.chosen(run), None)

    def _mixed(self, delta: float, runs: list[int], dp: float | None) -> Array:
        costs = np.stack([self.sums[r] for r in runs])
        epsilons = ex_post.epsilon(costs, self.orders, delta, self.weights, strength=self.strength, dp=dp)
        return np.asarray(epsilons.max(axis=0))

    def state(self) -> dict[str, Any]:
        return {**super().state(), "dp": {str(run): dp.state() for run, dp in self.dp.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.dp = {int(run): WorstCaseAccountant.from_state(dp) for run, dp in state["dp"].items()}
        if set(self.dp) != (set(self.sums) if self.cap is not None else set()):
            raise errors.unmet(
                "state", sorted(self.dp), f"a state with DP steps of the runs {sorted(self.sums)}", f"{sorted(self.dp)}"
            )


class OneHolder(_Sums):
    """One average over runs of the summed cost, limited by the worst case at the cap."""

    def __init__(self, records: int, orders: Array, averaging: Averaging) -> None:
        super().__init__(records, orders)
        self.averaging = averaging
        self.worst: dict[int, Array] = {}
        self.plans: dict[int, Counter[tuple[float, float]]] = {}

    def charge(self, charge: Charge) -> None:
        super().charge(charge)
        # Costs that were handed in say nothing of their noise: only their number can be compared.
        self.plans.setdefault(charge.run, Counter())[charge.noise or 0.0, charge.rate] += charge.steps
        if charge.worst is not None:
            self.worst[charge.run] = self.worst.get(charge.run, 0.0) + charge.steps * charge.worst

    def epsilon(self, delta: float, run: int | None, dp: PlanDP | None) -> tuple[Array, PlanDP | None]:  # noqa: ARG002 - all runs count
        lengths = {sum(plan.values()) for plan in self.plans.values()}
        if len(lengths) != 1:
            raise errors.unmet("run", sorted(lengths), "all runs to have equally many steps", f"{sorted(lengths)}")
        first = self.plans[min(self.plans)]
        if any(plan != first for plan in self.plans.values()):
            raise errors.unmet(
                "noise_std",
                None,
                "every run to use the same plan",
                f"runs of different {errors.named('noise_std')} or {errors.named('sampling_rate')}",
            )
        sums = np.stack([self.sums[r] for r in sorted(self.sums)])
        # The largest, though all runs follow one plan: they may have added it up in another order.
        worst = np.max(list(self.worst.values()), axis=0) if self.worst else None
        if worst is not None:
            sums = np.minimum(sums, worst)  # a table may be a millionth above the exact worst case
        mean = self.averaging.over(one_holder.estimates(self.orders))
        divergences = one_holder.best(sums, self.orders, log_mean=mean, worst=worst)
        return np.asarray(convert.epsilon(divergences * (self.orders - 1), self.orders, delta)), None

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "worst": {str(run): value for run, value in self.worst.items()},
            "plans": {str(run): [[*setting, n] for setting, n in plan.items()] for run, plan in self.plans.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.worst = {int(r): states.shaped(value, self.orders.shape) for r, value in state["worst"].items()}
        self.plans = {
            int(r): Counter({(float(noise), float(rate)): whole("steps", n, least=1) for noise, rate, n in plan})
            for r, plan in state["plans"].items()
        }
        if set(self.plans) != set(self.sums):
            raise errors.unmet(
                "state",
                sorted(self.plans),
                f"a state with plans of the runs {sorted(self.sums)}",
                f"{sorted(self.plans)}",
            )


class Expected:
    """Expected composition (S3's Theorem 3.3, E7), limited by the worst-case sum at each order itself."""

    by_distance = True

    def __init__(self, records: int, orders: Array, averaging: Averaging, p: float | str, cap: float | None) -> None:
        self.orders, self.averaging, self.p, self.cap = orders, averaging, p, cap
        self.history = ShiftHistory(records)

    def refusal(self, charge: Charge) -> InputError | None:
        assert charge.noise is not None
        assert charge.distances is not None
        if charge.distances.max() > FAR * charge.noise:
            return errors.refuse(
                "noise_std",
                charge.noise,
                f"of at least a thousandth of the largest distance, {charge.distances.max():g}, for "
                f'{errors.named("composition")}="expected"',
                got=f"{errors.named('noise_std')}={charge.noise:g}",
            )
        return self.history.refusal(charge.run, (charge.noise, charge.rate), charge.steps)

    def charge(self, charge: Charge) -> None:
        assert charge.noise is not None
        assert charge.distances is not None
        self.history.add(charge.run, charge.distances, (charge.noise, charge.rate), charge.steps)

    def epsilon(self, delta: float, run: int | None, dp: PlanDP | None) -> tuple[Array, PlanDP | None]:  # noqa: ARG002 - all runs count
        mean = self.averaging.over((self.history.steps - 1) * len(self.orders))
        columns = [self.history.divergence(float(order), self.p, mean, self.cap) for order in self.orders]
        divergences = np.stack(columns, axis=-1)
        if self.cap is not None:
            divergences = np.minimum(divergences, self.history.worst_cost(self.orders, self.cap) / (self.orders - 1))
        return np.asarray(convert.epsilon(divergences * (self.orders - 1), self.orders, delta)), None

    def cost(self, column: int, run: int | None) -> Array:  # noqa: ARG002 - there is none
        raise errors.unmet(
            "composition", "expected", 'another composition: "expected" has no tally at one order; ask epsilon()'
        )

    def state(self) -> dict[str, Any]:
        return self.history.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self.history.restore(state)


class Filtered:
    """Each record takes part until its budget is spent; the promise is the budget, whatever was spent."""

    def __init__(self, kept: RenyiFilter | RenyiBudgets | GaussianFilter) -> None:
        self.kept = kept
        self.by_distance = isinstance(kept, GaussianFilter)

    def refusal(self, charge: Charge) -> InputError | None:
        if (charge.run, charge.steps) != (0, 1):
            return errors.unmet(
                "run",
                charge.run,
                "a filter to be asked step by step in run 0",
                f"{errors.Argument('run', charge.run)}, {errors.Argument('steps', charge.steps)}",
            )
        if self.by_distance and charge.rate != 1:
            return errors.refuse(
                "sampling_rate",
                charge.rate,
                f'to be 1 for {errors.named("composition")}="gdp-filter"',
                f'Use {errors.named("composition")}="filter".',
                got=f"{errors.named('sampling_rate')}={charge.rate:g}",
            )
        return None

    def charge(self, charge: Charge) -> Mask:
        if isinstance(self.kept, GaussianFilter):
            assert charge.noise is not None
            assert charge.distances is not None
            return self.kept.admit(charge.distances / charge.noise)
        assert charge.costs is not None
        return self.kept.admit(charge.costs if isinstance(self.kept, RenyiBudgets) else charge.costs[:, 0])

    def epsilon(self, delta: float, run: int | None, dp: PlanDP | None) -> tuple[Array, PlanDP | None]:  # noqa: ARG002 - what was spent does not count
        kept = self.kept
        if isinstance(kept, GaussianFilter):
            different, place = np.unique(kept.mu, return_inverse=True)
            values = np.array([hockey_stick.gaussian_epsilon(delta, float(mu)) for mu in different])[place.ravel()]
        elif isinstance(kept, RenyiBudgets):
            values = np.asarray(convert.epsilon(kept.budgets * (kept.orders - 1), kept.orders, delta))
            values = np.where((kept.budgets == 0).any(axis=1), 0.0, values)  # they take part in nothing
        else:
            values = np.asarray(convert.epsilon([(kept.order - 1) * kept.budget], [kept.order], delta))
        return np.broadcast_to(values, (len(kept.spent),)).copy(), None

    def cost(self, column: int, run: int | None) -> Array:  # noqa: ARG002 - one order, one run
        if isinstance(self.kept, RenyiBudgets):
            return np.asarray(self.kept.spent[:, column] * (self.kept.orders[column] - 1))
        scale = self.kept.order - 1 if isinstance(self.kept, RenyiFilter) else 1.0
        return self.kept.spent * scale

    def state(self) -> dict[str, Any]:
        return {**self.kept.state(), "active": self.kept.active.astype(np.float64)}

    def restore(self, state: Mapping[str, Any]) -> None:
        kept = type(self.kept).restore({**state, "active": np.asarray(state["active"]) != 0})
        told, planned = kept.state(), self.kept.state()
        for key in planned.keys() - {"spent", "active"}:
            if not np.array_equal(told[key], planned[key]):
                raise errors.refuse(f"state {key}", told[key], f"to be {planned[key]!r}, as configured")
        if kept.spent.shape != self.kept.spent.shape:
            raise errors.refuse("state spent", kept.spent.shape, f"to have shape {self.kept.spent.shape}")
        self.kept = kept
