"""The three tallies of a run: the worst case, the population of people like those in the data, the watched records.

Distances are counted in units of the step's own sensitivity, so that clip and noise schedules are one plan with clip
norm 1 and noise z_t. Without clipping (paper S1) they are absolute, and nothing is promised to everybody.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant import BayesianAccountant, InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant import state as states
from bayesdp.accountant.rdp import Run, phases
from bayesdp.accountant.worst_case import Engine, PlanDP
from bayesdp.compose import orders
from bayesdp.compose.ex_post import DP_SHARE
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency, Guarantee

KIND = "bayesdp/tallies"
VERSION = 3
Distances = npt.NDArray[np.floating[Any]]
"""float32 stays float32, so that the accountants know how far to raise it."""

NOISELESS = "No noise was added in some step: nothing is promised to anybody."
UNBOUNDED = "No clipping: one record can move an update by any amount, so nothing is promised to everybody (S1)."


class Counts(NamedTuple):
    """How many witnesses there are of each kind, who come in this order in every array of distances."""

    outsiders: int
    members: int
    watched: int


class SoFar(NamedTuple):
    """ε of the three notions along a run; None where there are no witnesses."""

    dp: float
    population: float | None
    instance: float | None


class Tallies:
    """The tallies of one run of `chains` chains, each of which has steps of noise `noise` and rates `rates` (steps,).

    `members_counted`: the members among the witnesses are all there are (H16). `budgets` is the accountant of an
    individual filter (H4), whose promise to everybody the run has as well. `prelude` is the noise multiplier of what
    was released before the first step.
    """

    def __init__(
        self,
        *,
        counts: Counts,
        noise: Array,
        rates: Array,
        bounded: bool,
        delta: float,
        failure: float,
        engine: Engine,
        adjacency: Adjacency,
        chains: int = 1,
        budgets: InstanceAccountant | None = None,
        members_counted: bool = False,
        prelude: float | None = None,
    ) -> None:
        self.budgets, self.chains, self.prelude = budgets, chains, prelude
        self.noise, self.rates, self.bounded, self.delta = noise, rates, bounded, delta
        steps = chains * len(noise) + (prelude is not None)
        self.worst_case = WorstCaseAccountant(engine=engine, adjacency=adjacency, total_steps=steps)
        self.noiseless = bool((noise == 0).any())
        self.counts = Counts(0, 0, 0) if self.noiseless else counts
        common: dict[str, Any] = {"total_steps": steps, "failure": failure, "adjacency": adjacency}
        if bounded and any(self.counts):
            # The plan's own DP, as one more test function (H14), has the rest of δ.
            levels, paces, lengths = zip(*self._phases, strict=True)
            grid, weights = orders.planned(levels, paces, lengths, (1 - DP_SHARE) * delta)
            common |= {"orders": grid, "weights": weights, "cap": 1.0}
        outsiders, members, watched = self.counts
        people = {**common, "members_counted": members_counted}
        self.population = BayesianAccountant(**people) if outsiders + members else None
        self.watched = InstanceAccountant(records=watched, **common) if watched else None
        self._known_dp: PlanDP | None = None
        self.charged = 0
        """Steps that the witnesses were charged for."""
        if prelude is not None:
            self._charge_prelude(prelude)

    def _charge_prelude(self, noise: float) -> None:
        """Charge what was released before the first step, to everybody at the full distance (H22)."""
        release: dict[str, Any] = {"noise_std": noise, "sampling_rate": 1.0}
        if self.promises:
            self.worst_case.step(noise_multiplier=noise)
        outsiders, members, watched = self.counts
        if self.population is not None and outsiders:
            self.population.step(np.ones(outsiders), orientation="absent", **release)
        if self.population is not None and members:
            self.population.step(np.ones(members), orientation="present", **release)
        if self.watched is not None:
            self.watched.step(np.ones(watched), **release)
        if self.budgets is not None:
            admitted = self.budgets.step(np.ones(self.budgets.records), **release)
            if admitted is None or not admitted.all():
                raise errors.refuse(
                    "filter epsilon",
                    None,
                    "to pay for the preparation of the data for everybody",
                    got="less for somebody",
                )

    @property
    def promises(self) -> bool:
        """Whether there is anything to promise everybody: clipping and noise in every step."""
        return self.bounded and not self.noiseless

    def charge_worst_case(self, start: int, stop: int) -> None:
        """Charge steps start … stop-1 of every chain at the DP rate: before they are run (house rule 3)."""
        if self.promises:
            for level, q, count in phases(self.noise[start:stop], self.rates[start:stop]):
                self.worst_case.step(noise_multiplier=level, sampling_rate=q, steps=self.chains * count)

    def on_steps(self, start: int, stop: int, distances: Distances) -> None:
        """Charge the witnesses for steps start … stop-1; `distances` (chains, steps, witnesses).

        One row stands for all steps where these are alike, in noise and rate too.
        """
        _, rows, witnesses = distances.shape
        if not witnesses:
            return
        if rows == 1:
            for seen in distances[:, 0]:
                self.charge(start, seen, stop - start)
            return
        for i, step in enumerate(range(start, stop)):
            for seen in distances[:, i]:
                self.charge(step, seen)

    def charge(self, step: int, distances: Distances, steps: int = 1) -> None:
        """Charge the witnesses for `steps` steps like `step`, from that on, of one chain.

        `distances` (witnesses,) are in units of the sensitivity (absolute without clipping).
        """
        outsiders, members, _ = self.counts
        noise: dict[str, Any] = {
            "noise_std": float(self.noise[step]),
            "sampling_rate": float(self.rates[step]),
            "steps": steps,
        }
        if self.population is not None:
            if outsiders:
                self.population.step(distances[:outsiders], orientation="absent", **noise)
            if members:
                inside = distances[outsiders : outsiders + members]
                self.population.step(inside, orientation="present", **noise)
        if self.watched is not None:
            self.watched.step(distances[outsiders + members :], **noise)
        self.charged = step + steps

    @property
    def instance(self) -> InstanceAccountant | None:
        """The accountant of the watched records; of the members where nobody is watched."""
        if self.watched is not None or self.population is None:
            return self.watched
        witnesses = self.population.witnesses
        return witnesses.get("present", witnesses.get("absent"))

    def so_far(self, coverage: float) -> SoFar:
        """ε of the three notions so far: by Rényi accounting, for a snapshot must not cost a composition of loss laws,
        and never above what the whole plan costs by its own engine, which is composed once.
        """
        quick = WorstCaseAccountant(engine="rdp", adjacency=self.worst_case.adjacency)
        for run in self.worst_case.history:
            quick.step(noise_multiplier=run.noise_multiplier, sampling_rate=run.sampling_rate, steps=run.steps)
        plan = self.plan_dp()
        population = None if self.population is None else self.population.guarantee(self.delta, coverage, plan).epsilon
        one = None
        if self.instance is not None:
            one = float(self.instance.epsilon_and_dp(self.delta, dp=plan)[0].max())
        dp = min(quick.epsilon(self.delta), plan.epsilon) if plan is not None else math.inf
        return SoFar(dp, population, one)

    @cached_property
    def _phases(self) -> list[Run]:
        """(noise, rate, steps) of all chains."""
        steps = phases(np.tile(self.noise, self.chains), np.tile(self.rates, self.chains))
        return steps if self.prelude is None else [Run(self.prelude, 1.0, 1), *steps]

    @cached_property
    def _whole(self) -> WorstCaseAccountant:
        """All planned steps."""
        plan = WorstCaseAccountant(engine=self.worst_case.engine, adjacency=self.worst_case.adjacency)
        for level, q, count in self._phases:
            plan.step(noise_multiplier=level, sampling_rate=q, steps=count)
        return plan

    def _filtered(self, delta: float) -> float:
        """What the filter promises to everybody, infinite without one."""
        return math.inf if self.budgets is None else float(self.budgets.epsilon(delta).max())

    def plan_dp(self) -> PlanDP | None:
        """What all planned steps promise everybody, which limits the other two; None where that is nothing.

        Of all planned steps, though some may be still to come: of those done it is a test function only if nobody
        decides by looking when to stop (H14).
        """
        if not self.promises:
            return None
        if self._known_dp is None:
            plan, share = PlanDP.of(self._whole, self.delta), DP_SHARE * self.delta
            self._known_dp = PlanDP(
                min(plan.epsilon, self._filtered(self.delta)), min(plan.at_share, self._filtered(share))
            )
        return self._known_dp

    def guarantees(self, coverage: float) -> list[Guarantee]:
        """One per notion: "dp", "bdp" at `coverage`, "per-instance" for each of those watched."""
        plan = self.plan_dp()
        dp = self._whole.guarantee(self.delta) if self.promises else self.worst_case.guarantee(self.delta)
        if self.budgets is not None and self._filtered(self.delta) < dp.epsilon:
            dp = self.budgets.guarantee(self.delta)
        if not self.promises:
            dp = Guarantee(
                notion="dp",
                epsilon=math.inf,
                delta=self.delta,
                adjacency=dp.adjacency,
                sampling="poisson" if (self.rates < 1).any() else "none",
                assumptions=(NOISELESS if self.noiseless else UNBOUNDED,),
            )
        result = [dp]
        if self.population is not None:
            result.append(self.population.guarantee(self.delta, coverage, plan))
        if self.instance is not None:
            result.append(self.instance.guarantee(self.delta, dp=plan))
        return result

    def state(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "version": VERSION,
            "worst_case": self.worst_case.state(),
            "population": None if self.population is None else self.population.state(),
            "watched": None if self.watched is None else self.watched.state(),
            "budgets": None if self.budgets is None else self.budgets.state(),
            "charged": self.charged,
        }

    def copy(self) -> Tallies:
        """The tallies as they are now, which later charges do not reach."""
        same = copy.copy(self)
        same.restore(self.state())
        return same

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state of the same plan."""
        states.check(state, KIND, VERSION, {"worst_case", "population", "watched", "budgets", "charged"})
        with states.reading():
            self.worst_case = WorstCaseAccountant.from_state(state["worst_case"])
            population, watched, budgets = (state[name] for name in ("population", "watched", "budgets"))
            self.population = None if population is None else BayesianAccountant.from_state(population)
            self.watched = None if watched is None else InstanceAccountant.from_state(watched)
            self.budgets = None if budgets is None else InstanceAccountant.from_state(budgets)
            self.charged = int(state["charged"])
