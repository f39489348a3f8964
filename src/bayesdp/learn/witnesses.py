"""The three tallies of a run: everybody, people like those in the data, and the records that are watched.

Distances are counted in units of the step's own sensitivity, so that clip and noise schedules are one plan with clip
norm 1 and noise z_t. Without clipping (S1) they are absolute, and nothing is promised to everybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from bayesdp.accountant import BayesianAccountant, InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant import state as states
from bayesdp.compose import orders
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency, Guarantee
from bayesdp.learn.schedule import phases

KIND = "bayesdp/tallies"
VERSION = 2
NOISELESS = "No noise was added in some step: nothing is promised to anybody."
UNBOUNDED = "No clipping: one record can move an update by any amount, so nothing is promised to everybody (S1)."


class Tallies:
    """`outsiders`, `members` and `watched` count the witnesses, who come in this order in every array of distances.

    `budgets` is the accountant of a filter (H4), whose promise to everybody the run has as well.
    """

    def __init__(
        self,
        *,
        outsiders: int,
        members: int,
        watched: int,
        noise: Array,
        rates: Array,
        bounded: bool,
        delta: float,
        failure: float,
        engine: Any,
        adjacency: Adjacency,
        budgets: InstanceAccountant | None = None,
    ) -> None:
        self.budgets = budgets
        self.noise, self.rates, self.bounded, self.delta = noise, rates, bounded, delta
        steps = len(noise)
        self.everybody = WorstCaseAccountant(engine, adjacency, total_steps=steps)
        self.noiseless = bool((noise == 0).any())
        if self.noiseless:
            outsiders = members = watched = 0
        if bounded and outsiders + members + watched:
            # Half of δ pays for the minimum with the worst case.
            levels, paces, lengths = zip(*phases(noise, rates), strict=True)
            grid, weights = orders.planned(levels, paces, lengths, delta / 2)
            plan: dict[str, Any] = {"orders": grid, "weights": weights, "cap": 1.0}
        else:
            plan = {}
        common = {"total_steps": steps, "failure": failure, "adjacency": adjacency, **plan}
        self.counts = (outsiders, members, watched)
        self.alike = BayesianAccountant(**common) if outsiders + members else None
        self.watched = InstanceAccountant(watched, **common) if watched else None
        self.charged = 0

    @property
    def promises(self) -> bool:
        """Whether there is anything to promise everybody: clipping and noise in every step."""
        return self.bounded and not self.noiseless

    def charge_everybody(self, start: int, stop: int) -> None:
        """Charge steps start … stop-1 at the DP rate: before they are run (house rule 3)."""
        if self.promises:
            for level, q, count in phases(self.noise[start:stop], self.rates[start:stop]):
                self.everybody.step(noise_multiplier=level, sampling_rate=q, steps=count)

    def charge(self, step: int, distances: Array, steps: int = 1) -> None:
        """Charge the witnesses for `steps` steps like `step`, from that on.

        `distances` are in units of the sensitivity (absolute without clipping).
        """
        a, m, _ = self.counts
        noise: dict[str, Any] = {
            "noise_std": float(self.noise[step]),
            "sampling_rate": float(self.rates[step]),
            "steps": steps,
        }
        if self.alike is not None:
            if a:
                self.alike.step(distances[:a], orientation="absent", **noise)
            if m:
                self.alike.step(distances[a : a + m], orientation="present", **noise)
        if self.watched is not None:
            self.watched.step(distances[a + m :], **noise)
        self.charged = step + steps

    @property
    def instance(self) -> InstanceAccountant | None:
        """The accountant of the watched records; of the members where nobody is watched."""
        if self.watched is not None or self.alike is None:
            return self.watched
        witnesses = self.alike.witnesses
        return witnesses.get("present", witnesses.get("absent"))

    def look(self, coverage: float) -> tuple[float, float | None, float | None]:
        """ε of the three notions so far: by Rényi accounting, for a look must not cost a composition of loss laws, and
        never above what the whole plan costs by its own engine, which is composed once.
        """
        quick = WorstCaseAccountant("rdp", self.everybody.adjacency)
        for run in self.everybody.history:
            quick.step(noise_multiplier=run.noise_multiplier, sampling_rate=run.sampling_rate, steps=run.steps)
        limit = min(quick.epsilon(self.delta / 2), self._whole[1]) if self.promises else None
        alike = None if self.alike is None else self.alike.guarantee(self.delta, coverage, limit).epsilon
        one = None
        if self.instance is not None:
            one = float(self.instance.epsilon_and_limit(self.delta, limit=limit)[0].max())
        return min(quick.epsilon(self.delta), self._whole[0]) if self.promises else math.inf, alike, one

    @cached_property
    def _whole(self) -> tuple[float, float]:
        """The DP ε of the whole plan at δ and at δ/2."""
        plan = WorstCaseAccountant(self.everybody.engine, self.everybody.adjacency)
        for level, q, count in phases(self.noise, self.rates):
            plan.step(noise_multiplier=level, sampling_rate=q, steps=count)
        return tuple(min(plan.epsilon(delta), self._filtered(delta)) for delta in (self.delta, self.delta / 2))  # type: ignore[return-value]

    def _filtered(self, delta: float) -> float:
        """What the filter promises to everybody, infinite without one."""
        return math.inf if self.budgets is None else float(self.budgets.epsilon(delta)[0])

    def limit(self) -> float | None:
        """The DP ε at δ/2 that limits the other two, None where nothing is promised to everybody."""
        half = self.delta / 2
        return min(self.everybody.epsilon(half), self._filtered(half)) if self.promises else None

    def guarantees(self, coverage: float) -> list[Guarantee]:
        """One per notion: "dp", "bdp" at `coverage`, "per-instance" for the worst off of those watched."""
        limit = self.limit()
        dp = self.everybody.guarantee(self.delta)
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
        if self.alike is not None:
            result.append(self.alike.guarantee(self.delta, coverage, limit))
        if self.instance is not None:
            result.append(self.instance.guarantee(self.delta, limit=limit))
        return result

    def state(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "version": VERSION,
            "everybody": self.everybody.state(),
            "alike": None if self.alike is None else self.alike.state(),
            "watched": None if self.watched is None else self.watched.state(),
            "budgets": None if self.budgets is None else self.budgets.state(),
            "charged": self.charged,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state of the same plan."""
        states.check(state, KIND, VERSION, {"everybody", "alike", "watched", "budgets", "charged"})
        with states.reading():
            self.everybody = WorstCaseAccountant.from_state(state["everybody"])
            self.alike = None if state["alike"] is None else BayesianAccountant.from_state(state["alike"])
            self.watched = None if state["watched"] is None else InstanceAccountant.from_state(state["watched"])
            self.budgets = None if state["budgets"] is None else InstanceAccountant.from_state(state["budgets"])
            self.charged = int(state["charged"])
