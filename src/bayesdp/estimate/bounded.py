"""Upper bounds on E[X] for any law on [0, 1] that depend on the sample mean and variance only (three of H9).

Each takes `x` with independent samples on the last axis and bounds the mean with confidence 1 −
`failure`. The answer may exceed 1: the caller applies the cap (C11). Inputs were checked by `upper_mean`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from bayesdp.errors import Array
from bayesdp.estimate.bisection import last_inside


def hoeffding(x: Array, failure: float) -> Array:
    """Mean + √(ln(1/γ) / (2n)) (Hoeffding, H9)."""
    return np.asarray(x.mean(axis=-1) + math.sqrt(-math.log(failure) / (2 * x.shape[-1])))


def kl(x: Array, failure: float) -> Array:
    """The largest m with n·kl(mean ‖ m) ≤ ln(1/γ), kl between Bernoulli laws (Chernoff, H9).

    Holds for every law on [0, 1], because among those of a given mean the Bernoulli law has the largest
    moment generating function. A sample of zeros gives 1 − γ^(1/n).
    """
    mean = np.asarray(x.mean(axis=-1))
    budget = -math.log(failure) / x.shape[-1]

    def inside(m: Array) -> npt.NDArray[np.bool_]:
        # kl(mean ‖ ·) increases above the mean, where the search runs.
        return np.asarray(rel_entr(mean, m) + rel_entr(1 - mean, 1 - m) <= budget)

    return last_inside(inside, mean, np.ones_like(mean))


def bernstein(x: Array, failure: float) -> Array:
    """Mean + √(2V·ln(2/γ)/n) + 7·ln(2/γ)/(3(n−1)), V the unbiased variance (Maurer and Pontil, H9)."""
    n = x.shape[-1]
    log_term = math.log(2) - math.log(failure)
    deviation = np.sqrt(2 * x.var(axis=-1, ddof=1) * log_term / n)
    return np.asarray(x.mean(axis=-1) + deviation + 7 * log_term / (3 * (n - 1)))
