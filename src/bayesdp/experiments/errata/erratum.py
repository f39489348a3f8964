"""What an erratum is: a printed value, the truth, ours, and which way the printed one errs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["under", "over", "loose", "wrong"]

VERDICTS: dict[Verdict, str] = {
    "under": "The printed value is below the truth: it under-reports. Ours is not below it.",
    "over": "The printed limit is above the true one: it permits too much. Ours is not above it.",
    "loose": "The printed value holds but is loose. Ours is smaller and still not below the truth.",
    "wrong": "The printed value is not the true one. Ours is.",
}

SEVERITIES = {
    "U": "unsound: can under-report the privacy loss",
    "L": "valid but loose",
    "T": "typo or wording",
    "I": "internal inconsistency",
}

_SAME = 1e-6
"""Relative difference up to which "ours" counts as the truth: far below every gap shown."""


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """One erratum with its counter-example computed.

    `printed` is what the paper's formula (or the paper itself) says, `truth` an exact or independent value, or a
    lower bound of it where the label says so, `ours` what this package says. `more` are further numbers.
    """

    number: str
    severity: str
    paper: str
    where: str
    problem: str
    example: str
    printed_label: str
    printed: float
    truth_label: str
    truth: float
    ours_label: str
    ours: float
    verdict: Verdict
    sound_version: str
    printed_name: str = "not shipped"
    more: tuple[tuple[str, float], ...] = ()

    def holds(self) -> bool:
        """Whether the three numbers say what the verdict says."""
        slack = _SAME * abs(self.truth) if math.isfinite(self.truth) else 0.0
        match self.verdict:
            case "under":
                return self.printed < self.truth - slack and self.ours >= self.truth - slack
            case "over":
                return self.printed > self.truth + slack and self.ours <= self.truth + slack
            case "loose":
                return self.printed > self.ours + slack and self.ours >= self.truth - slack
            case "wrong":
                return abs(self.printed - self.truth) > slack >= abs(self.ours - self.truth)


@dataclass(frozen=True)
class Listed:
    """An erratum of wording: nothing to compute, only a sound reading."""

    number: str
    severity: str
    paper: str
    where: str
    problem: str
    reading: str
