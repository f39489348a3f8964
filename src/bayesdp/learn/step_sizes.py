"""Step sizes of a sampler, fixed before the run, and which of its iterates are kept as samples.

    fixed         h_t = h
    decreasing    h_t = h t^(-1/3)                                     S4's schedule (F5; Teh et al. 2016)
    cyclical      h_t = h (1 + cos(π (t mod K)/K)) / 2                 K steps a cycle (Zhang et al. 2020)

Averages over iterates with changing steps weigh each with its h_t, the time that it stands for. Sizes are rounded to
a tenth of each other, so that a run has a few dozen noise levels and not one for every step: the accounting is exact
for the rounded sizes, and takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.errors import Array, InputError
from bayesdp.learn.schedule import factors

_RATIO = 1.1
_LEAST = 0.01
"""Cosine steps end at this share of the largest: smaller ones hardly move and would add noise levels."""

KEPT = 1000
"""Samples of a chain unless `thin` says otherwise."""


@dataclass(frozen=True)
class Decreasing:
    """h t^(-power)."""

    power: float = 1 / 3

    def __post_init__(self) -> None:
        errors.number("power", self.power, above=0, most=1)

    def shape(self, steps: int) -> Array:
        """One factor per step."""
        return _rounded(np.arange(1.0, steps + 1) ** -self.power)


@dataclass(frozen=True)
class Cyclical:
    """Cosine steps, begun anew `cycles` times: each cycle finds its way with long steps and samples with short ones."""

    cycles: int = 4

    def __post_init__(self) -> None:
        errors.whole("cycles", self.cycles, least=1)

    def shape(self, steps: int) -> Array:
        """One factor per step."""
        place, length = self.places(steps)
        return _rounded(np.maximum((1 + np.cos(np.pi * place / length)) / 2, _LEAST))

    def places(self, steps: int) -> tuple[npt.NDArray[np.int64], int]:
        """The place of every step in its cycle, and the length of a cycle."""
        if steps < self.cycles:
            raise errors.refuse("cycles", self.cycles, f"to be at most {steps}, the number of steps")
        length = -(-steps // self.cycles)
        return np.arange(steps) % length, length


NAMED = {"decreasing": Decreasing(), "cyclical": Cyclical()}

Schedule = Decreasing | Cyclical | Any
"""Or a name of `NAMED`, or what `schedule.factors` takes: a number, phases ((share, factor), …), one per step."""


def shape(schedule: Schedule, steps: int) -> Array:
    """One factor per step. Bad input gets `InputError`."""
    if isinstance(schedule, str):
        errors.one_of("step_schedule", schedule, NAMED)
        schedule = NAMED[schedule]
    if isinstance(schedule, Decreasing | Cyclical):
        return schedule.shape(steps)
    return factors("step_schedule", schedule, steps)


def kept(schedule: Schedule, steps: int, burn_in: float, thin: int | None) -> npt.NDArray[np.int64]:
    """The steps whose iterates are samples: every `thin`-th after the first share `burn_in` of the run.

    With cyclical steps burn-in is a share of every cycle. None thins to at most `KEPT`. Bad input: none is left.
    """
    cyclical = NAMED[schedule] if isinstance(schedule, str) and schedule in NAMED else schedule
    place, length = cyclical.places(steps) if isinstance(cyclical, Cyclical) else (np.arange(steps), steps)
    late = np.flatnonzero(place >= burn_in * length)
    every = max(1, -(-len(late) // KEPT)) if thin is None else thin
    chosen = late[every - 1 :: every]
    if not len(chosen):
        raise InputError(
            f"Expected burn_in={burn_in:g} and thin={every} to leave at least one sample of {steps} steps, got none."
        )
    return chosen


def _rounded(values: Any) -> Array:
    return np.asarray(_RATIO ** np.rint(np.log(values) / np.log(_RATIO)))
