"""How often two models can be told apart: their total variation distance, exact or from a divergence.

Who is shown a draw of one of two laws, either with chance 1/2, is right with probability (1 + TV)/2 at most. TV is a
metric: along a chain of neighbours it adds up.
"""

from __future__ import annotations

import math
from functools import lru_cache

from bayesdp import errors
from bayesdp.accountant.worst_case import WorstCaseAccountant


def from_divergence(divergence: float, order: float) -> float:
    """The largest TV that D_α ≤ `divergence` allows, by inequalities that are not far off.

    TV ≤ √(D/2) (Pinsker) and √(1 − e^{−D}) (Bretagnolle and Huber), D ≥ KL because α > 1; from order 2 on also
    √(e^D − 1)/2 (Cauchy and Schwarz: D ≥ D₂, whose e^{D₂} − 1 is χ²), the least for small D.
    """
    d = float(errors.array("divergence", divergence, least=0, infinite=True, ndim=0))
    alpha = errors.number("order", order, above=1)
    found = min(math.sqrt(d / 2), math.sqrt(-math.expm1(-d)))
    if alpha >= 2 and d < 2:
        found = min(found, math.sqrt(math.expm1(d)) / 2)
    return min(found, 1.0)


@lru_cache(maxsize=64)
def of_plan(steps: tuple[tuple[float, float, int], ...]) -> float:
    """The TV of one record at the clip norm in all steps (noise multiplier, sampling rate, how many): δ at ε = 0.

    Exact up to the grid of the loss distribution, which errs upwards: the shifts of the worst case are fixed
    beforehand, so that it dominates what an adaptive run does to any record (H17).
    """
    accountant = WorstCaseAccountant(engine="pld")
    for noise, rate, count in steps:
        accountant.step(noise_multiplier=noise, sampling_rate=rate, steps=count)
    return accountant.delta(0.0)


def of_gaussian(mu: float) -> float:
    """2Φ(μ/2) − 1: of a μ-GDP mechanism (B12)."""
    return math.erf(errors.number("mu", mu, least=0) / (2 * math.sqrt(2)))
