"""What each step of a run that happened was made with: typed once for all of them, or said by the file for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayesdp import errors
from bayesdp.data.distances_file import Step

if TYPE_CHECKING:
    from bayesdp.accountant import BayesianAccountant
    from bayesdp.guarantee import Guarantee

Plan = list[tuple[float, float, int]]
"""Noise (absolute), rate, and of how many steps in a row."""


@dataclass(frozen=True)
class StepNoise:
    """What was typed of noise and rate; a file may say it instead, step by step."""

    noise_std: float | None
    noise_multiplier: float | None
    sampling_rate: float
    clip_norm: float | None

    def __post_init__(self) -> None:
        if (self.noise_std, self.noise_multiplier) != (None, None):  # refused before a long file is read
            _noise_std(self.noise_std, self.noise_multiplier, self.clip_norm)

    def of(self, step: Step) -> tuple[float, float]:
        """Noise (absolute) and rate of a step. Bad input: neither the file nor an option says it, or both do."""
        told = {name: value for name, value in step.plan.items() if name != "sampling_rate"}
        std, multiplier = self.noise_std, self.noise_multiplier
        if told and (std, multiplier) != (None, None):
            named = next(iter(told))
            raise errors.unmet("noise_std", std, f"the noise from options or from the column {named!r}", "both")
        if told:
            std, multiplier = told.get("noise_std"), told.get("noise_multiplier")
        if "sampling_rate" in step.plan and self.sampling_rate != 1:
            expected = "to be left out beside a column of that name"
            raise errors.refuse("sampling_rate", self.sampling_rate, expected)
        rate = errors.rate("sampling_rate", step.plan.get("sampling_rate", self.sampling_rate))
        return _noise_std(std, multiplier, self.clip_norm), rate


def _noise_std(noise_std: float | None, noise_multiplier: float | None, clip_norm: float | None) -> float:
    if (noise_std is None) == (noise_multiplier is None):
        got = "neither" if noise_std is None else "both"
        raise errors.unmet(
            "noise_std",
            noise_std,
            f"{errors.named('noise_std')}, or {errors.named('noise_multiplier')} with {errors.named('clip_norm')}",
            got,
        )
    if noise_std is not None:
        return errors.noise("noise_std", noise_std)
    if clip_norm is None:
        raise errors.refuse(
            "clip_norm", None, f"beside {errors.named('noise_multiplier')}={noise_multiplier:g}", got="none"
        )
    return errors.noise("noise_multiplier", noise_multiplier) * clip_norm


def worst_case(population: BayesianAccountant, plan: Plan, delta: float) -> Guarantee:
    """The DP guarantee of these steps; without a clip norm there is none."""
    from bayesdp.accountant import WorstCaseAccountant
    from bayesdp.guarantee import Guarantee

    if population.cap is None:
        return Guarantee(
            notion="dp",
            epsilon=math.inf,
            delta=delta,
            adjacency=population.adjacency,
            sampling="poisson" if any(rate < 1 for _, rate, _ in plan) else "none",
            assumptions=("No clip norm was given: one record may move the update by any distance.",),
        )
    accountant = WorstCaseAccountant(adjacency=population.adjacency)
    for noise, rate, steps in plan:
        accountant.step(noise_multiplier=noise / population.cap, sampling_rate=rate, steps=steps)
    return accountant.guarantee(delta)
