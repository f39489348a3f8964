"""What was released before the first step: a private preparation of the data, as one Gaussian release (H22).

    prelude         its noise multiplier, at sampling rate 1: a step that costs everybody the same
    prelude_delta   the chance that it gives something away outright, which is added to δ

Given what it released, features are a function of the record alone, so that steps go on as if features were public:
composition is adaptive. A record's own cost is its cost by the steps and that of the prelude at the full distance.
"""

from __future__ import annotations

import dataclasses

from bayesdp.attacker import AttackerBounds
from bayesdp.guarantee import Guarantee

PAID = (
    "Ranges and levels that were not declared were found before the first step by noisy counts of noise multiplier "
    "{noise:.4g}, which is charged to everybody in full{chosen} (H22)."
)
_CHOSEN = ", and {delta:.2g} of δ is the chance that a level appears which only one person has"


def with_prelude(promise: Guarantee, noise_multiplier: float | None, extra: float) -> Guarantee:
    """The promise of steps and prelude: its ε counts the prelude as a step already, δ gets its share here."""
    if noise_multiplier is None:
        return promise
    words = PAID.format(noise=noise_multiplier, chosen=_CHOSEN.format(delta=extra) if extra else "")
    return dataclasses.replace(
        promise,
        delta=min(1.0, promise.delta + extra),
        delta_split={**promise.delta_split, "levels": extra} if extra else promise.delta_split,
        assumptions=(*promise.assumptions, words),
        attacker=None if promise.attacker is None else widened(promise.attacker, extra),
    )


def widened(bounds: AttackerBounds, extra: float) -> AttackerBounds:
    """Whatever an attacker does, a chance of `extra` may go his way."""
    return AttackerBounds(
        advantage=min(1.0, bounds.advantage + extra),
        false_positive_rates=bounds.false_positive_rates,
        true_positive_rates=tuple(min(1.0, rate + extra) for rate in bounds.true_positive_rates),
    )
