"""The sound counterpart of `as_printed`: what can be said about the same mechanism without the errata.

A record moves a sum of gradients by its own norm, so its shift is r = |g|/s (C14), and sampled records are
independent people who had no part in choosing C or s (C15). Two readings of "people like these":

    mean      strong BDP (C1): E_x exp(cost(x)) bounded by betting, at most the clip norm's cost (H9, C11);
              δ pays one failure for each order tried (C12)
    coverage  a share of the people has (ε, δ) each: an order statistic of what single people pay (H5)

and two ways to δ for them: "tail" bounds the probability of the loss, as the papers do; "exact" is the
ordinary (ε, δ) of one step, computed without orders (B9).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from bayesdp import estimate
from bayesdp.compose.ex_post import tail
from bayesdp.divergence import hockey_stick, replace_one
from bayesdp.divergence.table import CostTable
from bayesdp.errors import Array, unmet

ORDERS: Array = np.unique(np.round(np.geomspace(3, 256, 72)))
"""Fixed before any gradient is drawn: the best orders of shifts between 0.3 and 2 at rate 1/1000, closely."""

ORDER_FAILURE = 1e-9
"""γ of the mean's bound at each order: all of them together take less than 1e-7 from δ."""

COVERAGE_FAILURE = 1e-6
"""How often an order statistic may fall short of its share of the people; not part of δ (H5)."""


def mean_epsilon(shifts: Array, largest: float, *, sampling_rate: float, delta: float) -> float:
    """Strong BDP of one step: min over orders of (ĉ + log 1/(δ − Kγ))/λ, ĉ by betting (H9, C11, C12).

    `shifts` are independent people's, none above `largest` (clip norm over noise), whose cost caps ĉ.
    """
    table = CostTable(ORDERS, sampling_rate=sampling_rate)
    worst = table(np.array([largest**2]))[0]
    costs = np.minimum(table(np.minimum(shifts, largest) ** 2), worst)
    bound = estimate.upper_mean(costs, method="betting", failure=ORDER_FAILURE, log_high=worst)
    return float(tail(bound, ORDERS, delta - len(ORDERS) * ORDER_FAILURE).min())


def norm_covering(coverage: float, norms: Array) -> float:
    """A norm that at least a share `coverage` of all people does not exceed, with confidence 1 − 1e-6 (H5)."""
    rank = estimate.quantile.rank_for(coverage, len(norms), COVERAGE_FAILURE)
    if rank is None:
        raise unmet("norms", len(norms), f"enough norms for coverage={coverage:g}", f"{len(norms)}")
    return float(np.sort(norms)[rank - 1])


def tail_epsilon(shifts: Array, *, sampling_rate: float, delta: float, steps: int = 1) -> Array:
    """Loss tail of steps with a known shift, one for each: min over orders of (T·cost + log 1/δ)/λ (B10)."""
    costs = steps * CostTable(ORDERS, sampling_rate=sampling_rate)(np.asarray(shifts) ** 2)
    return np.asarray(tail(costs, ORDERS, delta).min(axis=-1))


def exact_epsilon(shifts: Array, *, sampling_rate: float, delta: float) -> Array:
    """The least ε with δ(ε) ≤ δ of one step with a known shift, the worse of both directions (B9)."""
    alone = np.asarray(shifts)[:, None]
    remove = hockey_stick.averaged_epsilon(delta, alone, sampling_rate=sampling_rate, direction="remove")
    add = hockey_stick.averaged_epsilon(delta, alone, sampling_rate=sampling_rate, direction="add")
    return np.maximum(remove, add)


def exact_replace_one_epsilon(shift: float, *, sampling_rate: float, delta: float) -> float:
    """The least ε with δ(ε) ≤ δ of one step when a record is *replaced*, both norms at most `shift` (H10)."""

    def excess(epsilon: float) -> float:
        return float(replace_one.hockey_stick(epsilon, sampling_rate, shift, shift)) - delta

    if excess(0.0) <= 0:
        return 0.0
    # Without sampling the pair is one Gaussian of twice the shift, which no sampled pair exceeds.
    high = float(hockey_stick.gaussian_epsilon(delta, 2 * shift))
    return float(brentq(excess, 0.0, high, xtol=1e-14, rtol=1e-10)) * (1 + 1e-9)
