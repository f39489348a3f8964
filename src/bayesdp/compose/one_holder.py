"""One-Hölder composition (H2): only the exponential moment of a run's *summed* cost is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.compose.averages import LogMean, log_mean_exp
from bayesdp.errors import Array, array, number, refuse


def one_holder(
    cost_sums: Any,
    order: float,
    inflated_order: float,
    *,
    log_mean: LogMean = log_mean_exp,
    worst: Any = None,
) -> Array:
    """D_α <= (a − 1)/(a κ) · log E[ exp( C_o/(a − 1) ) ],  κ = α − 1, a = (o − 1)/(α − 1) > 1 (H2).

    `cost_sums` is (runs, …): C_o = Σ_t (o − 1) D_o(step t given the past) along each run at the inflated
    order o; the result drops the runs and is a divergence D_α. Expectations run over the first argument's
    chain.

    `log_mean(values, cap)` is called once, with the runs on the first axis: one estimate. The default is
    exact for equally likely runs, else a plug-in estimate; an upper confidence bound makes it a theorem
    that may fail with that bound's probability. `worst` is a worst-case sum of costs at o (a number, or one
    per record), passed on as `cap`; it limits the result (never above the worst case, C11).

    Guarantee: a Rényi bound of the whole run at α, for every o > α. With deterministic costs it is their
    sum at o; as o → α it tends to the largest path sum (Feldman-Zrnic).

    Bad input: negative or NaN costs, order ≤ 1, inflated_order ≤ order get `InputError`.
    """
    cost = array("cost_sums", cost_sums, least=0, infinite=True)
    if cost.ndim == 0:
        raise refuse("cost_sums", (), "with the runs on its first axis", got="a single number")
    alpha = number("order", order, above=1)
    larger = number("inflated_order", inflated_order, above=alpha)
    cap = None if worst is None else array("worst", worst, least=0, infinite=True)
    return _bound(cost, alpha, larger, log_mean, cap)


def best(cost_sums: Any, orders: Any, *, log_mean: LogMean = log_mean_exp, worst: Any = None) -> Array:
    """The least over o > α of `one_holder`, and over the worst-case sum, for every order α of a grid (H2).

    `cost_sums` is (runs, …, orders), costs Σ_t λ D_{λ+1} at each order of the grid; the result (…, orders)
    holds divergences D_α. The largest order has no larger one: it is infinite unless `worst` is given.

    `worst` are worst-case costs of the run, (orders,) or (…, orders): valid whatever happens, such as the sum
    at the clip norm. The largest sum among *sampled* runs is not one.

    Uses `estimates(orders)` = K(K − 1)/2 calls of `log_mean` (each over all records at once). With exact
    expectations the minimum is free; with confidence bounds divide the failure probability by that number.

    Bad input: negative or NaN costs, orders that are ≤ 1, repeated or not one per column, `worst` of another
    shape get `InputError`.
    """
    cost = array("cost_sums", cost_sums, least=0, infinite=True)
    alphas = _grid(orders)
    if cost.ndim < 2 or cost.shape[-1] != alphas.size:
        raise refuse("cost_sums", cost.shape, f"with axes (runs, …, {alphas.size} orders)", got=f"shape {cost.shape}")
    shape = cost.shape[1:]
    cap: Array | None = None
    result = np.full(shape, np.inf)
    if worst is not None:
        cap = array("worst", worst, least=0, infinite=True)
        if cap.shape not in (shape, shape[-1:]):
            raise refuse("worst", cap.shape, f"of shape {shape[-1:]} or {shape}", got=f"{cap.shape}")
        cap = np.broadcast_to(cap, shape)
        result = cap / (alphas - 1)
    for j, alpha in enumerate(alphas):
        for k in np.flatnonzero(alphas > alpha):
            limit = None if cap is None else np.asarray(cap[..., k])
            bound = _bound(cost[..., k], float(alpha), float(alphas[k]), log_mean, limit)
            result[..., j] = np.minimum(result[..., j], bound)
    return result


def estimates(orders: Any) -> int:
    """K(K − 1)/2: averages that `best` estimates on K orders, to share a failure probability among (union bound, C12).

    Bad input: orders ≤ 1 or repeated get `InputError`.
    """
    size = _grid(orders).size
    return size * (size - 1) // 2


def _bound(cost: Array, alpha: float, larger: float, log_mean: LogMean, cap: Array | None) -> Array:
    kappa = alpha - 1
    # a − 1 from the difference of the orders: a itself is rounded to 1 when they are close.
    gap = (larger - alpha) / kappa
    with np.errstate(over="ignore"):
        values = cost / gap
        limit = None if cap is None else np.asarray(cap / gap)
    moment = log_mean(values, limit)
    if limit is not None:
        moment = np.minimum(moment, limit)
    return np.asarray(gap / (larger - 1) * moment)


def _grid(orders: Any) -> Array:
    result = np.atleast_1d(array("orders", orders, above=1, ndim=(0, 1)))
    if np.unique(result).size != result.size:
        raise refuse("orders", orders, "without repeats, one per column of the costs", got="")
    return result
