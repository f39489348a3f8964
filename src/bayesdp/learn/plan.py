"""What every private learner is told beforehand: a frozen description, all of it public, with its noise for an ε."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from bayesdp import errors
from bayesdp.accountant.calibrate import calibrate_noise
from bayesdp.accountant.worst_case import ENGINES, Engine, WorstCaseAccountant
from bayesdp.errors import Array, InputError
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.learn.schedule import factors, phases
from bayesdp.mechanism.clip_rule import clip_rule
from bayesdp.mechanism.update_rule import Sum, UpdateRule


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Steps, clipping, noise, and how they are accounted for.

    Args:
        sampling_rate: chance q that a record enters a step (Poisson).
        steps: how many steps; fixed beforehand.
        clip_norm: C; or a tree of norms (per layer), or a rule of `mechanism.clip_rule` (automatic clipping); None
            for none, as in S1: then give `noise_std`, and the DP entry is infinite.
        noise_multiplier: noise / sensitivity, set by `calibrate` or given.
        noise_std: absolute, with `clip_norm=None` only.
        noise_schedule, clip_schedule, rate_schedule: public factors over the steps (`schedule.factors`): a number,
            phases ((share, factor), …), one per step; "typical" spends noise where everybody is clipped (H13).
        update: `Sum()` or `Mean(smallest_batch)` (H1).
        delta, engine, adjacency, coverage, failure: of the guarantees.
        epsilon_budget: stop before the step that would pass this DP ε at δ (a public quantity, H5).
        interval: steps between two looks; the loop between them is one compiled program.
        microbatch: records taken at a time on each device; None chooses.

    Bad input gets `InputError` naming the field.
    """

    kind: ClassVar[str]
    """What a report calls it."""

    sampling_rate: float
    steps: int
    clip_norm: Any = 1.0
    noise_multiplier: float | None = None
    noise_std: float | None = None
    noise_schedule: Any = 1.0
    clip_schedule: Any = 1.0
    rate_schedule: Any = 1.0
    update: UpdateRule = field(default_factory=Sum)
    delta: float = 1e-5
    engine: Engine = "pld"
    adjacency: Adjacency = "add-remove"
    coverage: float = 0.9
    failure: float = 1e-6
    epsilon_budget: float | None = None
    interval: int | None = None
    microbatch: int | None = None

    def __post_init__(self) -> None:
        errors.number("sampling_rate", self.sampling_rate, above=0, most=1)
        errors.whole("steps", self.steps, least=1)
        clip_rule(self.clip_norm)
        if self.noise_multiplier is not None:
            errors.number("noise_multiplier", self.noise_multiplier, least=0)
        if (self.noise_std is not None) and self.clip_norm is not None:
            raise errors.refuse("noise_std", self.noise_std, "to be left out with a clip norm", "Use noise_multiplier.")
        if self.noise_std is not None:
            errors.noise("noise_std", self.noise_std)
        if self.clip_norm is None and self.noise_multiplier not in (None, 0):
            raise errors.refuse(
                "noise_multiplier", self.noise_multiplier, "to be left out without a clip norm", "Use noise_std."
            )
        factors("noise_schedule", self.noise_schedule, self.steps)
        factors("clip_schedule", self.clip_schedule, self.steps)
        if (self.rates > 1).any():
            raise errors.refuse("rate_schedule", self.rate_schedule, "to keep every sampling rate at most 1")
        errors.probability("delta", self.delta)
        errors.one_of("engine", self.engine, ENGINES)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        errors.probability("coverage", self.coverage)
        errors.probability("failure", self.failure)
        if self.epsilon_budget is not None:
            errors.number("epsilon_budget", self.epsilon_budget, above=0)
            if self.clip_norm is None:
                raise errors.refuse("epsilon_budget", self.epsilon_budget, "to be left out without a clip norm")
        if self.interval is not None:
            errors.whole("interval", self.interval, least=1)

    @property
    def bounded(self) -> bool:
        """Whether one record can move an update only so far."""
        return self.clip_norm is not None

    @property
    def parallel(self) -> int | None:
        """How many chains run side by side on the same data, each of them charged; None for a single run."""
        return None

    @property
    def pace(self) -> Any:
        """Public numbers that the learner wants to know at every step: a tree of arrays (steps, …), or None."""
        return None

    @property
    def only_the_end(self) -> bool:
        """Whether nothing may be shown before the last step."""
        return False

    def promised(self, dp: Guarantee) -> Guarantee:
        """The DP guarantee of what is released, given that of all steps."""
        return dp

    @property
    def facts(self) -> dict[str, str | float | bool]:
        """What else a report should say of the plan."""
        return {}

    @property
    def rates(self) -> Array:
        """The sampling rate q_t of every step."""
        return self.sampling_rate * factors("rate_schedule", self.rate_schedule, self.steps)

    @property
    def noise(self) -> Array:
        """The z_t = noise / sensitivity of every step; the absolute s_t without clipping."""
        # Without clipping the multiplier is None or 0, which asks for plain SGD.
        level = self.noise_multiplier if self.bounded or self.noise_std is None else self.noise_std
        if level is None:
            raise InputError(
                "Expected noise_multiplier to be given or set by calibrate(epsilon=…), got None."
                if self.bounded
                else "Expected noise_std to be given with clip_norm=None, got None."
            )
        return level * factors("noise_schedule", self.noise_schedule, self.steps)

    def calibrate(self, epsilon: float) -> Self:
        """The plan with the least noise multiplier whose DP ε at δ is at most `epsilon`, the schedule as a whole.

        Guarantee: the plan that comes back was accounted for and does not overshoot. Bad input: no clip norm, or an ε
        that no noise reaches.
        """
        if not self.bounded:
            raise InputError("Expected a clip norm to calibrate to a DP ε, got clip_norm=None.")
        shape = factors("noise_schedule", self.noise_schedule, self.steps)
        kinds = phases(shape, self.rates)

        def run(scale: float, engine: Engine) -> WorstCaseAccountant:
            accountant = WorstCaseAccountant(engine, self.adjacency)
            for level, q, count in kinds:
                accountant.step(noise_multiplier=scale * level, sampling_rate=q, steps=count)
            return accountant

        start = calibrate_noise(lambda scale: run(scale, "rdp"), epsilon, self.delta) if self.engine == "pld" else 1.0
        scale = calibrate_noise(lambda scale: run(scale, self.engine), epsilon, self.delta, start=start)
        return dataclasses.replace(self, noise_multiplier=scale)

    def one_interval(self) -> Self:
        """The plan for when nobody looks before the end."""
        return self if self.interval is not None else dataclasses.replace(self, interval=self.steps)

    def describe(self) -> dict[str, Any]:
        """The plan as plain values, the optimiser left out (it is a function)."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "optimizer"}
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(one) for one in np.asarray(value).tolist()] if not _tree(value) else repr(value)
    return repr(value)


def _tree(value: Any) -> bool:
    return isinstance(value, tuple | list) and any(isinstance(one, dict) for one in value)
