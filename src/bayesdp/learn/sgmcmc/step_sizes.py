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

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.errors import Array, unmet
from bayesdp.learn.loop import schedule

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


NAMED: dict[str, Decreasing | Cyclical] = {"decreasing": Decreasing(), "cyclical": Cyclical()}

Schedule = Decreasing | Cyclical | schedule.Schedule
"""Or a name of `NAMED`, or what `schedule.factors` takes: a number, phases ((share, factor), …), one per step."""


def shape(sizes: Schedule, steps: int) -> Array:
    """One factor per step. Bad input gets `InputError`."""
    if isinstance(sizes, str):
        errors.one_of("step_schedule", sizes, NAMED)
        return NAMED[sizes].shape(steps)
    if isinstance(sizes, Decreasing | Cyclical):
        return sizes.shape(steps)
    return schedule.factors("step_schedule", sizes, steps)


def kept(sizes: Schedule, steps: int, num_warmup: int | None, thin: int | None) -> npt.NDArray[np.int64]:
    """The steps whose iterates are samples: every `thin`-th after the first `num_warmup`, by default half.

    With cyclical steps every cycle begins with a warm-up. None thins to at most `KEPT`. Bad input: none is left.
    """
    cyclical = NAMED[sizes] if isinstance(sizes, str) and sizes in NAMED else sizes
    place, length = cyclical.places(steps) if isinstance(cyclical, Cyclical) else (np.arange(steps), steps)
    late = np.flatnonzero(place >= (-(-length // 2) if num_warmup is None else num_warmup))
    every = max(1, -(-len(late) // KEPT)) if thin is None else thin
    chosen = late[every - 1 :: every]
    if not len(chosen):
        raise unmet(
            "num_warmup",
            num_warmup,
            f"num_warmup={num_warmup} and thin={every} to leave at least one of {steps} steps",
            "none",
        )
    return chosen


def _rounded(values: Array) -> Array:
    return np.asarray(_RATIO ** np.rint(np.log(values) / np.log(_RATIO)))
