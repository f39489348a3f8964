"""Poisson sampling in front of *any* pair of outcomes (B7).

P0 is the outcome without the record, P1 with it, M_q = (1−q)P0 + qP1 with the record sampled at rate q. The
pair is given by its own cost: a callable `pair_cost(orders)` -> (α−1)·D_α at whole Rényi orders, of shape
signal.shape + (len(orders),). Gaussians of unequal variance, Laplace and exponential families all fit.

At a fractional order both functions give the chord between the neighbouring whole orders. That is an upper
bound: λ ↦ λ·D_{λ+1}(P‖Q) = log E_P[e^{λL}] is the cumulant generating function of the privacy loss L, which
is convex (Hölder) and 0 at λ = 0, and a convex function lies below its chords.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.divergence.sgm import log_binomials
from bayesdp.divergence.stable import log_mean_exp
from bayesdp.errors import Array

PairCost = Callable[[Array], Array]
"""Whole Rényi orders (k,) -> (order−1)·D_order of the pair, shape signal.shape + (k,); +inf allowed."""


def remove_cost(pair_cost: PairCost, orders: Any, *, sampling_rate: float) -> Array:
    """(α−1)·D_α(M_q‖P0) = log Σ_k C(α,k)(1−q)^{α−k} q^k R_k, R_k = e^{(k−1)D_k(P1‖P0)} (B7).

    R_0 = R_1 = 1. `pair_cost` gives (k−1)·D_k(P1‖P0). Exact at whole orders, tiny values included (the sum
    is taken over R_k − 1 >= 0); a chord, hence an upper bound, at fractional ones. +inf where a needed R_k
    is infinite. Shape: signal.shape + (orders,). Bad input, or a `pair_cost` that is negative or NaN:
    `InputError`.
    """
    grid, rate = errors.array("orders", orders, above=1, ndim=1), errors.rate("sampling_rate", sampling_rate)
    pair = _pair_costs(pair_cost, int(np.ceil(grid.max())))

    def whole(alpha: int) -> Array:
        return log_mean_exp(pair[..., : alpha + 1], _log_binomial_law(alpha, rate))

    return _chords(whole, grid, pair.shape[:-1])


def add_cost(pair_cost: PairCost, orders: Any, *, sampling_rate: float) -> Array:
    """(α−1)·D_α(P0‖M_q) <= min{ log Σ_{k<=λ} C(λ,k)(1−q)^{λ−k} q^k Q_k, −λ log(1−q) }, λ = α−1 (B7).

    Q_k = e^{k·D_{k+1}(P0‖P1)}: `pair_cost` gives (order−1)·D_order(P0‖P1), the other way round than in
    `remove_cost`. The first bound is 1/((1−q) + qu) <= (1−q) + q/u, the second 1/(1−q). An upper bound at
    every order; with unequal variances it may exceed the remove direction (examples: I-6), so take both. Shape and
    bad input as there.
    """
    grid, rate = errors.array("orders", orders, above=1, ndim=1), errors.rate("sampling_rate", sampling_rate)
    pair = _pair_costs(pair_cost, int(np.ceil(grid.max())))[..., 1:]

    def whole(alpha: int) -> Array:
        return log_mean_exp(pair[..., :alpha], _log_binomial_law(alpha - 1, rate))

    convex = _chords(whole, grid, pair.shape[:-1])
    return convex if rate == 1 else np.minimum(convex, -(grid - 1) * np.log1p(-rate))


def _pair_costs(pair_cost: PairCost, top: int) -> Array:
    """The pair's costs at orders 0, 1 (both 0), 2, …, top on the last axis."""
    whole = np.arange(2.0, max(top, 2) + 1)
    costs = errors.array("pair_cost(orders)", pair_cost(whole), least=0, infinite=True)
    if costs.shape[-1:] != whole.shape:
        raise errors.refuse(
            "pair_cost(orders)", costs.shape, f"of shape (..., {len(whole)})", got=f"shape {costs.shape}"
        )
    return np.concatenate([np.zeros((*costs.shape[:-1], 2)), costs], axis=-1)


def _log_binomial_law(count: int, rate: float) -> Array:
    """The log of C(n,k)(1−q)^{n−k}q^k for k = 0..n, −inf where the probability is 0."""
    k = np.arange(count + 1)
    if rate in (0.0, 1.0):
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(k == rate * count, 1.0, 0.0)))
    return np.asarray(log_binomials(count) + k * np.log(rate) + (count - k) * np.log1p(-rate))


def _chords(whole: Callable[[int], Array], grid: Array, shape: tuple[int, ...]) -> Array:
    """`whole` at whole orders, the chord between its neighbours (0 at order 1) at fractional ones."""
    low, high = np.floor(grid).astype(int), np.ceil(grid).astype(int)
    known = {alpha: whole(alpha) for alpha in np.unique([low, high]).tolist() if alpha > 1}
    known[1] = np.zeros(shape)
    result = np.empty((*shape, len(grid)))
    for i, (below, above) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        part = grid[i] - below
        with np.errstate(invalid="ignore"):
            chord = (1 - part) * known[below] + part * known[above]
        result[..., i] = known[below] if part == 0 else chord
    return result
