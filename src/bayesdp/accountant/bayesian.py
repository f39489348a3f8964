"""Bayesian accountant: what a training run costs people like those in the data (papers S0 and S1).

    "holdout"     ε of each witness along the run (the instance accountant), then an order statistic over the
                  witnesses: a share `coverage` of people has (ε, δ), with confidence 1 - failure (H5, H12). Default.
    "holder"      Hölder rule of S0: Σ_t (1/T) log E_x exp(T cost_t(x)), estimated at every step (C7)
    "product"     product rule of S1: Σ_t log E_x exp(cost_t(x)), **unsound** (C6, ERR 1)

Witnesses have two orientations (strong BDP, C1): records "absent" from the training data, and records "present" in it.
Both are needed for a promise to people on either side; the answer is the larger of the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant import coverage as coverages
from bayesdp.accountant import fine_print
from bayesdp.accountant import state as states
from bayesdp.accountant.coverage import Curve
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.population_cost import PopulationCost
from bayesdp.accountant.worst_case import PlanDP
from bayesdp.convert import STRENGTHS, Strength
from bayesdp.errors import Array
from bayesdp.estimate import METHODS
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.standing import assuming

COMPOSITIONS = ("holdout", "holder", "product")
ORIENTATIONS = ("absent", "present")
_REPLACED = {"absent": "add", "present": "remove"}
KIND = "bayesdp/bayesian"
VERSION = 1


class _Witnesses(InstanceAccountant):
    signal = "distances"


class BayesianAccountant(states.Saved):
    """Bayesian DP of one run, from the distances of witnesses at every step.

    Args:
        composition: see the module; the default is the sound one.
        estimator: for "holder" and "product", a name of `bayesdp.estimate.METHODS`; "betting" by default.
        orders: Rényi orders, fixed before the run.
        weights: their mixture weights, for "holdout".
        total_steps: stepping past it is an error; needed by "holder".
        failure: for "holdout" the chance that the coverage is wrong; for the others per estimate, δ losing
            total_steps x orders x failure (union bound, C12).
        cap: the clip norm, as a distance: the worst case that limits every cost (C11) and every answer.
        strength: "weak" (C2, by the hockey stick: H14, B10) or "strong" (C1, by the tail: H12, B10). Unless given, weak
            for "holdout" and strong for the papers' own compositions, whose definition that is.
        adjacency: "add-remove" or "replace-one".
        members_counted: the witnesses "present" are all members, not a sample of them ("holdout" only): their shares
            are then known and cost no failure probability (H16).

    Queries change nothing; a refused call changes nothing.
    """

    def __init__(
        self,
        *,
        composition: str = "holdout",
        estimator: str | None = None,
        orders: Any = None,
        total_steps: int | None = None,
        failure: float = 1e-6,
        cap: float | None = None,
        strength: Strength | None = None,
        weights: Any = None,
        adjacency: Adjacency = "add-remove",
        members_counted: bool = False,
    ) -> None:
        self.composition = errors.one_of("composition", composition, COMPOSITIONS)
        averaged = composition != "holdout"
        if estimator is not None and not averaged:
            raise errors.refuse(
                "estimator", estimator, f'to be left out for {errors.named("composition")}="holdout", which has none'
            )
        self.estimator = errors.one_of("estimator", estimator or "betting", METHODS)
        self.total_steps = None if total_steps is None else errors.whole("total_steps", total_steps, least=1)
        if composition == "holder" and total_steps is None:
            raise errors.refuse(
                "total_steps",
                total_steps,
                f'to be given for {errors.named("composition")}="holder"',
                "Its exponent is the planned length.",
            )
        self.failure = errors.probability("failure", failure)
        self.cap = None if cap is None else errors.number("cap", cap, above=0)
        if averaged and METHODS[self.estimator].needs_range and cap is None:
            raise errors.refuse(
                "cap",
                cap,
                f"to be given for {errors.Argument('estimator', self.estimator)}",
                "A bound on a mean needs the worst case. Or use "
                f'{errors.named("estimator")}="student-t", a heuristic (ERR 4).',
            )
        usual: Strength = "strong" if averaged else "weak"
        self.strength: Strength = errors.one_of("strength", strength or usual, STRENGTHS)
        self.adjacency: Adjacency = errors.one_of("adjacency", adjacency, ADJACENCIES)
        self.members_counted = errors.one_of("members_counted", members_counted, (True, False))
        if members_counted and averaged:
            raise errors.refuse("members_counted", members_counted, 'to be left out unless composition is "holdout"')
        self._given = {"orders": orders, "weights": weights}
        trial = self._make(records=1)  # refuses bad orders, weights and combinations now rather than at the first step
        self.orders, self.weights = trial.orders, trial.weights
        self._sides: dict[str, InstanceAccountant | PopulationCost] = {}

    def step(
        self,
        distances: Any = None,
        *,
        noise_std: float | None = None,
        sampling_rate: float = 1.0,
        orientation: str = "absent",
        steps: int = 1,
        cost: Any = None,
    ) -> None:
        """Charge the witnesses of one orientation for `steps` steps; call it before the noisy result is used.

        `distances`: how far each witness moves the update, its clipped gradient norm (C14); the same witnesses in
        the same order at every step. Or `cost`, `(witnesses, orders)`, from any divergence.
        """
        side = errors.one_of("orientation", orientation, ORIENTATIONS)
        signal = cost if distances is None else distances
        if distances is not None:
            errors.array("distances", distances, least=0, ndim=1)
        if side not in self._sides:
            records = np.size(signal) if distances is not None else len(np.atleast_1d(signal))
            fresh = self._make(max(1, records), side)
            fresh.step(distances, noise_std=noise_std, sampling_rate=sampling_rate, steps=steps, cost=cost)
            self._sides[side] = fresh
        else:
            self._sides[side].step(distances, noise_std=noise_std, sampling_rate=sampling_rate, steps=steps, cost=cost)

    @property
    def steps(self) -> int:
        """How many steps were counted, in the orientation that has had the most."""
        return max((side.steps for side in self._sides.values()), default=0)

    @property
    def witnesses(self) -> Mapping[str, InstanceAccountant]:
        """The instance accountant of each orientation ("holdout" only): its answers are about named records."""
        return MappingProxyType({n: side for n, side in self._sides.items() if isinstance(side, InstanceAccountant)})

    def cost(self, order: float, orientation: str = "absent") -> Any:
        """The tally at one of the orders: a number, or for "holdout" an array with one entry per witness."""
        side = self._sides.get(errors.one_of("orientation", orientation, ORIENTATIONS))
        return (side or self._make(records=1)).cost(order)

    def guarantee(self, delta: float, coverage: float | None = None, dp: PlanDP | None = None) -> Guarantee:
        """The promise at δ.

        "holdout": for a share `coverage` of people, fixed beforehand (0.9 unless given), see `curve` otherwise: for
        every x, (ε, δ) on the outcomes that cover it (weak, H14) or Pr[x is covered and its loss >= ε] <= δ (strong),
        and the covered share is right with confidence 1 - failure (H5). This and `curve` are two statements: each may
        be wrong with that probability, both together with twice it. With a cap the weak form is limited by what the
        plan promises everybody, which is `dp` where the caller has it already.

        "holder", "product": strong or weak BDP (C1, C2), the probability δ being over people and runs together;
        with a `coverage`, the per-person reading (C3): ε at δ (1 - coverage), by Markov.

        Bad input: δ or coverage outside (0, 1), or a coverage that so few witnesses cannot support, get `InputError`.
        """
        delta = errors.probability("delta", delta)
        if coverage is not None:
            coverage = errors.probability("coverage", coverage)
        if self.composition == "holdout":
            return self._covered(delta, 0.9 if coverage is None else coverage, dp)
        return self._joint(delta, coverage)

    def curve(self, delta: float, dp: PlanDP | None = None) -> Curve:
        """Coverage → ε for the whole population at once (H12): the larger of the two orientations.

        For "holdout" only; each rank is bounded at failure/(witnesses x orientations). Its failure is its own: with a
        `guarantee` beside it one of the two is wrong with probability at most 2 failure.
        """
        delta = errors.probability("delta", delta)
        if self.composition != "holdout":
            raise errors.refuse("composition", self.composition, 'to be "holdout" for a curve')
        losses, dp = self._losses(delta, dp)
        everybody = math.inf if dp is None else dp.epsilon
        return coverages.curve(losses, delta, self.failure, self._limit(dp), everybody, self._counted)

    # --- what is kept ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "kind": KIND,
            "version": VERSION,
            "config": {
                "composition": self.composition,
                "estimator": self.estimator if self.composition != "holdout" else None,
                "orders": self.orders,
                "total_steps": self.total_steps,
                "failure": self.failure,
                "cap": self.cap,
                "strength": self.strength,
                "weights": self.weights,
                "adjacency": self.adjacency,
                "members_counted": self.members_counted,
            },
            "sides": {name: side.state() for name, side in self._sides.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""
        states.check(state, KIND, VERSION, {"config", "sides"})
        with states.reading():
            self = cls(**state["config"])
            kind = _Witnesses if self.composition == "holdout" else PopulationCost
            self._sides = {
                errors.one_of("orientation", name, ORIENTATIONS): kind.from_state(side)
                for name, side in state["sides"].items()
            }
        return self

    # --- answering ------------------------------------------------------------------------------------------

    def _make(self, records: int, side: str = "present") -> Any:
        # Under add-remove one cost bounds either side (B6). Replacing is not symmetric: an outsider takes the place of
        # somebody unknown, a member gives way to somebody unknown.
        direction = _REPLACED[side] if self.adjacency == "replace-one" else "both"
        common = {"orders": self._given["orders"], "total_steps": self.total_steps, "cap": self.cap}
        if self.composition == "holdout":
            return _Witnesses(
                records=records,
                **common,
                weights=self._given["weights"],
                adjacency=self.adjacency,
                direction=direction,
                strength=self.strength,
            )
        if self._given["weights"] is not None:
            raise errors.refuse(
                "weights", self._given["weights"], f'to be left out unless {errors.named("composition")}="holdout"'
            )
        exponent = self.total_steps if self.composition == "holder" else 1
        return PopulationCost(
            records,
            **common,
            exponent=exponent,
            estimator=self.estimator,
            failure=self.failure,
            adjacency=self.adjacency,
            direction=direction,
        )

    def _losses(self, delta: float, dp: PlanDP | None) -> tuple[dict[str, Array], PlanDP | None]:
        """ε of every witness by orientation, and what the plan promises everybody, the same for either."""
        self._check_lengths()
        losses = {}
        for name, side in self._sides.items():
            assert isinstance(side, InstanceAccountant)
            losses[name], dp = side.epsilon_and_dp(delta, dp=dp)
        return losses, dp

    def _limit(self, dp: PlanDP | None) -> float:
        """The ε that nobody's exceeds: a strong statement has none, for a DP ε bounds no tail."""
        return math.inf if dp is None or self.strength == "strong" else dp.at_share

    def _check_lengths(self) -> None:
        counts = {name: side.steps for name, side in self._sides.items()}
        if len(set(counts.values())) > 1:
            raise errors.unmet(
                "steps", counts, "as many steps of outsiders as of members", f"{counts}", "Step both before asking."
            )

    def _covered(self, delta: float, coverage: float, dp: PlanDP | None) -> Guarantee:
        losses, dp = self._losses(delta, dp)
        how = fine_print.form(self.strength, delta, dp)
        return self._guarantee(
            epsilon=coverages.covered(losses, coverage, self.failure, self._limit(dp), self._counted),
            delta=delta,
            coverage=coverage,
            failure=0.0 if losses and set(losses) <= set(self._counted) else self.failure,
            strength=self.strength,
            ex_post=True,
            dp_epsilon=None if dp is None else dp.epsilon,
            **assuming(*self._drawn(), *how.words, *self._one_sided()),
            delta_split=how.delta_split,
        )

    def _joint(self, delta: float, coverage: float | None) -> Guarantee:
        self._check_lengths()
        share = delta if coverage is None else delta * (1 - coverage)
        sides = list(self._sides.values())
        planned = self.total_steps or max((side.steps for side in sides), default=0)
        lost = planned * len(self.orders) * self.failure
        if lost >= share:
            raise errors.refuse(
                "failure",
                self.failure,
                f"to be below {share / max(planned * len(self.orders), 1):.3g}",
                f"δ={share:g} loses steps x orders x failure, {planned} x {len(self.orders)} x {self.failure:g} (C12).",
            )
        costs = [side.total for side in sides if isinstance(side, PopulationCost)]
        values = [float(convert.epsilon(c, self.orders, share - lost, self.strength)) for c in costs]
        epsilon = max(values, default=0.0)
        words = [METHODS[self.estimator].words, fine_print.COMPOSED[self.composition], fine_print.ADAPTIVE]
        if coverage is not None:
            words.append(f"Per person by Markov's inequality (C3): the joint statement holds at δ x {1 - coverage:g}.")
        return self._guarantee(
            epsilon=epsilon,
            delta=delta,
            coverage=coverage,
            failure=0.0,
            strength=self.strength,
            ex_post=False,
            **assuming(*words, *self._one_sided()),
            delta_split={"loss": share - lost, "estimates": lost},
        )

    def _guarantee(self, **fields: Any) -> Guarantee:
        sampled = any(side.sampled for side in self._sides.values())
        orientation = "both" if len(self._sides) != 1 else next(iter(self._sides))
        return Guarantee(
            notion="bdp",
            orientation=orientation,  # type: ignore[arg-type]  # one of ORIENTATIONS
            adjacency=self.adjacency,
            sampling="poisson" if sampled else "none",
            sensitive=True,
            **fields,
        )

    @property
    def _counted(self) -> tuple[str, ...]:
        return ("present",) if self.members_counted else ()

    def _drawn(self) -> list[str]:
        """How the witnesses were come by, and what is made of them."""
        witnesses = fine_print.drawn(self._sides, self.members_counted)
        return [*witnesses, fine_print.PUBLIC, fine_print.ALONG, fine_print.ITS_OWN]

    def _one_sided(self) -> tuple[str, ...]:
        if len(self._sides) != 1:
            return ()
        given, missing = ("outsiders", "members") if "absent" in self._sides else ("members", "outsiders")
        return (f"Only {given} were given as witnesses: nothing is said about {missing} (C1, H5).",)
