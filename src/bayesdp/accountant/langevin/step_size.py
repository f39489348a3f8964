"""How large a Langevin step may be: the chain's own noise is the noise that privacy needs (F2, F3; calibration F8).

    θ' = θ + η_t (∇log p(θ)/N + (1/τ) Σ_{i in batch} clip(∇log p(d_i|θ); L)) + N(0, c η_t/N · I),   c = 2·temperature
    z_t = (τ/L) sqrt(c / (N η_t)),      η_t = η ("fixed")  or  η t^{-1/3} ("decreasing")

A longer step is less noise for each unit of gradient, so the largest step is found from the least noise. All iterates
are released. η is the step of paper S4; that of the unscaled posterior gradient is h = η/N. Temperature 1 samples the
posterior; S4's Algorithm 1 has 1/2 (ERR 25).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from bayesdp import errors
from bayesdp.accountant.calibrate import calibrate_noise
from bayesdp.accountant.langevin import noise
from bayesdp.accountant.worst_case import Engine, WorstCaseAccountant
from bayesdp.divergence.hockey_stick import gaussian_shift
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency

Schedule = Literal["fixed", "decreasing"]
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)

_LEVELS = 16
"""A decreasing chain is cut into this many stretches, each charged as if all of its steps were as long as its first:
never too little. The first step comes out some 6 % smaller than it could be, the account hundreds of times sooner."""


@dataclass(frozen=True, kw_only=True)
class Langevin:
    """A chain but for its step: N `records`, expected `batch` τ, `steps` T, gradient `bound` L, and the schedule.

    Bad input gets `InputError` naming the field.
    """

    records: int
    batch: float
    steps: int
    bound: float
    schedule: Schedule = "fixed"
    temperature: float = 1.0
    adjacency: Adjacency = "add-remove"

    def __post_init__(self) -> None:
        errors.whole("records", self.records, least=1)
        errors.number("batch", self.batch, above=0, most=self.records)
        errors.whole("steps", self.steps, least=1)
        errors.number("bound", self.bound, above=0, hint="Without a bound on gradients no step is private.")
        errors.one_of("schedule", self.schedule, SCHEDULES)
        errors.number("temperature", self.temperature, above=0)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)

    @property
    def rate(self) -> float:
        """The chance q = τ/N that a record enters a step."""
        return self.batch / self.records

    def noise_multiplier(self, step: float) -> float:
        """The noise multiplier z of a step of size η (F3)."""
        step = errors.number("step", step, above=0)
        return noise.noise_multiplier(step / self.records, **self._scale)

    def step_size(self, noise_multiplier: float) -> float:
        """The inverse: the step whose own noise is z times the bound."""
        return self.records * noise.step_size(errors.noise("noise_multiplier", noise_multiplier), **self._scale)

    @property
    def _scale(self) -> dict[str, float]:
        return {"sampling_rate": self.rate, "clip_norm": self.bound, "temperature": self.temperature}

    @cached_property
    def shape(self) -> Array:
        """η_t/η_1 of every step."""
        times = np.arange(1, self.steps + 1, dtype=np.float64)
        return times ** (-1 / 3) if self.schedule == "decreasing" else np.ones(self.steps)

    @cached_property
    def levels(self) -> tuple[tuple[float, int], ...]:
        """(z_t/z_1 at its start, how many steps) of each stretch."""
        if self.schedule == "fixed":
            return ((1.0, self.steps),)
        # Cubes, because steps change fastest at the beginning.
        ends = np.unique(np.ceil(self.steps * (np.arange(_LEVELS + 1) / _LEVELS) ** 3).astype(int))
        return tuple((float(self.shape[a] ** -0.5), int(b - a)) for a, b in pairwise(ends))

    def accountant(self, step: float, engine: Engine = "pld") -> WorstCaseAccountant:
        """What all iterates together cost everybody when the first step is `step`."""
        return self._accountant(self.noise_multiplier(step), engine)

    def largest_step(self, epsilon: float, delta: float, engine: Engine = "pld") -> float:
        """The largest (first) step η with ε(η; δ) ≤ ε (exact calibration, F8), to about 1e-4 and never above it.

        Guarantee: the chain with this step was accounted for and keeps (ε, δ). Bad input, and an ε out of reach: see
        `calibrate_noise`.
        """
        errors.number("epsilon", epsilon, above=0)

        def make(z: float) -> WorstCaseAccountant:
            return self._accountant(z, engine)

        # The limit of much noise is close by where z is above 1, and the search finds its way from anywhere.
        start = self.noise_multiplier(self.limit_step(epsilon, delta))
        return self.step_size(calibrate_noise(make, epsilon, delta, start=min(max(start, 0.1), 1e6)))

    def limit_step(self, epsilon: float, delta: float) -> float:
        """The largest step in the limit of much noise, where the run is μ-GDP: c μ² N / (L² Σ_t η_t/η_1) (F3, F5).

        A limit, not a bound: with finite noise such a step costs a little more than ε, with little noise far more.
        """
        mu = float(gaussian_shift(epsilon, delta))
        shift = 1.0 if self.adjacency == "add-remove" else 2.0
        return 2 * self.temperature * (mu / (shift * self.bound)) ** 2 * self.records / float(self.shape.sum())

    def _accountant(self, z: float, engine: Engine) -> WorstCaseAccountant:
        result = WorstCaseAccountant(engine=engine, adjacency=self.adjacency)
        for level, count in self.levels:
            result.step(noise_multiplier=z * level, sampling_rate=self.rate, steps=count)
        return result
