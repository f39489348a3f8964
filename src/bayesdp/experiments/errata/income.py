"""S1's income example (section III-C), worked: a rich resident, a private mean, and what ε says about whom.

The mean of N incomes, each capped at B, is released with Laplace noise of scale B/(N ε₀). In noise units a resident of
income x shifts it by s = ε₀ x/B, and that is their own ε: the loss is between −s and s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bayesdp import convert
from bayesdp.divergence import laplace
from bayesdp.errors import Array

RESIDENTS, CAP = 1000, 10_000_000.0
ORDINARY: Array = np.linspace(20_000.0, 80_000.0, RESIDENTS - 1)
RICH = CAP


@dataclass(frozen=True)
class Attack:
    """An attacker who must tell whether one resident is in the data, with a flat prior."""

    epsilon: float
    above_if_present: float
    above_if_absent: float

    @property
    def posterior(self) -> float:
        """Belief after an outcome above the threshold."""
        return self.above_if_present / (self.above_if_present + self.above_if_absent)

    @property
    def right_guesses(self) -> float:
        """Best rate of right guesses over all outcomes: (1 + TV)/2, TV = 1 − e^{−s/2} for Laplace."""
        return 1 - math.exp(-self.epsilon / 2) / 2


def attack(income: float, epsilon: float) -> Attack:
    """Outcomes at or above the mean with the resident: their chances by the Laplace law itself."""
    scale = CAP / (RESIDENTS * epsilon)
    moved = income / RESIDENTS / scale
    return Attack(moved, 0.5, 0.5 * math.exp(-moved))


def strong_bdp(epsilon: float, rarity: float, delta: float) -> float:
    """The least ε with Pr[loss ≥ ε] ≤ δ over x' and outcome (C1), exact, when a share `rarity` is rich.

    Pr[loss ≥ ε | s] = 1 − e^{(ε−s)/2}/2 for −s < ε ≤ s and 0 beyond.
    """
    shifts = np.append(ORDINARY, RICH) * epsilon / CAP
    weights = np.append(np.full(ORDINARY.size, (1 - rarity) / ORDINARY.size), rarity)

    def tail(eps: float) -> float:
        chance = np.where(eps <= shifts, 1 - np.exp(np.minimum(eps - shifts, 0) / 2) / 2, 0.0)
        return float(weights @ chance)

    low, high = 0.0, 2 * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= delta else (middle, high)
    return high


def chernoff_bdp(epsilon: float, rarity: float, delta: float) -> float:
    """S1's own accounting of the same step: min over λ of (log E_x e^{λD} + log(1/δ))/λ (C8), at most ε₀."""
    shifts = np.append(ORDINARY, RICH) * epsilon / CAP
    weights = np.append(np.full(ORDINARY.size, (1 - rarity) / ORDINARY.size), rarity)
    orders = 1 + np.geomspace(0.5, 4096, 400)
    costs = laplace.cost(shifts, orders)
    top = costs.max(axis=0)
    moments = np.maximum(np.log(weights @ np.exp(costs - top)) + top, 0.0)
    return min(epsilon, float(convert.epsilon(moments, orders, delta, "strong")))
