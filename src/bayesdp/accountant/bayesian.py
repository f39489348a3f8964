"""Bayesian accountant: what a training run costs people like those in the data (papers S0, S1; SPEC part C, H5, H12).

    "audit-set"   ε of each witness along the run (the instance accountant), then an order statistic over the
                  witnesses: a share `coverage` of people has (ε, δ), with confidence 1 - failure (H5, H12). Default.
    "holder"      S0's composition: Σ_t (1/T) log E_x exp(T cost_t(x)), estimated at every step (C7)
    "product"     S1's composition: Σ_t log E_x exp(cost_t(x)), **unsound** (C6, ERR 1)

Witnesses come in two orientations (C1): records "absent" from the training data, and records "present" in it.
Both are needed for a promise to people on either side; the answer is the larger of the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant import coverage as coverages
from bayesdp.accountant import state as states
from bayesdp.accountant.coverage import Curve
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.population_cost import PopulationCost
from bayesdp.errors import Array, InputError
from bayesdp.estimate import METHODS
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.rounding import up

COMPOSITIONS = ("audit-set", "holder", "product")
ORIENTATIONS = ("absent", "present")
_REPLACED = {"absent": "add", "present": "remove"}
KIND = "bayesdp/bayesian"
VERSION = 1

_WITNESSES = (
    "Witnesses are independent draws of the population, fixed before the run; outsiders never influenced it (H5)."
)
_PUBLIC = "Orders, weights, noise, rates and stopping were fixed without looking at the data (H5, H12)."
_ADAPTIVE = (
    "Costs of a step must not depend on earlier outcomes, or be a supremum over them (C7, ERR 2): in training they do."
)


class _Witnesses(InstanceAccountant):
    signal = "distances"


class BayesianAccountant:
    """Bayesian DP of one run, from the distances of witnesses at every step.

    Args:
        composition: see the module; the default is the sound one.
        estimator: for "holder" and "product", a name of `bayesdp.estimate.METHODS`; "betting" by default.
        orders, weights: Rényi orders and (audit-set) mixture weights, fixed before the run.
        total_steps: stepping past it is an error; needed by "holder".
        failure: for "audit-set" the chance that the coverage is wrong; for the others per estimate, δ losing
            total_steps x orders x failure (C12).
        cap: the clip norm, as a distance: the worst case that limits every cost (C11) and every answer.
        conversion: for "holder" and "product": "tail" (strong, C1) or "hockey-stick" (weak, C2).
        adjacency: "add-remove" or "replace-one".

    Queries change nothing; a refused call changes nothing.
    """

    def __init__(
        self,
        composition: str = "audit-set",
        estimator: str | None = None,
        orders: Any = None,
        total_steps: int | None = None,
        failure: float = 1e-6,
        cap: float | None = None,
        conversion: convert.Conversion = "tail",
        *,
        weights: Any = None,
        adjacency: Adjacency = "add-remove",
    ) -> None:
        self.composition = errors.one_of("composition", composition, COMPOSITIONS)
        averaged = composition != "audit-set"
        if estimator is not None and not averaged:
            raise errors.refuse("estimator", estimator, 'to be left out for composition="audit-set", which has none')
        self.estimator = errors.one_of("estimator", estimator or "betting", METHODS)
        self.total_steps = None if total_steps is None else errors.whole("total_steps", total_steps, least=1)
        if composition == "holder" and total_steps is None:
            raise errors.refuse(
                "total_steps",
                total_steps,
                'to be given for composition="holder"',
                "Its exponent is the planned length.",
            )
        self.failure = errors.probability("failure", failure)
        self.cap = None if cap is None else errors.number("cap", cap, above=0)
        if averaged and METHODS[self.estimator].needs_range and cap is None:
            raise errors.refuse(
                "cap",
                cap,
                f"to be given for estimator={self.estimator!r}",
                'A bound on a mean needs the worst case. Or use estimator="student-t", a heuristic (ERR 4).',
            )
        self.conversion: convert.Conversion = errors.one_of("conversion", conversion, ("tail", "hockey-stick"))
        if conversion != "tail" and not averaged:
            raise errors.refuse("conversion", conversion, 'to be "tail" for composition="audit-set" (a loss bound)')
        self.adjacency: Adjacency = errors.one_of("adjacency", adjacency, ADJACENCIES)
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
        """The instance accountant of each orientation ("audit-set" only): its answers are about named records."""
        return MappingProxyType({n: side for n, side in self._sides.items() if isinstance(side, InstanceAccountant)})

    def cost(self, order: float, orientation: str = "absent") -> Any:
        """The tally at one of the orders: a number, or for "audit-set" an array with one entry per witness."""
        side = self._sides.get(errors.one_of("orientation", orientation, ORIENTATIONS))
        return (side or self._make(records=1)).cost(order)

    def guarantee(self, delta: float, coverage: float | None = None, limit: float | None = None) -> Guarantee:
        """The promise at δ.

        "audit-set": for a share `coverage` of people, fixed beforehand (0.9 unless given), see `curve` otherwise:
        Pr[x is covered and its loss >= ε] <= δ for every x, and the covered share is right with confidence
        1 - failure (H5). With a cap, the smaller of that at δ/2 and the DP value at δ/2 (H12), which is `limit` where
        the caller has it already.

        "holder", "product": strong or weak BDP (C1, C2), the probability δ being over people and runs together;
        with a `coverage`, the per-person reading of C3: ε at δ (1 - coverage), by Markov.

        Bad input: δ or coverage outside (0, 1), or a coverage that so few witnesses cannot support, get `InputError`.
        """
        delta = errors.probability("delta", delta)
        if coverage is not None:
            coverage = errors.probability("coverage", coverage)
        if self.composition == "audit-set":
            return self._covered(delta, 0.9 if coverage is None else coverage, limit)
        return self._joint(delta, coverage)

    def curve(self, delta: float, limit: float | None = None) -> Curve:
        """Coverage → ε for the whole population at once (H12): the larger of the two orientations.

        For "audit-set" only; each rank is bounded at failure/(witnesses x orientations).
        """
        delta = errors.probability("delta", delta)
        if self.composition != "audit-set":
            raise errors.refuse("composition", self.composition, 'to be "audit-set" for a curve')
        losses, limit = self._losses(delta, limit)
        return coverages.curve(losses, delta, self.failure, limit)

    # --- what is kept ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "kind": KIND,
            "version": VERSION,
            "config": {
                "composition": self.composition,
                "estimator": self.estimator if self.composition != "audit-set" else None,
                "orders": self.orders,
                "total_steps": self.total_steps,
                "failure": self.failure,
                "cap": self.cap,
                "conversion": self.conversion,
                "weights": self.weights,
                "adjacency": self.adjacency,
            },
            "sides": {name: side.state() for name, side in self._sides.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> BayesianAccountant:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""
        states.check(state, KIND, VERSION, {"config", "sides"})
        with states.reading():
            self = cls(**state["config"])
            kind = _Witnesses if self.composition == "audit-set" else PopulationCost
            self._sides = {
                errors.one_of("orientation", name, ORIENTATIONS): kind.from_state(side)
                for name, side in state["sides"].items()
            }
        return self

    def save(self, path: str | Path) -> None:
        """Write the state to `path` (JSON), large arrays beside it (NPZ)."""
        states.write(path, self.state())

    @classmethod
    def load(cls, path: str | Path) -> BayesianAccountant:
        """Read what `save` wrote. An unreadable, malformed or foreign file gets `InputError`."""
        return cls.from_state(states.read(path))

    # --- answering ------------------------------------------------------------------------------------------

    def _make(self, records: int, side: str = "present") -> Any:
        # Under add-remove B4 bounds either side (B6). Replacing is not symmetric: an outsider takes the place of
        # somebody unknown, a member gives way to somebody unknown.
        direction = _REPLACED[side] if self.adjacency == "replace-one" else "both"
        common = {"orders": self._given["orders"], "total_steps": self.total_steps, "cap": self.cap}
        if self.composition == "audit-set":
            return _Witnesses(
                records, **common, weights=self._given["weights"], adjacency=self.adjacency, direction=direction
            )
        if self._given["weights"] is not None:
            raise errors.refuse("weights", self._given["weights"], 'to be left out unless composition="audit-set"')
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

    def _losses(self, delta: float, known: float | None) -> tuple[dict[str, Array], float]:
        """ε of every witness by orientation, and the DP value that limits them."""
        self._check_lengths()
        losses, limits = {}, [math.inf]
        for name, side in self._sides.items():
            assert isinstance(side, InstanceAccountant)
            losses[name], limit = side.epsilon_and_limit(delta, limit=known)
            limits.append(math.inf if limit is None else limit)
        return losses, max(limits[1:], default=math.inf)

    def _check_lengths(self) -> None:
        counts = {name: side.steps for name, side in self._sides.items()}
        if len(set(counts.values())) > 1:
            raise InputError(
                f"Expected as many steps of outsiders as of members, got {counts}. Step both before asking."
            )

    def _covered(self, delta: float, coverage: float, known: float | None) -> Guarantee:
        losses, limit = self._losses(delta, known)
        epsilon = coverages.covered(losses, coverage, self.failure, limit)
        dp_won = bool(losses) and epsilon == limit
        words = [_WITNESSES, _PUBLIC, "The loss of each witness along the run bounds it (H3, H5, H12)."]
        if math.isfinite(limit):
            words.append(
                "The DP value at δ/2 won: this is an a-priori statement for everybody (H12)."
                if dp_won
                else f"The ex-post value at δ/2 won over the DP value at δ/2, {up(limit)} (H12)."
            )
        return self._guarantee(
            epsilon=epsilon,
            delta=delta,
            coverage=coverage,
            failure=self.failure,
            strength="weak" if dp_won else "strong",
            ex_post=not dp_won,
            assumptions=(*words, *self._one_sided()),
            delta_split={"ex-post": delta / 2, "dp": delta / 2} if math.isfinite(limit) else {"ex-post": delta},
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
        values = [float(convert.epsilon(c, self.orders, share - lost, self.conversion)) for c in costs]
        epsilon = max(values, default=0.0)
        words = [METHODS[self.estimator].assumption]
        if self.composition == "product":
            words.append("UNSOUND: S1's product rule treats the same person as a new one at every step (C6, ERR 1).")
        else:
            words.append("S0's Hölder composition over a number of steps fixed in advance (C7).")
        words.append(_ADAPTIVE)
        if coverage is not None:
            words.append(f"Per person by Markov's inequality (C3): the joint statement holds at δ x {1 - coverage:g}.")
        return self._guarantee(
            epsilon=epsilon,
            delta=delta,
            coverage=coverage,
            failure=0.0,
            strength="strong" if self.conversion == "tail" else "weak",
            ex_post=False,
            assumptions=(*words, *self._one_sided()),
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

    def _one_sided(self) -> tuple[str, ...]:
        if len(self._sides) != 1:
            return ()
        given, missing = ("outsiders", "members") if "absent" in self._sides else ("members", "outsiders")
        return (f"Only {given} were given as witnesses: nothing is said about {missing} (C1, H5).",)
