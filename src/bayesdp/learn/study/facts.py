"""Whom a study asked about and what is public of it: all that its answers need beside the distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bayesdp.accountant.repeated_runs.truncation import Truncation


class Subject(NamedTuple):
    """A record of a study."""

    name: str
    member: bool

    def at_home(self, direction: str) -> bool:
        """Whether the data as they are is the first argument in this direction."""
        return self.member == (direction == "remove")


@dataclass(frozen=True)
class Facts:
    """What is known of a study beside its distances: see `Study`. `size` is N, which was `declared` or is that of
    the data; `dp` the plan's DP ε at `delta`.
    """

    subjects: tuple[Subject, ...]
    runs: int
    every: int
    direction: str
    failure: float
    estimator: str
    delta: float
    size: int
    dp: float
    by_step: bool
    noise: tuple[float, ...]
    rates: tuple[float, ...]
    truncation: Truncation | None = None
    declared: bool = False
