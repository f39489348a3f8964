"""What the best attacker can do against a plan, from the law of its privacy loss (H17).

    advantage            TV(P, Q) = δ(0)                            δ(ε) = E_P[(1 − e^{ε−L})₊],   L = log dP/dQ
    right guesses        (1 + δ(0))/2                               by who starts undecided, on average over results
    true positives       1 − f(α) = min over real ε of e^ε α + δ(ε)  at a false-positive rate α

P and Q are the results with and without the record; δ(ε) is known for both directions, and the worse one counts: the
attacker may look for presence (false alarms where the record is absent) or for absence. Every line is an upper bound
for every test if δ(ε) is one, at whichever ε the minimum is taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array

SHOWN = (1e-3, 1e-2, 0.1)
"""The false-positive rates at which true-positive rates are told."""

RATES = (1e-4, *SHOWN[:2], 0.02, 0.05, *(round(0.05 * k, 2) for k in range(2, 21)))
"""The false-positive rates of the trade-off curve."""

_LARGEST = 700.0
"""e to this is still a float64; no γ = e^ε beyond it is tried, which can only loosen the minimum."""


class LossLaw(NamedTuple):
    """The law of L under P: `probabilities` at `losses`, which ascend, and `infinite` where only P can be."""

    losses: Array
    probabilities: Array
    infinite: float


@dataclass(frozen=True, kw_only=True)
class AttackerBounds:
    """What no attacker exceeds, whatever the data and whatever else is known: upper bounds, in both directions.

    - `advantage`: of right over wrong, 2·(right guesses) − 1; the total variation between the two results.
    - `true_positive_rates`: at each of `false_positive_rates`, which rise.

    Bad input: rates outside [0, 1] or that fall, or lists of different lengths, get `InputError`.
    """

    advantage: float
    false_positive_rates: tuple[float, ...]
    true_positive_rates: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "advantage", errors.number("advantage", self.advantage, least=0, most=1))
        for name in ("false_positive_rates", "true_positive_rates"):
            rates = tuple(map(float, errors.array(name, getattr(self, name), least=0, most=1, ndim=1)))
            if any(after < before for before, after in pairwise(rates)):
                raise errors.refuse(name, rates, "to rise")
            object.__setattr__(self, name, rates)
        if len(self.false_positive_rates) != len(self.true_positive_rates):
            expected = f"with {len(self.false_positive_rates)} entries"
            raise errors.refuse("true_positive_rates", len(self.true_positive_rates), expected)

    @property
    def right(self) -> float:
        """(1 + δ(0))/2: how often who starts undecided can be right, on average over all results."""
        return (1 + self.advantage) / 2

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """How many true cases a test can find that raises a false alarm this often: the bound at the next known rate.

        Never more than false positives plus the advantage. Bad input: a rate outside [0, 1].
        """
        rate = errors.number("false_positive_rate", false_positive_rate, least=0, most=1)
        at = int(np.searchsorted(self.false_positive_rates, rate * (1 - 1e-12)))
        known = self.true_positive_rates[at] if at < len(self.true_positive_rates) else 1.0
        return min(known, rate + self.advantage, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {
            "advantage": self.advantage,
            "false_positive_rates": list(self.false_positive_rates),
            "true_positive_rates": list(self.true_positive_rates),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AttackerBounds:
        """The inverse of `to_dict`. Missing or unknown keys and bad values get `InputError`."""
        expected = {one.name for one in dataclasses.fields(cls)}
        if not isinstance(values, Mapping) or set(values) != expected:
            raise errors.refuse("attacker", values, f"to be a mapping with the keys {', '.join(sorted(expected))}")
        return cls(**values)


def bounds(laws: Sequence[LossLaw], advantage: float, slack: float) -> AttackerBounds:
    """The bounds on the rates of `RATES` from the laws of both directions (one if they are the same).

    `advantage` is a bound on δ(0), `slack` what the probabilities may have lost to rounding. No laws: from the
    advantage alone.
    """
    rates = np.array(RATES)
    found = np.minimum(1.0, rates + advantage)
    if laws:
        worse = np.max([true_positives(law, rates, slack) for law in laws], axis=0)
        found = np.minimum(found, worse)
    # 1 − f rises; a bound at a larger rate holds at a smaller one as well.
    found = np.minimum.accumulate(found[::-1])[::-1]
    return AttackerBounds(advantage=advantage, false_positive_rates=RATES, true_positive_rates=tuple(map(float, found)))


def true_positives(law: LossLaw, rates: Any, slack: float = 0.0) -> Array:
    """1 − f(α) at every α of `rates`: min over γ = e^ε of γ α + Σ (p − γ p e^{−L})₊, at most 1.

    The sum bends at the losses alone, so that one of them is the best ε; near it the mass of Q above passes α. Every
    ε gives a bound: an index that rounding moved costs tightness, nothing else.
    """
    rates = np.asarray(rates, dtype=np.float64)
    first = int(np.searchsorted(law.losses, -_LARGEST))
    last = int(np.searchsorted(law.losses, _LARGEST, side="right"))
    beyond = law.infinite + float(np.maximum(law.probabilities[last:], 0.0).sum())
    losses = law.losses[first:last][::-1]
    if not len(losses):
        return np.ones_like(rates)
    upper = np.maximum(law.probabilities[first:last][::-1], 0.0)
    lower = upper * np.exp(-losses)
    # Mass of P and Q at losses strictly above each: what equals ε adds nothing to δ(ε).
    above = beyond + np.cumsum(upper) - upper
    below = np.cumsum(lower) - lower
    slack += 4 * np.finfo(np.float64).eps * (len(losses) + 1)
    best = np.ones_like(rates)
    middle = np.searchsorted(below, rates)
    for shift in (-1, 0, 1):
        at = np.clip(middle + shift, 0, len(losses) - 1)
        gamma = np.exp(losses[at])
        delta = np.maximum(above[at] - gamma * below[at], 0.0) + slack
        best = np.minimum(best, gamma * rates + delta)
    return np.asarray(best)
