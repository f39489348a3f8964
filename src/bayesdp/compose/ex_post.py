"""Ex-post accounting (H3) by a mixture over orders (H12): the ε of the run that really happened.

For one record and one run, cost_k is the realised sum of (α_k − 1) D at order α_k = 1 + λ_k. With weights w_k > 0,
Σ w_k = 1, fixed before the run,

    M = Σ_k w_k exp( λ_k L − cost_k )

is a non-negative martingale of mean 1 under the run's own law: no repeated training, no estimation, costs may depend on
the past. Two statements follow, and are two forms of one promise:

    "weak"    hockey-stick form (H14):   E (1 − e^{ε−L})₊ <= δ,   the kind of ordinary (ε, δ)-DP. Any *test function*
              f(L) >= 0 with E f <= 1 gives the least ε with (1 − e^{ε−L})₊ <= δ f(L) for all L, which is
              ε = max_L  L + log(1 − δ f(L)).   At any one stopping time of the run.
    "strong"  tail form (H12):           Pr[L >= ε at some time] <= δ, by Ville's inequality: M = 1/δ at L = ε.

What the plan promises everybody is one more test function, (1 − e^{ε₀−L})₊/δ₀ with its ε₀ at δ₀ = v δ: the weak form
mixes it with M, f = (1−v) M + v f₀, so that no record is ever told more than ε₀, in one statement.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayesdp.convert import STRENGTHS, Strength
from bayesdp.errors import Array, array, one_of, probability, refuse

DP_SHARE = 0.75
"""v: how much of δ the plan's own DP gets as a test function; its ε₀ at vδ is then within 2 % of that at δ."""

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
        raise refuse("weights", share.size, f"with one entry per order, {lam.size}", got=f"{share.size}")
    return _tail(cost, lam, np.log(share), math.log(1 / probability("delta", delta)))


def union_epsilon(costs: Any, orders: Any, delta: float, weights: Any = None) -> Array:
    """min_k (cost_k + log(1/(w_k δ)))/λ_k: the weighted union over orders (ex-post, H3; uniform weights by default).

    Guarantee and bad input as for the strong `epsilon`, which is never larger.
    """
    cost, lam = _checked(costs, orders)
    log_share, target = _log_weights(weights, lam.size), math.log(1 / probability("delta", delta))
    result: Array = _tail(cost, lam, log_share, target).min(axis=-1)
    return result


def epsilon(
    costs: Any,
    orders: Any,
    delta: float,
    weights: Any = None,
    *,
    strength: Strength = "weak",
    dp: float | None = None,
) -> Array:
    """ε of each record from its costs (…, orders); result (…). See the module for what the two strengths mean.

    Guarantee: for each record named before the run, an **ex-post** statement that depends on the run and is sensitive.
    Orders and weights must be fixed before the run, from public quantities (`compose.orders`); uniform by default. The
    strong ε is never below the weak one nor above `union_epsilon`; for one order the two are the conversions of B10.

    `dp`, weak form only: the ε of *all planned steps* at `DP_SHARE` · δ, in the worse direction. That of the steps done
    is a test function only if how many was not decided by looking. No answer exceeds it.

    Infinite costs are allowed; a record whose costs are all infinite gets `dp`, or infinity.

    Bad input: negative or NaN costs, orders ≤ 1 or not one per column, δ outside (0, 1), weights that are not
    positive or do not sum to 1, a negative `dp` or one for the strong form get `InputError`.
    """
    cost, lam = _checked(costs, orders)
    log_share, target = _log_weights(weights, lam.size), math.log(1 / probability("delta", delta))
    one_of("strength", strength, STRENGTHS)
    if strength == "strong":
        if dp is not None:
            raise refuse("dp", dp, "to be left out for the strong form", "A DP ε bounds no tail of the loss.")
        return _root(cost, lam, log_share, target)
    if dp is not None:
        dp = float(array("dp", dp, least=0, infinite=True, ndim=0))
        target -= math.log1p(-DP_SHARE)
    # x − δ f x is concave in x = e^L: its slope is 0 where Σ w α exp(λL − cost) = 1/δ, and negative from ε₀ on.
    place = _root(cost, lam, log_share + np.log1p(lam), target)
    if dp is not None:
        place = np.minimum(place, dp)
    with np.errstate(invalid="ignore", over="ignore"):
        spent = np.exp(_log_sum(place[..., None], cost, lam, log_share) - target)
        result = np.where(np.isfinite(place), place + np.log1p(-spent), place)
    return np.asarray(np.maximum(result, 0.0))


def _root(cost: Array, lam: Array, log_share: Array, target: float) -> Array:
    """L with Σ_k exp(log_share_k + λ_k L − cost_k) = e^target: infinite where all costs are.

    Newton's method from the union bound, where the sum is at least e^target: its logarithm is convex and
    increasing in L, so iterates fall monotonically and never pass the root.
    """
    start = _tail(cost, lam, log_share, target).min(axis=-1)
    root = start.reshape(-1)
    active = np.flatnonzero(np.isfinite(root))
    rows = cost.reshape(-1, lam.size)
    # Records leave as they converge: most need four or five rounds, a few need more.
    while active.size:
        step = _newton_step(root[active], rows[active], lam, log_share, target)
        moving = step > _CLOSE * np.abs(root[active])
        active = active[moving]
        root[active] -= step[moving]
    result: Array = root.reshape(start.shape)
    return result


def _log_sum(place: Array, cost: Array, lam: Array, log_share: Array) -> Array:
    result: Array = logsumexp(log_share + (lam * place - cost), axis=-1)
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
        raise refuse("costs", cost.shape, f"with {lam.size} orders on the last axis", got=f"shape {cost.shape}")
    return cost, lam


def _log_weights(weights: Any, size: int) -> Array:
    if weights is None:
        return np.full(size, -math.log(size))
    share = array("weights", weights, above=0, ndim=1)
    if share.size != size:
        raise refuse("weights", share.size, f"with one entry per order, {size}", got=f"{share.size}")
    if abs(share.sum() - 1) > 1e-9:
        raise refuse("weights", weights, "that sum to 1", got=f"weights.sum()={share.sum():.12g}")
    return np.asarray(np.log(share / share.sum()))
