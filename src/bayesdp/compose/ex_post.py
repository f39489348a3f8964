"""Ex-post accounting (H3) by a mixture over orders (H12): the ε of the run that really happened.

For one record and one run, S_k = cost_k/λ_k is the realised sum of divergences at order 1 + λ_k. With weights
w_k > 0, Σ w_k = 1, fixed before the run,

    M_t = Σ_k w_k exp( λ_k (L_{1:t} − S_{k,t}) )

is a non-negative martingale of mean 1 under the run's own law, so by Ville's inequality with probability
>= 1 − β it never reaches 1/β: the loss stays below the ε where the same sum, as a function of ε, equals 1/β.
No repeated training, no estimation, any stopping time, costs may depend on the past.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayesdp.errors import Array, InputError, array, probability

_CLOSE = 1e-13
"""Newton stops when a step is below this fraction of ε: the value is still on the safe side of the root."""


def tail(costs: Any, orders: Any, delta: float, weights: Any = 1.0) -> Array:
    """(cost_k + log(1/(w_k δ)))/λ_k for each order: the tail conversion (B10, C8), w = 1 unless given.

    `costs` is (…, orders); the result has the same shape. Guarantee: for **one** order fixed beforehand,
    Pr[L >= ε] <= δ, hence (ε, δ)-DP too; the smallest over several orders is such a statement only for costs
    that are not random (worst case) or with weights that sum to at most 1 (`union_epsilon`).

    Bad input: as for `epsilon`, but weights need not sum to 1.
    """
    cost, lam = _checked(costs, orders)
    share = array("weights", weights, above=0, most=1, ndim=(0, 1))
    if share.size not in (1, lam.size):
        raise InputError(f"Expected weights with one entry per order, {lam.size}, got {share.size}.")
    return _tail(cost, lam, np.log(share), math.log(1 / probability("delta", delta)))


def union_epsilon(costs: Any, orders: Any, delta: float, weights: Any = None) -> Array:
    """min_k (cost_k + log(1/(w_k δ)))/λ_k: the weighted union over orders (H3; uniform weights by default).

    Guarantee and bad input as for `epsilon`, which is never larger.
    """
    cost, lam = _checked(costs, orders)
    log_share, target = _log_weights(weights, lam.size), math.log(1 / probability("delta", delta))
    result: Array = _tail(cost, lam, log_share, target).min(axis=-1)
    return result


def epsilon(costs: Any, orders: Any, delta: float, weights: Any = None) -> Array:
    """The root ε of Σ_k w_k exp( λ_k ε − cost_k ) = 1/δ (H12), for costs (…, orders); result (…).

    Guarantee: for each record, with probability >= 1 − δ over the run, the privacy loss is below ε at every
    time up to now: an **ex-post**, per-record statement that depends on the run and is sensitive. Orders
    and weights must be fixed before the run, from public quantities (`compose.orders`); uniform weights by
    default. Never above `union_epsilon`; equal to the tail value when there is one order; at most
    log(1/w_k)/λ_k above the tail value at any order k.

    Newton's method from the union bound, where the sum is at least 1/δ: its logarithm is convex and
    increasing in ε, so iterates fall monotonically and never pass the root. Infinite costs are allowed; a
    record whose costs are all infinite gets infinity.

    Bad input: negative or NaN costs, orders ≤ 1 or not one per column, δ outside (0, 1), weights that are not
    positive or do not sum to 1 get `InputError`.
    """
    cost, lam = _checked(costs, orders)
    log_share, target = _log_weights(weights, lam.size), math.log(1 / probability("delta", delta))
    start = _tail(cost, lam, log_share, target).min(axis=-1)
    root = start.reshape(-1)
    active = np.flatnonzero(np.isfinite(root))
    rows = cost.reshape(-1, lam.size)
    # Records leave as they converge: most need four or five rounds, a few need more.
    while active.size:
        step = _newton_step(root[active], rows[active], lam, log_share, target)
        moving = step > _CLOSE * root[active]
        active = active[moving]
        root[active] -= step[moving]
    result: Array = root.reshape(start.shape)
    return result


def _newton_step(root: Array, cost: Array, lam: Array, log_share: Array, target: float) -> Array:
    with np.errstate(over="ignore"):
        terms = log_share + lam * (root[:, None] - cost / lam)
    top = terms.max(axis=1)
    terms -= top[:, None]
    np.exp(terms, out=terms)
    size = terms.sum(axis=1)
    excess = top + np.log(size) - target
    result: Array = excess * size / (terms @ lam)
    return result


def _tail(cost: Array, lam: Array, log_share: Array, target: float) -> Array:
    return np.asarray((cost + (target - log_share)) / lam)


def _checked(costs: Any, orders: Any) -> tuple[Array, Array]:
    cost = array("costs", costs, least=0, infinite=True)
    lam = np.atleast_1d(array("orders", orders, above=1, ndim=(0, 1))) - 1
    if cost.ndim == 0 or cost.shape[-1] != lam.size:
        raise InputError(f"Expected costs with {lam.size} orders on the last axis, got shape {cost.shape}.")
    return cost, lam


def _log_weights(weights: Any, size: int) -> Array:
    if weights is None:
        return np.full(size, -math.log(size))
    share = array("weights", weights, above=0, ndim=1)
    if share.size != size:
        raise InputError(f"Expected weights with one entry per order, {size}, got {share.size}.")
    if abs(share.sum() - 1) > 1e-9:
        raise InputError(f"Expected weights that sum to 1, got weights.sum()={share.sum():.12g}.")
    return np.asarray(np.log(share / share.sum()))
