"""The accounting of variational inference in paper S1, as printed: **unsound** (ERR 8), for comparison only (C17).

    c_t(λ) = log Ê_x exp(λ D_{λ+1}),    D between q(·; θ_t) and q(·; θ_t + one step with x),    total = Σ_t c_t + n·c_T

At every step each holdout record's update is taken from the run's own θ_{t−1}, sampled with rate q (both ways, B7),
averaged by Student-t at γ = 1e-15 (ERR 4) and multiplied over steps (ERR 1). What x did to θ_{t−1} before is forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.accountant import BayesianAccountant
from bayesdp.divergence import gaussian, subsampled
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.standing import Caveat

ORDERS = np.arange(2.0, 34.0)
"""λ = 1 … 32, as in S1."""

FAILURE = 1e-15
_TOGETHER = 50
"""Steps whose costs are computed at once, for speed."""

FORGETFUL = Caveat(
    "unsound",
    "UNSOUND: S1's one-step recipe compares updates from a common state and forgets what the record did to it in "
    "earlier steps (ERR 8).",
)


class OneStep:
    """The account after training; `step` adds a released sample at the cost of the last step.

    `mean`, `variance`: (steps, 1 + witnesses, d), the run in row 0.
    """

    def __init__(self, mean: Array, variance: Array, sampling_rate: float, samples: int) -> None:
        self.rate = sampling_rate
        self.accountant = BayesianAccountant(
            composition="product",
            estimator="student-t",
            orders=ORDERS,
            total_steps=len(mean) + samples,
            failure=FAILURE,
        )
        for first in range(0, len(mean), _TOGETHER):
            m, v = (part[first : first + _TOGETHER] for part in (mean, variance))
            for self.last in step_cost(m[:, :1], v[:, :1], m[:, 1:], v[:, 1:], sampling_rate):
                self.step()

    def step(self, times: int = 1) -> None:
        """Charge `times` more samples."""
        self.accountant.step(cost=self.last, sampling_rate=self.rate, steps=times)

    def guarantee(self, delta: float) -> Guarantee:
        """The paper's joint statement, labelled."""
        return self.accountant.guarantee(delta).doubted(FORGETFUL)

    def state(self) -> dict[str, Any]:
        """The accountant's state."""
        return self.accountant.state()


def step_cost(mean: Array, variance: Array, means: Array, variances: Array, sampling_rate: float) -> Array:
    """The larger direction (B7) between N(mean, variance) and its mixture with each of (means, variances).

    Arguments broadcast; the last axis is that of the coordinates, in the answer that of `ORDERS`.
    """
    there = subsampled.remove_cost(
        lambda orders: gaussian.unequal_cost(means, variances, mean, variance, orders),
        ORDERS,
        sampling_rate=sampling_rate,
    )
    back = subsampled.add_cost(
        lambda orders: gaussian.unequal_cost(mean, variance, means, variances, orders),
        ORDERS,
        sampling_rate=sampling_rate,
    )
    return np.maximum(there, back)
