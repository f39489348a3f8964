"""The Hölder rule of paper S0 (C7) for Bayesian costs: one Hölder inequality over the steps that share a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.compose.averages import log_mean_exp
from bayesdp.errors import Array, array, refuse


def holder(costs: Any, *, weights: Any = None) -> Array:
    """Σ_t θ_t log E_x[ exp(cost_t(x)/θ_t) ] at each order, θ_t = 1/T by default (Hölder rule, C7).

    `costs` is (steps, records, orders) of a population given exactly, every record equally likely; the
    result is (orders,) and bounds log E_x exp(λ L_{1:T}). `weights` θ are positive, one per step, and sum
    to 1; they and T are fixed before the run.

    Guarantee: sound **only if** cost_t does not depend on earlier outcomes, or is a supremum over them (ERR
    2: w_1 ∈ {0, 1}, P(1) = 0.1, Q(1) = 0.001 and a second step that costs 3 iff w_1 = 1 has E e^L = 201.67
    where Hölder says 69.43). For trained models the costs do depend on the past: use `ex_post` along one
    run. Exact when all steps cost the same as a function of x. Never above Σ_t max_x cost_t. From *sampled*
    records this is a plug-in estimate; an upper bound takes the place of each log-mean (H9, or S1's Student-t C10).

    Bad input: costs that are negative, NaN or not three-dimensional, weights that are not positive or do not
    sum to 1 get `InputError`; infinite costs give infinity.
    """
    cost = array("costs", costs, least=0, infinite=True, ndim=3)
    steps = cost.shape[0]
    theta = np.full(steps, 1.0 / steps) if weights is None else array("weights", weights, above=0, ndim=1)
    if theta.size != steps:
        raise refuse("weights", theta.size, f"with one entry per step, {steps}", got=f"{theta.size}")
    if abs(theta.sum() - 1) > 1e-9:
        raise refuse("weights", weights, "that sum to 1", got=f"weights.sum()={theta.sum():.12g}")
    with np.errstate(over="ignore"):
        moments = log_mean_exp(np.moveaxis(cost / theta[:, None, None], 1, 0))
    result: Array = np.sum(theta[:, None] * moments, axis=0)
    return result
