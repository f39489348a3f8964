"""A plan of `SGD.suggest` as numbers and words, and what was measured for shapes like it (plans.csv)."""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from bayesdp.accountant import WorstCaseAccountant
from bayesdp.learn import goals
from bayesdp.learn.loop.schedule import phases
from bayesdp.learn.sgd import SGD

TABLE = "plans.csv"
"""Written by `benchmarks/plans.py`: measured on validation records of public sets."""

_NEAR = 1.5
"""How far apart, in natural logarithms of N, d and ε together, shapes may be to be called similar."""

_SHOWN = 3


class Suggested(NamedTuple):
    """A plan before any record is touched."""

    goal: str
    sampling_rate: float
    steps: int
    clip_norm: float
    noise_multiplier: float
    learning_rate: float
    momentum: float
    epsilon: float
    delta: float
    signal_to_noise: float
    noise_on_outputs: float

    @property
    def sentences(self) -> list[str]:
        """For people."""
        return [
            f"Goal {self.goal}: {goals.WHY[self.goal]}.",
            f"  {self.steps} steps, each with a record's chance of {self.sampling_rate:.4g}; clip norm "
            f"{self.clip_norm:g}, noise multiplier {self.noise_multiplier:.4g}, less noise and longer steps from the "
            f"first to 40 %; SGD, momentum {self.momentum:g}, learning rate {self.learning_rate:g}.",
            f"  DP ε = {self.epsilon:.4g} at δ = {self.delta:g}.",
            f"  If all gradients agreed they would be {self.signal_to_noise:.3g} times the noise on their sum; noise "
            f"alone moves an output by about {self.noise_on_outputs:.2g}.",
        ]


class Measured(NamedTuple):
    """A line of the table."""

    name: str
    records: int
    features: int
    classes: int
    epsilon: float
    goal: str
    score: float
    constant: float

    @property
    def sentence(self) -> str:
        """For people."""
        if self.classes:
            reached = f"{100 * self.score:.1f} % right, a constant answer {100 * self.constant:.1f} %"
        else:
            reached = f"R² {self.score:.2f}"
        return (
            f"Measured, goal {self.goal}: {self.name} ({self.records:,} records, {self.features:,} features, "
            f"{self.classes or 'no'} classes, DP ε = {self.epsilon:g}): {reached}."
        )


def suggested(
    goal: str, records: int, features: int, classes: int, epsilon: float, delta: float, norm: float | None
) -> Suggested:
    """The plan of a goal. Bad input: see `SGD.suggest`."""
    shape = goals.Shape(records, features, classes, norm)
    wanted = goals.steps_of(shape)
    plan = SGD.suggest(
        num_records=records, features=features, classes=classes, epsilon=epsilon, delta=delta, goal=goal, norm=norm
    )
    assert plan.noise_multiplier is not None
    sizes = goals.sizes(
        goal,
        shape,
        noise=plan.noise,
        pace=goals.paces(plan.noise_schedule, wanted.falling, plan.steps),
        sampling_rate=plan.sampling_rate,
        momentum=wanted.momentum,
    )
    per_step = plan.noise / (plan.sampling_rate * records)
    return Suggested(
        goal,
        plan.sampling_rate,
        plan.steps,
        sizes.clip_norm,
        plan.noise_multiplier,
        sizes.learning_rate,
        wanted.momentum,
        _epsilon(plan),
        delta,
        float(math.sqrt(np.sum(per_step**-2.0))),
        sizes.noise_on_outputs,
    )


def _epsilon(plan: SGD) -> float:
    accountant = WorstCaseAccountant(engine=plan.engine, adjacency=plan.adjacency)
    for level, rate, count in phases(plan.noise, plan.rates):
        accountant.step(noise_multiplier=level, sampling_rate=rate, steps=count)
    return accountant.epsilon(plan.delta)


def similar(records: int, features: int, classes: int, epsilon: float) -> list[Measured]:
    """The nearest lines of the table, of the same kind of target."""

    def distance(line: Measured) -> float:
        pairs = ((line.records, records), (line.features, features), (line.epsilon, epsilon))
        return math.hypot(*(math.log(one / other) for one, other in pairs))

    alike = [
        line
        for line in table()
        if line.goal in goals.GOALS and bool(line.classes) == bool(classes) and distance(line) <= _NEAR
    ]
    return sorted(alike, key=distance)[:_SHOWN]


@cache
def table() -> tuple[Measured, ...]:
    """All lines."""
    text = resources.files("bayesdp.learn").joinpath(TABLE).read_text("utf-8")
    return tuple(
        Measured(
            row["set"],
            int(row["records"]),
            int(row["features"]),
            int(row["classes"]),
            float(row["epsilon"]),
            row["goal"],
            float(row["score"]),
            float(row["constant"]),
        )
        for row in csv.DictReader(text.splitlines())
    )
