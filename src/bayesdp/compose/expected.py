"""Expected composition (Theorem 3.3 of paper S3, E7): average each step over where training may stand before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayesdp.compose.averages import LogMean, log_mean_exp
from bayesdp.errors import Array, array, number, refuse, whole

FACTORS: tuple[float, ...] = tuple(float(c) for c in np.geomspace(0.5, 100.0, 40))
"""The fixed grid of c in p = c·n that `best_p` searches."""


def inflated_order(order: float, i: Any, p: float) -> Array:
    """g_i = 1 + (α − 1)(p/(p − 1))^i, the order needed i steps before the last one (order map of E7).

    `i` may be an array: `inflated_order(order, np.arange(n)[::-1], p)` are the orders of steps 1…n of
    training. S3's statement prints −1/p in the order map where −1/(p − 1) is right (ERR 16): safe, slightly
    larger.

    Bad input: order ≤ 1, p ≤ 1 or negative i get `InputError`; an order beyond float64 is infinite.
    """
    excess = number("order", order, above=1) - 1
    return 1 + excess * _inflation(array("i", i, least=0), number("p", p, above=1))


def exponent(steps: int, p: float | str = "3n") -> float:
    """The p of expected composition as a number: p itself, or 3n for "3n" (S3's Fact 3.4, E8).

    With p = c·n no order is inflated by more than e^{1/c} above 1: for 3n, g_i − 1 <= 1.3957 (α − 1).
    p must be fixed before costs are estimated, because it fixes the orders that they are needed at.

    Bad input: p ≤ 1, another word, or fewer than one step get `InputError`.
    """
    steps = whole("steps", steps, least=1)
    if isinstance(p, str):
        if p != "3n":
            raise refuse("p", p, 'to be a number > 1 or "3n"')
        return 3.0 * steps
    return number("p", p, above=1)


def expected(
    costs: Any, order: float, p: float | str = "3n", *, log_mean: LogMean = log_mean_exp, worst: Any = None
) -> Array:
    """D_α <= Σ_t 1/(p λ_t) · log E[ exp(p · cost_t) ],  λ_t = (α − 1)(p/(p − 1))^{n−t},  t = 1…n (E7).

    `costs` is (steps, runs, …) in training order, cost_t = λ_t · D_{1+λ_t} of step t given the past,
    evaluated at that step's own inflated order (`inflated_order`: the last step at α, the first at the
    largest); the result drops the first two axes and is a divergence D_α (not yet multiplied by α − 1).
    Expectations run over the state before the step in **the first argument's** chain. Before the first step
    there is nothing to average: its largest entry is taken.

    `log_mean(values, cap)` is called once, on p·costs of steps 2…n with the runs moved to the first axis:
    (runs, n − 1, …). The default is exact for an equally likely population and otherwise a plug-in
    estimate. An upper confidence bound makes it a theorem; n − 1 estimates are then used (per record), so
    divide the failure probability by n − 1. `worst` are worst-case costs, (steps,) or (steps, …), at the
    same orders: p·worst is passed on as `cap` and limits each step (C11). Take the minimum with the
    worst-case sum at order α itself, which is valid too and can be smaller (the two-state chain I-5a with n = 50).

    Guarantee: a Rényi bound of the whole run at order α for every p > 1. Deterministic costs give the plain
    sum at the inflated orders.

    Bad input: negative or NaN costs, fewer than two axes, order ≤ 1, p ≤ 1 (or so near 1 that the first order
    is beyond float64), `worst` of another shape get `InputError`.
    """
    cost = array("costs", costs, least=0, infinite=True)
    if cost.ndim < 2:
        raise refuse("costs", cost.shape, "with axes (steps, runs, …)", got=f"shape {cost.shape}")
    steps, shape = cost.shape[0], (cost.shape[0], *cost.shape[2:])
    excess = number("order", order, above=1) - 1
    power = exponent(steps, p)
    lam = excess * _inflation(np.arange(steps, dtype=np.float64)[::-1], power)
    if not np.isfinite(power * lam[0]):
        raise refuse("p", p, "large enough that the inflated orders stay finite", f"Try {3 * steps}.")
    cap = None if worst is None else _per_step("worst", worst, shape)

    divergence = np.empty(shape)
    first = cost[0].max(axis=0)
    divergence[0] = (first if cap is None else np.minimum(first, cap[0])) / lam[0]
    if steps > 1:
        with np.errstate(over="ignore"):
            values = np.moveaxis(power * cost[1:], 1, 0)
            limit = None if cap is None else power * cap[1:]
        moments = log_mean(values, limit)
        if limit is not None:
            moments = np.minimum(moments, limit)
        divergence[1:] = moments / _along_steps(power * lam[1:], moments.ndim)
    result: Array = divergence.sum(axis=0)
    return result


def best_p(
    costs_at: Callable[[Array], Any],
    order: float,
    steps: int,
    *,
    factors: Sequence[float] = FACTORS,
    log_mean: LogMean = log_mean_exp,
) -> tuple[Array, Array]:
    """(min_p, argmin_p) of `expected` over p = c·n, c in a fixed grid; each record takes its own best.

    `costs_at(orders)` returns the costs (steps, runs, …) with step t evaluated at orders[t]. For **exact**
    expectations only: every p is valid, hence so is the minimum. With estimated ones it is a choice after
    looking and would need (number of p) × (n − 1) estimates; there give p in advance.

    Bad input: order ≤ 1, fewer than one step, no factor with c·n > 1 get `InputError`.
    """
    steps = whole("steps", steps, least=1)
    grid = array("factors", factors, above=0, ndim=1) * steps
    grid = grid[grid > 1]
    if grid.size == 0:
        raise refuse("factors", factors, "to hold a factor c with c·n > 1")
    ladder = np.arange(steps)[::-1]
    values = np.stack([expected(costs_at(inflated_order(order, ladder, p)), order, p, log_mean=log_mean) for p in grid])
    return values.min(axis=0), grid[values.argmin(axis=0)]


def _inflation(i: Array, p: float) -> Array:
    with np.errstate(over="ignore"):
        result: Array = np.exp(-i * np.log1p(-1 / p))
    return result


def _along_steps(values: Array, ndim: int) -> Array:
    return values.reshape(-1, *([1] * (ndim - 1)))


def _per_step(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    result = array(name, value, least=0, infinite=True)
    if result.shape == shape[:1]:
        result = _along_steps(result, len(shape))
    elif result.shape != shape:
        raise refuse(name, result.shape, f"of shape {shape[:1]} or {shape}", got=f"{result.shape}")
    return np.broadcast_to(result, shape)
