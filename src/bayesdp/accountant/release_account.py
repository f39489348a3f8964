"""The account of a secret posterior: every sample that leaves it is charged before it is drawn (C17)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol

import numpy as np

from bayesdp import convert, errors, everybody
from bayesdp.accountant.coverage import Curve
from bayesdp.accountant.fine_print import NAMED, named_beforehand
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency, Guarantee

ORDERS = 1 + np.geomspace(0.01, 4000, 100)
"""From so near to 1 that the divergence of nearly any two Gaussians (B3) is finite there, each a seventh further."""

_UNBOUNDED = (
    "One record can move the posterior by any amount: nothing is promised to everybody. Give radius and scales for a "
    "bound that holds whatever the data."
)
_BOX = "Means in a public ball and scales in a public range bound the divergence of any two posteriors (B3)."
_SECRET = "Nothing but samples leaves the posterior; its parameters stay secret (C17)."
_REVEALED = (
    "Batches and Monte Carlo draws of the training count as known to the attacker (H6); a record's own coins are "
    "part of its draw from the population."
)
_PUBLIC = "Preprocessing, rates and steps are public (H6)."


WITNESSES = {
    "present": "members",
    "exchanged": "pairs of a member and an outsider in its place",
    "absent": "outsiders",
}
"""Groups of witnesses in words, those first whose losses a report shows where nobody is watched."""


class People(Protocol):
    """Whoever answers for people like those in the data: neighbouring runs, or the paper's one-step recipe."""

    def step(self, times: int = 1) -> None: ...

    def guarantee(self, delta: float) -> Guarantee: ...

    def state(self) -> dict[str, Any]: ...


def worst_epsilon(worst: Array, samples: int, delta: float) -> float:
    """DP ε at δ of that many samples, `worst` being the largest cost of one at each of `ORDERS`."""
    return 0.0 if samples == 0 else float(convert.epsilon(samples * worst, ORDERS, delta))


def affordable(worst: Array, samples: int, delta: float, budget: float | None) -> int:
    """How many of `samples` a DP budget pays for (a public number); all of them without one.

    Bad input: a budget without a finite worst case, or one that does not pay for a single sample.
    """
    if budget is None:
        return samples
    errors.number("epsilon_budget", budget, above=0)
    if not np.isfinite(worst).any():
        raise errors.unmet(
            "radius",
            None,
            f"{errors.named('radius')} and {errors.named('scales')} to be given with {errors.named('epsilon_budget')}: "
            "without them the DP ε of a sample is infinite",
        )
    low, high = 0, samples
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if worst_epsilon(worst, middle, delta) <= budget else (low, middle - 1)
    if low == 0:
        one = worst_epsilon(worst, 1, delta)
        raise errors.refuse(
            "epsilon_budget", budget, f"to be at least {math.ceil(one * 1e3) / 1e3:g}, the DP ε of one sample"
        )
    return low


class ReleaseAccount:
    """Counts samples, refuses more than `samples`, and says what those drawn so far have cost.

    `worst` is the largest cost of one sample at each of `ORDERS` (infinite if unbounded); `population` answers for
    people like those in the data, `watched` for the watched records. `adjacency` is what the promises are about.
    """

    def __init__(
        self,
        *,
        samples: int,
        delta: float,
        worst: Array,
        population: People | None,
        watched: RepeatedRelease | None,
        adjacency: Adjacency = "add-remove",
    ) -> None:
        self.samples, self.delta, self.worst, self.adjacency = samples, delta, worst, adjacency
        self.population, self.watched = population, watched
        self.drawn = 0

    @property
    def remaining(self) -> int:
        """How many samples may still be drawn."""
        return self.samples - self.drawn

    def charge(self, count: int) -> None:
        """Charge `count` samples. More than remain: `InputError`, and nothing is charged."""
        count = errors.whole("n", count, least=1)
        if count > self.remaining:
            raise errors.refuse(
                "n",
                count,
                f"to be at most {self.remaining}: the account was opened for {self.samples} samples, "
                f"and {self.drawn} have been drawn",
                "A new account is a new fit with a new guarantee; samples already drawn can be used again for free.",
            )
        for part in (self.population, self.watched):
            if part is not None:
                part.step(count)
        self.drawn += count

    def guarantees(self) -> list[Guarantee]:
        """One per notion, for the samples drawn so far: "dp"; "bdp"; "per-instance" for each watched, the largest."""
        bounded = bool(np.isfinite(self.worst).any())
        dp = Guarantee(
            notion="dp",
            epsilon=worst_epsilon(self.worst, self.drawn, self.delta),
            delta=self.delta,
            adjacency=self.adjacency,
            sampling="none",
            assumptions=(_BOX if bounded else _UNBOUNDED, _SECRET),
            delta_split={"dp": self.delta},
        )
        parts = [part for part in (self.population, self.instance) if part is not None]
        return everybody.beside([dp, *(_explained(part.guarantee(self.delta)) for part in parts)])

    @property
    def instance(self) -> RepeatedRelease | None:
        """The accountant of the watched records; of the member witnesses (or others) where nobody is watched."""
        return self._shown[1]

    @property
    def whose(self) -> str:
        """In words, whom the per-instance guarantee is for."""
        return self._shown[0]

    @property
    def _shown(self) -> tuple[str, RepeatedRelease | None]:
        if self.watched is not None:
            return named_beforehand(len(self.watched.costs), "watched records"), self.watched
        if isinstance(self.population, RepeatedWitnesses):
            name, book = next(
                (name, self.population.sides[name]) for name in WITNESSES if name in self.population.sides
            )
            return named_beforehand(len(book.costs), WITNESSES[name]), book
        return "", None

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without neighbouring runs of witnesses."""
        if not isinstance(self.population, RepeatedWitnesses):
            return None
        everybodys = worst_epsilon(self.worst, self.drawn, self.delta)
        return dataclasses.replace(self.population.curve(self.delta), dp=everybodys)

    def state(self) -> dict[str, Any]:
        """What was charged, as plain values and arrays."""
        return {
            "samples": self.samples,
            "drawn": self.drawn,
            "delta": self.delta,
            "population": None if self.population is None else self.population.state(),
            "watched": None if self.watched is None else self.watched.state(),
        }


def _explained(guarantee: Guarantee) -> Guarantee:
    named = (NAMED,) if guarantee.notion == "per-instance" else ()
    words = (*guarantee.assumptions, _SECRET, _REVEALED, _PUBLIC, *named)
    return dataclasses.replace(guarantee, assumptions=words)
