"""One mechanism run again and again, what a run costs each record being known before the first.

    loss L_k of k runs:   E exp(λL_k − k·cost(λ)) = 1,   a martingale in k for every λ

Sampling a posterior is such a mechanism once training is done. Because costs are not random any more, each record may
use the order that is best for it, for free; an accountant of training must spread its bet over orders (mixture, H12).

    "strong"  Pr[L_k >= ε for some k <= planned] <= δ,   ε = (k·cost + log(1/δ))/λ at the order that is best
              for the planned number: strong (C1), whenever one stops (Ville, H3)
    "weak"    the smaller ε of ordinary (ε, δ) after k runs (B10): weak (C2), k fixed without looking. Where a run is
              a sample of a Gaussian, from the law of the loss (B16): no order gives an ε as small
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesdp import convert, errors
from bayesdp.accountant import coverage as coverages
from bayesdp.accountant import fine_print
from bayesdp.accountant import state as states
from bayesdp.accountant.coverage import Curve
from bayesdp.convert import STRENGTHS, Strength
from bayesdp.divergence.gaussian_loss import GaussianPairs
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee, Sampling

KIND = "bayesdp/repeated"
VERSION = 2

_HOW: dict[str, str] = {
    "strong": "The cost of one sample is fixed before the first is drawn; an exponential martingale over the samples "
    "bounds the loss whenever one stops (H3).",
    "weak": "The cost of one sample is fixed before the first is drawn (B10); how many are drawn does not "
    "depend on their values.",
}
_LAW = "ε is that of the law of the loss of all samples, a quadratic form of Gaussians, rounded up (B16)."
_PAIRS = "The share is one of pairs: a member, and an outsider who takes its place, drawn independently."
SIDES = ("absent", "present", "exchanged")


class RepeatedRelease:
    """What up to `planned` runs cost each of some records.

    `cost` is (records, orders), (α−1)·D_α of one run at Rényi `orders`, the larger direction; +inf allowed. `pairs`:
    the Gaussians that it is the cost of, where they are, for the weak form; as sensitive as the records. `adjacency`,
    `sampling`: which change of the data it is the cost of. Queries change nothing; bad input gets `InputError` and
    changes nothing.
    """

    def __init__(
        self,
        cost: Any,
        orders: Any,
        *,
        planned: int,
        strength: Strength = "weak",
        sampling: Sampling = "none",
        adjacency: Adjacency = "add-remove",
        pairs: GaussianPairs | None = None,
    ) -> None:
        self.orders = errors.orders("orders", orders)
        self.costs = errors.array("cost", cost, least=0, infinite=True, ndim=2)
        if self.costs.shape[1] != len(self.orders):
            raise errors.refuse(
                "cost", self.costs.shape, f"with {len(self.orders)} orders on the last axis", got=f"{self.costs.shape}"
            )
        self.planned = errors.whole("planned", planned, least=1)
        self.strength: Strength = errors.one_of("strength", strength, STRENGTHS)
        self.sampling: Sampling = sampling
        self.adjacency: Adjacency = errors.one_of("adjacency", adjacency, ADJACENCIES)
        if pairs is not None and pairs.record.max() >= len(self.costs):
            raise errors.refuse("pairs", pairs.record.max(), f"of {len(self.costs)} records")
        self.pairs = pairs
        self.times = 0
        self._found: dict[tuple[int, float], Array] = {}

    def step(self, times: int = 1) -> None:
        """Charge every record for `times` more runs; before they happen. More than planned: `InputError`."""
        count = errors.whole("times", times, least=1)
        if self.times + count > self.planned:
            raise errors.unmet(
                "times",
                count,
                f"at most {errors.Argument('planned', self.planned)} runs",
                f"{count} more after {self.times}",
            )
        self.times += count

    def epsilon(self, delta: float) -> Array:
        """ε at δ of each record for the runs so far; 0 before the first."""
        delta = errors.probability("delta", delta)
        if self.times == 0:
            return np.zeros(len(self.costs))
        if self.strength == "weak" and self.pairs is not None:
            key = (self.times, delta)  # asked for again by every guarantee, curve and report
            if key not in self._found:
                self._found = {key: self.pairs.epsilon(self.times, delta, self.costs, self.orders)}
            return self._found[key].copy()
        so_far = convert.epsilon_per_order(self.times * self.costs, self.orders, delta, self.strength)
        if self.strength == "weak":
            return np.asarray(np.maximum(so_far.min(axis=1), 0))
        in_all = convert.epsilon_per_order(self.planned * self.costs, self.orders, delta, "strong")
        return np.asarray(np.take_along_axis(so_far, in_all.argmin(axis=1)[:, None], axis=1)[:, 0])

    def exposure(self, delta: float) -> Array:
        """How exposed each record is, to put them in order: ε itself, which nothing caps here."""
        return self.epsilon(delta)

    def guarantee(self, delta: float, record: int | None = None) -> Guarantee:
        """The promise to one record, or to each of them (the largest ε), named before the run (H19)."""
        epsilons = self.epsilon(delta)
        place = int(np.argmax(epsilons)) if record is None else errors.whole("record", record, least=0)
        if place >= len(epsilons):
            raise errors.refuse("record", record, f"to be below {len(epsilons)}")
        return Guarantee(notion="per-instance", epsilon=float(epsilons[place]), delta=delta, **self._print(delta))

    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        return {
            "kind": KIND,
            "version": VERSION,
            "cost": self.costs,
            "orders": self.orders,
            "planned": self.planned,
            "strength": self.strength,
            "sampling": self.sampling,
            "adjacency": self.adjacency,
            "pairs": None if self.pairs is None else self.pairs.state(),
            "times": self.times,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RepeatedRelease:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""
        names = {"cost", "orders", "planned", "strength", "sampling", "adjacency", "pairs", "times"}
        states.check(state, KIND, VERSION, names)
        with states.reading():
            pairs = None if state["pairs"] is None else GaussianPairs.from_state(state["pairs"])
            self = cls(**{name: state[name] for name in names - {"times", "pairs"}}, pairs=pairs)
            self.times = errors.whole("times", state["times"], least=0, most=self.planned)
        return self

    def _print(self, delta: float) -> dict[str, Any]:
        return {
            "strength": self.strength,
            "ex_post": True,
            "sensitive": True,
            "sampling": self.sampling,
            "adjacency": self.adjacency,
            "assumptions": (_HOW[self.strength], *([_LAW] if self.strength == "weak" and self.pairs else [])),
            "delta_split": {self.strength: delta},
        }


class RepeatedWitnesses:
    """The same for people like those in the data: witnesses by orientation, "absent" and "present" (H5).

    "exchanged" ones, alone, are pairs of a member and an outsider who takes its place: they speak for both. `coverage`
    and `failure` as for `BayesianAccountant`, `members_counted` too: those "present" are all members (H16). Bad input:
    no witnesses, or too few for the coverage.
    """

    def __init__(
        self,
        sides: Mapping[str, RepeatedRelease],
        *,
        coverage: float,
        failure: float,
        members_counted: bool = False,
    ) -> None:
        self.sides = {errors.one_of("orientation", name, SIDES): one for name, one in sides.items()}
        if not sides:
            raise errors.unmet("sides", sides, "witnesses of at least one orientation", "none")
        if "exchanged" in sides and len(sides) > 1:
            raise errors.unmet("sides", sorted(sides), '"exchanged" witnesses alone', f"them with {sorted(sides)}")
        self.coverage, self.failure = errors.probability("coverage", coverage), errors.probability("failure", failure)
        self.members_counted = errors.one_of("members_counted", members_counted, (True, False))
        counts = {name: len(one.costs) for name, one in self.sides.items() if name not in self._counted}
        coverages.check_support(counts, self.coverage, self.failure / max(1, len(counts)))

    @property
    def _counted(self) -> tuple[str, ...]:
        return ("present",) if self.members_counted else ()

    def step(self, times: int = 1) -> None:
        """Charge all witnesses."""
        for side in self.sides.values():
            side.step(times)

    def guarantee(self, delta: float) -> Guarantee:
        """For a share `coverage` of people, with confidence 1 − failure; the larger of the orientations."""
        first = next(iter(self.sides.values()))
        losses = {name: side.epsilon(delta) for name, side in self.sides.items()}
        details = first._print(delta)
        missing = {"absent": "members", "present": "outsiders"}
        one_sided = [missing[name] for name in self.sides if name in missing] if len(self.sides) == 1 else []
        details["assumptions"] += (
            *fine_print.drawn(self.sides, self.members_counted),
            *([_PAIRS] if "exchanged" in self.sides else []),
            fine_print.ITS_OWN,
            *(f"Nothing is said about {who}: none were given as witnesses (C1, H5)." for who in one_sided),
        )
        return Guarantee(
            notion="bdp",
            epsilon=coverages.covered(losses, self.coverage, self.failure, counted=self._counted),
            delta=delta,
            coverage=self.coverage,
            failure=0.0 if set(losses) <= set(self._counted) else self.failure,
            orientation=next(iter(self.sides)) if one_sided else "both",  # type: ignore[arg-type]
            **details,
        )

    def curve(self, delta: float) -> Curve:
        """Coverage → ε for the whole population at once (H12)."""
        losses = {name: side.epsilon(delta) for name, side in self.sides.items()}
        return coverages.curve(losses, delta, self.failure, math.inf, counted=self._counted)

    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""
        sides = {name: side.state() for name, side in self.sides.items()}
        return {
            "sides": sides,
            "coverage": self.coverage,
            "failure": self.failure,
            "members_counted": self.members_counted,
        }
