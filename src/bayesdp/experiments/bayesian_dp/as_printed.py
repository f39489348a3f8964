"""The papers' recipe, for comparison only: what S0, S1 and their public code (K1) compute (C6-C10).

    c_t = (1/T) log( M + t·S/√(m−1) )   of   Y_i = A_{λ+1}(q, d_i/s)^T,      ε = (Σ_t c_t + log 1/δ)/λ

d_i are distances between *pairs* of gradients put into the formula for adding or removing a record (ERR 9),
all pairs of a few gradients are used as if independent (ERR 11), Student-t stands for a bound (ERR 4), one λ
is fixed by hand, and S1's own composition (T = 1 at each step, the "product") forgets that the same record
takes part in every step (ERR 1). Nothing here is a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bayesdp.divergence import sgm
from bayesdp.errors import Array
from bayesdp.estimate import upper_mean

FAILURE = 2.0**-53
"""What the public code's confidence 1 − 1e-16 leaves in float64: 1.1e-16."""


def bayesian_cost(distances: Array, noise_std: float, *, sampling_rate: float, lam: int, total_steps: int = 1) -> float:
    """One step's c_t(λ): Student-t (C10) on Y_i^T, the log divided by T (Hölder, C7). T = 1 is S1's product (C6)."""
    return float(
        bayesian_costs(distances, noise_std, sampling_rate=sampling_rate, lams=(lam,), exponent=total_steps)[0]
    )


def bayesian_costs(
    distances: Array, noise_std: float, *, sampling_rate: float, lams: Sequence[int], exponent: int
) -> Array:
    """`bayesian_cost` for several λ, `exponent` being its T."""
    costs = sgm.cost(distances / noise_std, np.array(lams) + 1.0, sampling_rate=sampling_rate)
    return upper_mean(exponent * costs, method="student-t", failure=FAILURE) / exponent


def moments_cost(noise_multiplier: float, *, sampling_rate: float, lam: int) -> float:
    """One step's log A_{λ+1}(q, 1/σ): the papers' DP curve, distance 2C against noise 2Cσ."""
    return float(sgm.cost(1 / noise_multiplier, np.array([lam + 1.0]), sampling_rate=sampling_rate)[0])


def epsilon(cost: float, lam: int, delta: float, estimates: int = 0) -> float:
    """(Σ_t c_t + log 1/(δ − γ·estimates))/λ: the public code takes the estimates' failures from δ."""
    return (cost - math.log(delta - estimates * FAILURE)) / lam
