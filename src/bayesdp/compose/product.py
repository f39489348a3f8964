"""The product rule of paper S1 (C6) for Bayesian costs. Kept because its numbers need it; not for guarantees."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.compose.averages import log_mean_exp
from bayesdp.errors import Array, array


def product(costs: Any) -> Array:
    """Unsound (ERR 1): Σ_t log E_x[ exp(cost_t(x)) ] at each order: the product rule, S1's Theorem 1 (C6).

    `costs` is (steps, records, orders), every record equally likely; the result is (orders,). It multiplies
    expectations although the same x enters every step, so it can be far **below** the true log-moment:
    with cost 0 or 1 equally likely and T = 100 it says 62.0 where the truth is 99.3. It agrees with the truth
    only when all but one step cost the same for everybody. Never an upper bound to rely on; sound
    replacements are `ex_post` and, under its conditions, `holder`.

    Bad input: costs that are negative, NaN or not three-dimensional get `InputError`.
    """
    cost = array("costs", costs, least=0, infinite=True, ndim=3)
    result: Array = np.sum(log_mean_exp(np.moveaxis(cost, 1, 0)), axis=0)
    return result
