"""Instance accountant: what a training run costs each named record (paper S3; SPEC part E, H1-H4, H12).

    cost_t = (α-1) D_α of step t given the past, for every record and order

The compositions differ in what they make of the costs (`tallies.py`):

    "ex-post"     ε of the run that happened, by a mixture over orders (H3, H12): no estimation, the default
    "expected"    S3's Theorem 3.3, an average over runs at every step (E7)
    "one-holder"  one average over runs of the summed cost (H2)
    "filter"      a record takes part until its Rényi budget is spent (H4): ordinary DP
    "gdp-filter"  the same on squared shifts, without sampling (H4): ordinary DP
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.accountant import state as states
from bayesdp.accountant.step_cost import DIRECTIONS, StepCost
from bayesdp.accountant.tallies import Averaging, Charge, Expected, ExPost, Filtered, Mask, OneHolder, Tally
from bayesdp.compose.filters import GaussianFilter, RenyiFilter
from bayesdp.compose.orders import default_orders
from bayesdp.errors import Array, InputError
from bayesdp.estimate import METHODS
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.rounding import up

COMPOSITIONS = ("ex-post", "expected", "one-holder", "filter", "gdp-filter")
KIND = "bayesdp/instance"
VERSION = 1

_FEW_ORDERS = np.array([1.5, 2, 3, 4, 6, 8, 16, 32, 64])
"""Orders of "expected", which needs costs at many inflated orders for each of these."""

_ORIENTATION = {"both": "both", "remove": "present", "add": "absent"}
_HOW = {
    "ex-post": "Loss of the run that happened, bounded by an exponential martingale (H3) over orders fixed in advance "
    "(H12).",
    "expected": "Averages over runs at every step (E7, S3 Theorem 3.3); the runs are independent and were trained on "
    "the first data set of the divergence.",
    "one-holder": "One average over runs of the summed cost (H2); the runs are independent and were trained on the "
    "first data set of the divergence.",
    "filter": "Each record takes part until its own Rényi budget is spent, then never again (H4).",
    "gdp-filter": "Each record takes part until its own Gaussian budget is spent, then never again (H4).",
}
_PUBLIC = "Orders, weights, noise, rates and stopping were fixed without looking at the data (H5, H12)."
_CHARGED = "Each record's cost is its own divergence given the past, charged whether it was sampled or not (H4)."


class InstanceAccountant:
    """Per-record ε of one or several runs.

    Args:
        records: how many records are watched; every step names them in the same order.
        composition: see the module. "ex-post" speaks for the run that happened; "expected" and "one-holder" are
            a-priori bounds for a fixed data set whose expectations are taken over `run`s of the same plan on
            the first data set of the divergence; the filters are ordinary DP.
        orders, weights: Rényi orders and, for "ex-post", their mixture weights, fixed before the run: see
            `bayesdp.compose.orders.planned`. One order for "filter".
        total_steps: steps of one run; stepping past it is an error.
        cap: the clip norm. With it every answer is the minimum with the worst case (H12: δ is then split).
        direction: "both" (default; by B6 the remove direction bounds both), or "remove" or "add" alone.
        failure, estimator: total failure probability per record, and the bound of `bayesdp.estimate`, where an
            expectation over runs or batches is estimated; "plug-in" gives an estimate and says so.
        p: the p of Theorem 3.3, a number > 1 or "3n".
        budget: for "filter" the Rényi budget at the one order, for "gdp-filter" the budget μ.

    Guarantees: see each method; queries change nothing; a refused call changes nothing.
    """

    signal = "sensitivities"
    """What the argument that describes a step is called, for messages."""

    def __init__(
        self,
        records: int,
        composition: str = "ex-post",
        *,
        orders: Any = None,
        weights: Any = None,
        total_steps: int | None = None,
        cap: float | None = None,
        adjacency: Adjacency = "add-remove",
        direction: str = "both",
        failure: float = 1e-6,
        estimator: str = "betting",
        p: float | str = "3n",
        budget: float | None = None,
    ) -> None:
        self.records = errors.whole("records", records, least=1)
        self.composition = errors.one_of("composition", composition, COMPOSITIONS)
        self.adjacency: Adjacency = errors.one_of("adjacency", adjacency, ADJACENCIES)
        if composition != "ex-post" and adjacency == "replace-one":
            raise errors.refuse("adjacency", adjacency, f'to be "add-remove" for composition={composition!r}')
        self.direction = errors.one_of("direction", direction, DIRECTIONS)
        self.total_steps = None if total_steps is None else errors.whole("total_steps", total_steps, least=1)
        self.cap = None if cap is None else errors.number("cap", cap, above=0)
        self.failure = errors.probability("failure", failure)
        self.estimator = errors.one_of("estimator", estimator, METHODS)
        self.p = p if p == "3n" else errors.number("p", p, above=1)
        default = _FEW_ORDERS if composition == "expected" else default_orders()
        self.orders = default if orders is None else errors.orders("orders", orders)
        self.weights = self._checked_weights(weights, orders)
        self.budget = self._checked_budget(budget, orders)
        self.sampled = False
        self._steps: dict[int, int] = {}
        self._estimates_batches = False
        self._step_cost = StepCost(self.orders, adjacency=self.adjacency, direction=direction, cap=self.cap)
        self._tally = self._new_tally()

    def step(
        self,
        sensitivities: Any = None,
        *,
        noise_std: float | None = None,
        sampling_rate: float = 1.0,
        run: int = 0,
        steps: int = 1,
        cost: Any = None,
        batch_weights: Any = None,
    ) -> Mask | None:
        """Charge every record for `steps` steps of run `run`; call it before the noisy result is used.

        `sensitivities` is how far each record moves the update: `(records,)` for the sum rule (its clipped
        norm), or `(records, batches)` for any other rule, Δ(B) for several batches B (SPEC H1): with
        `batch_weights` the batches are all there are, else they are a sample and a confidence bound is charged
        (needs `cap` and `total_steps`; `failure` is shared out over all estimates). Single-precision norms are
        raised by 1e-5. Or hand in `cost`, `(records, orders)`, from any divergence.

        A filter returns who may take part in this step, the others being out for good.
        """
        run, count = errors.whole("run", run, least=0), errors.whole("steps", steps, least=1)
        self._check_length(run, count)
        if (cost is None) == (sensitivities is None):
            raise InputError(f"Expected either {self.signal} or cost, got {'none' if cost is None else 'both'}.")
        charge = (
            self._described(run, count, sensitivities, noise_std, sampling_rate, batch_weights)
            if cost is None
            else Charge(
                run, count, None, errors.rate("sampling_rate", sampling_rate), None, self._handed_in(cost), None
            )
        )
        admitted = self._charge(charge)
        self._estimates_batches |= charge.distances is not None and charge.distances.ndim == 2 and batch_weights is None
        return admitted

    def replay(self, sensitivities: Any, *, noise_std: float, sampling_rate: float = 1.0, run: int = 0) -> None:
        """Charge every record for all steps of stored `sensitivities`, (steps, records), at once: see `step`.

        For add-remove and sums over steps ("ex-post", "one-holder") records are taken block by block and costs added
        up by a lattice (`divergence.lattice`), many times faster than step by step and never below it: ε is some 1e-4
        above at most, single orders at which costs explode by percents. A memory-mapped array is read once. Else the
        steps are charged one after the other.

        Bad input: another number of records, and as for `step`; nothing is charged then, unless step by step.
        """
        given = np.asarray(sensitivities)
        if given.ndim != 2 or given.shape[1] != self.records or not len(given):
            raise InputError(
                f"Expected {self.signal} of shape (steps, {self.records} records), got shape {given.shape}."
            )
        if not (isinstance(self._tally, ExPost | OneHolder) and self._step_cost.can_sum):
            for row in given:
                self.step(row, noise_std=noise_std, sampling_rate=sampling_rate, run=run)
            return
        noise, rate = errors.noise("noise_std", noise_std), errors.rate("sampling_rate", sampling_rate)
        run = errors.whole("run", run, least=0)
        self._check_length(run, len(given))
        costs = self._step_cost.mean_of_steps(self.signal, given, noise, rate)
        worst = self._step_cost.worst(noise, rate) if isinstance(self._tally, OneHolder) else None
        self._charge(Charge(run, len(given), noise, rate, None, costs, worst))

    @property
    def steps(self) -> int:
        """How many steps the longest run has had."""
        return max(self._steps.values(), default=0)

    @property
    def active(self) -> Mask | None:
        """Who may still take part, of a filter: private, not to be published. None for the other compositions."""
        return self._tally.kept.active if isinstance(self._tally, Filtered) else None

    def cost(self, order: float, run: int | None = None) -> Array:
        """The tally Σ (α-1) D_α of every record at one of the orders (for a filter, what was charged)."""
        at = np.flatnonzero(self.orders == errors.number("order", order, above=1))
        if not len(at):
            raise errors.refuse("order", order, f"to be one of {np.array2string(self.orders, threshold=8)}")
        return self._tally.cost(int(at[0]), run)

    def epsilon(self, delta: float, run: int | None = None) -> Array:
        """ε at δ for every record, shape (records,): see `guarantee` for what it means.

        "ex-post" with several runs: the largest over them unless `run` is named.
        """
        return self.epsilon_and_limit(delta, run)[0]

    def epsilon_and_limit(
        self, delta: float, run: int | None = None, limit: float | None = None
    ) -> tuple[Array, float | None]:
        """`epsilon`, and the DP value at δ/2 that limits it for "ex-post" with a cap (None otherwise).

        `limit` is that value where the caller has it already: a run has one, and its accountants may share it.
        """
        delta = errors.probability("delta", delta)
        if not self._steps and self.budget is None:
            return np.zeros(self.records), None
        return self._tally.epsilon(delta, run, limit)

    def guarantee(
        self, delta: float, record: int | None = None, run: int | None = None, limit: float | None = None
    ) -> Guarantee:
        """The promise to one record, or to the worst off of those watched.

        "ex-post": with probability 1-δ over the run, the privacy loss of the record is below ε (strong, H3);
        with a `cap` the smaller of that at δ/2 and the DP value at δ/2 (H12). "expected", "one-holder": (ε, δ) for
        this data set with and without the record, a priori. Filters: (ε, δ)-DP for everybody.
        """
        epsilons, limit = self.epsilon_and_limit(delta, run, limit)
        if record is None:
            record = int(np.argmax(epsilons))
        epsilon = float(epsilons[errors.whole("record", record, least=0, most=self.records - 1)])
        dp_won = limit is not None and epsilon == limit
        common: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "adjacency": self.adjacency,
            "sampling": "poisson" if self.sampled else "none",
        }
        if self.budget is not None:
            return Guarantee(
                notion="dp", assumptions=(_HOW[self.composition], _CHARGED), delta_split={"dp": delta}, **common
            )
        loss_bound = self.composition == "ex-post" and not dp_won
        return Guarantee(
            notion="per-instance",
            failure=self.failure if self._estimates() and self.estimator != "plug-in" else 0.0,
            strength="strong" if loss_bound else "weak",
            orientation=_ORIENTATION[self.direction],  # type: ignore[arg-type]  # a literal of the mapping
            ex_post=loss_bound,
            assumptions=self._assumptions(limit, dp_won),
            sensitive=True,
            delta_split={self.composition: delta} if limit is None else {"ex-post": delta / 2, "dp": delta / 2},
            **common,
        )

    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "kind": KIND,
            "version": VERSION,
            "config": {
                "records": self.records,
                "composition": self.composition,
                "orders": self.orders,
                "weights": self.weights,
                "total_steps": self.total_steps,
                "cap": self.cap,
                "adjacency": self.adjacency,
                "direction": self.direction,
                "failure": self.failure,
                "estimator": self.estimator,
                "p": self.p,
                "budget": self.budget,
            },
            "steps": {str(run): count for run, count in self._steps.items()},
            "sampled": self.sampled,
            "estimates_batches": self._estimates_batches,
            "tally": self._tally.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> InstanceAccountant:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""
        states.check(state, KIND, VERSION, {"config", "steps", "sampled", "estimates_batches", "tally"})
        with states.reading():
            self = cls(**state["config"])
            self._steps = {int(run): errors.whole("steps", n, least=1) for run, n in state["steps"].items()}
            self.sampled, self._estimates_batches = bool(state["sampled"]), bool(state["estimates_batches"])
            self._tally.restore(state["tally"])
        return self

    def save(self, path: str | Path) -> None:
        """Write the state to `path` (JSON), large arrays beside it (NPZ)."""
        states.write(path, self.state())

    @classmethod
    def load(cls, path: str | Path) -> InstanceAccountant:
        """Read what `save` wrote. An unreadable, malformed or foreign file gets `InputError`."""
        return cls.from_state(states.read(path))

    def _new_tally(self) -> Tally:
        averaging = Averaging(self.estimator, self.failure)
        if self.composition in ("expected", "one-holder"):
            if METHODS[self.estimator].needs_range and self.cap is None:
                raise InputError(
                    f"Expected cap (the clip norm) to be given for estimator={self.estimator!r}: a bound on an average "
                    'over runs needs the worst case. Or use estimator="plug-in", which is an estimate and says so.'
                )
            if self.composition == "expected":
                return Expected(self.records, self.orders, averaging, self.p, self.cap)
            return OneHolder(self.records, self.orders, averaging)
        if self.budget is not None and self.composition == "filter":
            return Filtered(RenyiFilter(self.records, float(self.orders[0]), self.budget))
        if self.budget is not None:
            return Filtered(GaussianFilter(self.records, self.budget))
        return ExPost(self.records, self.orders, self.weights, self.cap, self.adjacency)

    def _check_length(self, run: int, count: int) -> None:
        done = self._steps.get(run, 0)
        if self.total_steps is not None and done + count > self.total_steps:
            raise InputError(
                f"Expected at most total_steps={self.total_steps} steps in a run, got {count} more after {done}."
            )

    def _charge(self, charge: Charge) -> Mask | None:
        refusal = self._tally.refusal(charge)
        if refusal is not None:
            raise refusal
        admitted = self._tally.charge(charge)
        self._steps[charge.run] = self._steps.get(charge.run, 0) + charge.steps
        self.sampled |= charge.rate < 1
        return admitted

    def _described(
        self, run: int, count: int, sensitivities: Any, noise_std: Any, sampling_rate: Any, batch_weights: Any
    ) -> Charge:
        noise = errors.noise("noise_std", noise_std)
        rate = errors.rate("sampling_rate", sampling_rate)
        distances = self._step_cost.distances(self.signal, sensitivities)
        if len(distances) != self.records:
            raise InputError(
                f"Expected {self.signal} with one entry for each of the {self.records} records, got {len(distances)}."
            )
        if distances.ndim == 2 and (self._tally.by_distance or self.adjacency == "replace-one"):
            raise InputError(
                f"Expected {self.signal} of shape ({self.records},) for composition={self.composition!r} and "
                f"adjacency={self.adjacency!r}, got shape {distances.shape}."
            )
        if distances.ndim == 1 and batch_weights is not None:
            raise errors.refuse("batch_weights", batch_weights, "to be left out without a batch axis")
        if distances.ndim == 2 and batch_weights is None and self.composition != "ex-post":
            raise InputError(
                f"Expected batch_weights to be given for composition={self.composition!r}: an estimate over sampled "
                'batches has a failure probability that only "ex-post" pays for.'
            )
        costs = None if self._tally.by_distance else self._costs(distances, noise, rate, batch_weights)
        worst = self._step_cost.worst(noise, rate) if isinstance(self._tally, OneHolder) else None
        return Charge(run, count, noise, rate, distances, costs, worst)

    def _costs(self, distances: Array, noise: float, rate: float, batch_weights: Any) -> Array:
        if distances.ndim == 1:
            return self._step_cost(distances, noise, rate)
        if batch_weights is not None:
            weights = errors.array("batch_weights", batch_weights, least=0, ndim=1)
            if len(weights) != distances.shape[1] or abs(weights.sum() - 1) > 1e-9:
                raise errors.refuse(
                    "batch_weights", batch_weights, f"to be {distances.shape[1]} probabilities that sum to 1"
                )
            return self._step_cost.averaged(distances, noise, rate, weights)
        if self.total_steps is None:
            raise InputError(
                "Expected total_steps to be given: sampled batches are estimated at every step, and the failure "
                "probability is shared out over all of them. Or give batch_weights if the batches are all there are."
            )
        share = self.failure / (self.total_steps * len(self.orders))
        return self._step_cost.bounded(distances, noise, rate, self.estimator, share)

    def _handed_in(self, cost: Any) -> Array:
        if self.cap is not None or self._tally.by_distance:
            reason = "a cap, which is a distance" if self.cap is not None else f"composition={self.composition!r}"
            raise InputError(f"Expected {self.signal}, got cost, which does not go with {reason}.")
        costs = errors.array("cost", cost, least=-1e-12, infinite=True, ndim=2)
        if costs.shape != (self.records, len(self.orders)):
            raise InputError(
                f"Expected cost of shape ({self.records} records, {len(self.orders)} orders), got {costs.shape}."
            )
        return np.maximum(costs, 0)

    def _estimates(self) -> bool:
        return self._estimates_batches or self.composition in ("expected", "one-holder")

    def _assumptions(self, limit: float | None, dp_won: bool) -> tuple[str, ...]:
        result = [_HOW[self.composition], _PUBLIC]
        if self._estimates():
            result.append(METHODS[self.estimator].assumption)
        if self.composition in ("expected", "one-holder") and self.direction == "both":
            result.append(
                "Runs on one of the two data sets average one direction; the other is taken to average alike (E1)."
            )
        if limit is not None:
            result.append(
                "The DP value at δ/2 won: this is an a-priori statement for everybody (H12)."
                if dp_won
                else f"The ex-post value at δ/2 won over the DP value at δ/2, {up(limit)} (H12)."
            )
        return tuple(result)

    def _checked_weights(self, weights: Any, orders: Any) -> Array | None:
        if weights is None:
            return None
        result = errors.array("weights", weights, above=0, ndim=1)
        if self.composition != "ex-post":
            raise errors.refuse("weights", weights, 'to be left out unless composition="ex-post"')
        if np.shape(orders) != result.shape or not np.array_equal(self.orders, np.asarray(orders, dtype=float)):
            raise errors.refuse("orders", orders, "to be ascending, one for each of the weights")
        if not math.isclose(result.sum(), 1, rel_tol=1e-9):
            raise errors.refuse("weights", weights, "to sum to 1")
        return result

    def _checked_budget(self, budget: float | None, orders: Any) -> float | None:
        if self.composition not in ("filter", "gdp-filter"):
            if budget is not None:
                raise errors.refuse("budget", budget, 'to be left out unless composition is "filter" or "gdp-filter"')
            return None
        if self.direction == "add":
            raise errors.refuse(
                "direction",
                self.direction,
                f'to be "both" for composition={self.composition!r}',
                "DP is both directions.",
            )
        if self.composition == "filter" and (orders is None or len(self.orders) != 1):
            raise errors.refuse(
                "orders", orders, 'to be one order for composition="filter"', "A filter fixes its order."
            )
        return errors.number("budget", budget, above=0)
