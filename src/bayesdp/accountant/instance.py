"""Instance accountant: what a training run costs each named record (per-instance DP; paper S3, E1).

    cost_t = (α-1) D_α of step t given the past, for every record and order

The compositions differ in what they make of the costs (`tallies.py`):

    "ex-post"     ε of the run that happened, by a mixture over orders (H3, H14): no estimation, the default
    "expected"    an average over runs at every step, S3's Theorem 3.3 (E7)
    "one-holder"  one average over runs of the summed cost, one Hölder inequality (H2)
    "filter"      a record takes part until its Rényi budget is spent (H4): ordinary DP
    "gdp-filter"  the same on squared shifts, without sampling (H4): ordinary DP
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from bayesdp import errors
from bayesdp.accountant import state as states
from bayesdp.accountant.charging import Charging
from bayesdp.accountant.fine_print import ALIKE, CHARGED, CHOSEN, HOW, NAMED, OWN_BUDGET, PUBLIC, Form, form
from bayesdp.accountant.instance_plan import AVERAGES, InstancePlan
from bayesdp.accountant.tallies import Charge, ExPost, Filtered, Mask
from bayesdp.accountant.worst_case import PlanDP
from bayesdp.convert import Strength
from bayesdp.errors import Array
from bayesdp.estimate import METHODS
from bayesdp.guarantee import Adjacency, Guarantee
from bayesdp.standing import Caveat, FinePrint, assuming

KIND = "bayesdp/instance"
VERSION = 1

_ORIENTATION = {"both": "both", "remove": "present", "add": "absent"}


class InstanceAccountant(states.Saved):
    """Per-record ε of one or several runs.

    Args:
        records: how many records are watched; every step names them in the same order.
        composition: see the module. "ex-post" speaks for the run that happened; "expected" and "one-holder" are
            a-priori bounds for a fixed data set whose expectations are taken over `run`s of the same plan on
            the first data set of the divergence; the filters are ordinary DP.
        orders: Rényi orders, fixed before the run: see `bayesdp.compose.orders.planned`. One for "filter".
        weights: their mixture weights, for "ex-post".
        total_steps: steps of one run; stepping past it is an error.
        cap: the clip norm. With it what the steps promise everybody limits every weak answer (H14): the number of steps
            must then be fixed without looking.
        strength: of "ex-post": "weak" (default), as ordinary (ε, δ)-DP (H14), or "strong", a bound on the loss (H12).
        direction: "both" (default; the remove direction bounds both, B6), or "remove" or "add" alone. With averages
            over runs "both" is a heuristic and says so: runs speak for the direction whose first data set they are of.
        failure: total failure probability per record, where an expectation over runs or batches is estimated.
        estimator: the bound of `bayesdp.estimate` for that; "plug-in" gives an estimate and says so.
        p: the p of Theorem 3.3, a number > 1 or "3n".
        budget: for "filter" the Rényi budget at the one order, for "gdp-filter" the budget μ: one for all, or one for
            each record, as its owner chose; for "filter" also (records, orders), infinite where an order has no limit.

    Guarantees: see each method; queries change nothing; a refused call changes nothing.

    Examples:
        >>> named = bd.InstanceAccountant(records=2, cap=1.0)
        >>> named.step([0.1, 1.0], noise_std=2.0, sampling_rate=0.02, steps=100)
        >>> named.epsilon(delta=1e-5).round(2)
        array([0.04, 0.41])
    """

    signal = "sensitivities"
    """What the argument that describes a step is called, for messages."""

    def __init__(
        self,
        *,
        records: int,
        composition: str = "ex-post",
        orders: Any = None,
        weights: Any = None,
        total_steps: int | None = None,
        cap: float | None = None,
        adjacency: Adjacency = "add-remove",
        direction: str = "both",
        failure: float = 1e-6,
        estimator: str = "betting",
        p: float | str = "3n",
        budget: float | Array | None = None,
        strength: Strength = "weak",
    ) -> None:
        self.plan = InstancePlan(
            records=records,
            composition=composition,
            orders=orders,
            weights=weights,
            total_steps=total_steps,
            cap=cap,
            adjacency=adjacency,
            direction=direction,
            failure=failure,
            estimator=estimator,
            p=p,
            budget=budget,
            strength=strength,
        )
        self.records, self.orders, self.weights = self.plan.records, self.plan.orders, self.plan.weights
        self.composition, self.budget = self.plan.composition, self.plan.budget
        self.sampled = False
        self._steps: dict[int, int] = {}
        self._estimates_batches = False
        self._tally = self.plan.new_tally()
        self._charging = Charging(self.plan, self._tally, self.signal)

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
        norm), or `(records, batches)` for any other rule, Δ(B) for several batches B (averaged sensitivity, H1): with
        `batch_weights` the batches are all there are, else they are a sample and a confidence bound is charged
        (needs `cap` and `total_steps`; `failure` is shared out over all estimates). Single-precision norms are
        raised by 1e-5. Or hand in `cost`, `(records, orders)`, from any divergence.

        A filter returns who may take part in this step, the others being out for good.
        """
        run, count = errors.whole("run", run, least=0), errors.whole("steps", steps, least=1)
        errors.more_steps(self.plan.total_steps, self._steps.get(run, 0), count, " in a run")
        if (cost is None) == (sensitivities is None):
            raise errors.unmet(
                self.signal,
                sensitivities,
                f"either {errors.named(self.signal)} or {errors.named('cost')}",
                "none" if cost is None else "both",
            )
        charge = (
            self._charging.described(run, count, sensitivities, noise_std, sampling_rate, batch_weights)
            if cost is None
            else self._charging.handed_in(run, count, cost, sampling_rate)
        )
        admitted = self._charge(charge)
        self._estimates_batches |= charge.distances is not None and charge.distances.ndim == 2 and batch_weights is None
        return admitted

    def replay(self, sensitivities: Any, *, noise_std: float, sampling_rate: float = 1.0, run: int = 0) -> None:
        """Charge every record for all steps of stored `sensitivities`, (steps, records), at once: see `step`.

        For add-remove and sums over steps ("ex-post", "one-holder") records are taken block by block and costs added
        up by a lattice (`divergence.lattice`), many times faster than step by step and never below it: costs, and so
        ε, are above by a share of 1e-4 at most, but for narrow ranges of the shift at orders that are far beyond the
        best for them. A memory-mapped array is read once. Else the steps are charged one after the other.

        Bad input: another number of records, and as for `step`; nothing is charged then, unless step by step.
        """
        given = np.asarray(sensitivities)
        if given.ndim != 2 or given.shape[1] != self.records or not len(given):
            raise errors.refuse(
                self.signal, given.shape, f"of shape (steps, {self.records} records)", got=f"shape {given.shape}"
            )
        if not self._charging.adds_up:
            for row in given:
                self.step(row, noise_std=noise_std, sampling_rate=sampling_rate, run=run)
            return
        run = errors.whole("run", run, least=0)
        errors.more_steps(self.plan.total_steps, self._steps.get(run, 0), len(given), " in a run")
        self._charge(self._charging.replayed(run, given, noise_std, sampling_rate))

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
        return self.epsilon_and_dp(delta, run)[0]

    def epsilon_and_dp(
        self, delta: float, run: int | None = None, dp: PlanDP | None = None
    ) -> tuple[Array, PlanDP | None]:
        """`epsilon`, and what the plan promises everybody, for "ex-post" with a cap (None otherwise).

        `dp` is that where the caller has it: a run knows all of its planned steps, an accountant those it was told of.
        """
        delta = errors.probability("delta", delta)
        if not self._steps and self.budget is None:
            return np.zeros(self.records), None
        return self._tally.epsilon(delta, run, dp)

    def exposure(self, delta: float, run: int | None = None) -> Array:
        """How exposed each record is, to put them in order: its ε by its own costs alone, which the DP ε does not cap.

        Where many records have no more than the DP ε, this still tells who moved the model more. It is no promise.
        """
        delta = errors.probability("delta", delta)
        if isinstance(self._tally, ExPost) and self._steps:
            return self._tally.uncapped(delta, run)
        return self.epsilon(delta, run)

    def guarantee(
        self, delta: float, record: int | None = None, run: int | None = None, dp: PlanDP | None = None
    ) -> Guarantee:
        """The promise to one record, or to each of those watched (the largest ε), named before the run (H19).

        "ex-post": P(S) <= ∫_S e^ε dQ + δ with an ε that depends on the run (weak, H14), or with probability 1-δ over
        the run a privacy loss below ε (strong, H12). "expected", "one-holder": (ε, δ) for this data set with and
        without the record, a priori. Filters: (ε, δ)-DP for everybody.
        """
        epsilons, dp = self.epsilon_and_dp(delta, run, dp)
        named = record is not None
        if record is None:
            record = int(np.argmax(epsilons))
        epsilon = float(epsilons[errors.whole("record", record, least=0, most=self.records - 1)])
        common: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "adjacency": self.plan.adjacency,
            "sampling": "poisson" if self.sampled else "none",
        }
        if self.budget is not None:
            words, split = (HOW[self.composition], CHARGED), {"dp": delta}
            if isinstance(self.budget, np.ndarray) and named:
                return Guarantee(
                    notion="per-instance", assumptions=(*words, OWN_BUDGET), delta_split=split, sensitive=True, **common
                )
            chosen = (CHOSEN,) if isinstance(self.budget, np.ndarray) else ()
            return Guarantee(notion="dp", assumptions=(*words, *chosen), delta_split=split, **common)
        ex_post = self.composition == "ex-post"
        how = form(self.plan.strength, delta, dp) if ex_post else Form((), {self.composition: delta})
        return Guarantee(
            notion="per-instance",
            failure=self.plan.failure if self._estimates() and self.plan.estimator != "plug-in" else 0.0,
            strength=self.plan.strength,
            orientation=_ORIENTATION[self.plan.direction],  # type: ignore[arg-type]  # a literal of the mapping
            ex_post=ex_post,
            sensitive=True,
            delta_split=how.delta_split,
            dp_epsilon=None if dp is None else dp.epsilon,
            **common,
            **self._fine_print(how.words),
        )

    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "kind": KIND,
            "version": VERSION,
            "config": self.plan.config(),
            "steps": {str(run): count for run, count in self._steps.items()},
            "sampled": self.sampled,
            "estimates_batches": self._estimates_batches,
            "tally": self._tally.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""
        states.check(state, KIND, VERSION, {"config", "steps", "sampled", "estimates_batches", "tally"})
        with states.reading():
            self = cls(**state["config"])
            self._steps = {int(run): errors.whole("steps", n, least=1) for run, n in state["steps"].items()}
            self.sampled, self._estimates_batches = bool(state["sampled"]), bool(state["estimates_batches"])
            self._tally.restore(state["tally"])
        return self

    def _charge(self, charge: Charge) -> Mask | None:
        refusal = self._tally.refusal(charge)
        if refusal is not None:
            raise refusal
        admitted = self._tally.charge(charge)
        self._steps[charge.run] = self._steps.get(charge.run, 0) + charge.steps
        self.sampled |= charge.rate < 1
        return admitted

    def _estimates(self) -> bool:
        return self._estimates_batches or self.composition in AVERAGES

    def _fine_print(self, form: tuple[str, ...]) -> FinePrint:
        result: list[str | Caveat] = [HOW[self.composition], *form, PUBLIC, NAMED]
        if self._estimates():
            result.append(METHODS[self.plan.estimator].words)
        if self.composition in AVERAGES and self.plan.direction == "both":
            result.append(ALIKE)
        return assuming(*result)
