"""Gaussian noisy max and its threshold check: how PATE answers (Papernot et al. 2018, "Confident-GNMax").

    check   max_j n_j + N(0, σ²) ≥ threshold      one record sits with one teacher: the largest count moves by at most 1
    label   argmax_j (n_j + N(0, σ²))             one vote moves from one class to another: a shift of √2

Whatever the votes, the costs are those of Gaussian steps with these shifts (B2). For the votes at hand they are smaller
where the teachers agree: `*_cost_at` bounds (α−1) D_α(M(D)‖M(D')) for the data set D that gave the votes, **all** its
neighbours D', and this one direction. Such a cost depends on private data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from bayesdp import errors
from bayesdp.divergence import gaussian
from bayesdp.errors import Array

LABEL_SHIFT = math.sqrt(2)


def label_cost(noise_std: float, orders: Any) -> Array:
    """α(α−1)/σ²: the cost of one label, whatever the votes."""
    return gaussian.cost(LABEL_SHIFT / errors.noise("noise_std", noise_std), orders)


def check_cost(noise_std: float, orders: Any) -> Array:
    """α(α−1)/(2σ²): the cost of one check, whatever the votes."""
    return gaussian.cost(1 / errors.noise("noise_std", noise_std), orders)


def check_cost_at(votes: Any, threshold: float, noise_std: float, orders: Any) -> Array:
    """Cost of the checks for these votes (queries, classes); result (queries, orders). Exact.

    There are two outcomes, and a neighbour's largest count is m − 1, m or m + 1; the cost is convex in its chance to
    pass, so it is largest at an end.
    """
    counts, sigma, grid = _checked(votes, noise_std, orders)
    margin = (counts.max(axis=1) - errors.number("threshold", threshold))[:, None] / sigma
    ends = []
    for shifted in (margin - 1 / sigma, margin + 1 / sigma):
        sides = [
            grid * log_ndtr(sign * margin) + (1 - grid) * log_ndtr(sign * shifted)
            for sign in (1.0, -1.0)  # pass, fail
        ]
        ends.append(np.logaddexp(*sides))
    return np.asarray(np.maximum(np.maximum(*ends), 0.0))


def label_cost_at(votes: Any, noise_std: float, orders: Any) -> Array:
    """Cost of the labels for these votes (queries, classes); result (queries, orders).

    Theorem 6 of Papernot et al. with their choice of orders: q̃ bounds the chance of another label than the winner's,
    μ₂ = σ sqrt(log 1/q̃), μ₁ = μ₂ + 1, and ε₁, ε₂ are the divergences μ/σ² of these orders. For α ≤ μ₁ and small q̃

        cost ≤ log( (1−q̃) A^(α−1) + q̃ B^(α−1) ),  A = (1−q̃)/(1 − (q̃ e^ε₂)^((μ₂−1)/μ₂)),  B = e^ε₁ q̃^(−1/(μ₁−1)).

    Never above `label_cost`, which is taken where the conditions do not hold.
    """
    counts, sigma, grid = _checked(votes, noise_std, orders)
    usual = np.broadcast_to(label_cost(sigma, grid), (len(counts), grid.size))
    log_q = log_other_label(counts, sigma)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        high = sigma * np.sqrt(-log_q)
        first, second = (high + 1) / sigma**2, high / sigma**2
        # q̃ ≤ e^((μ₂−1)ε₂) / (μ₁/(μ₁−1) · μ₂/(μ₂−1))^μ₂, in logs
        small = log_q <= (high - 1) * second - high * (np.log1p(1 / high) + np.log1p(1 / (high - 1)))
        holds = (high > 1) & (grid <= high + 1) & small & (log_q + second < 0)
        kept = np.log1p(-np.exp(log_q))
        log_a = kept - np.log1p(-np.exp((log_q + second) * (1 - 1 / high)))
        log_b = first - log_q / high
        bound = np.logaddexp(kept + (grid - 1) * log_a, log_q + (grid - 1) * log_b)
    return np.where(holds, np.minimum(usual, np.maximum(bound, 0.0)), usual)


def log_other_label(votes: Any, noise_std: float) -> Array:
    """Log of an upper bound of the chance that noise makes another class win: Σ_{i≠j*} Φ(−(n_j* − n_i)/(σ√2)).

    At most 1 − 1/classes, since no class is likelier than the winner.
    """
    counts, sigma, _ = _checked(votes, noise_std, 2.0)
    ordered = np.sort(counts, axis=1)
    gaps = ordered[:, -1:] - ordered[:, :-1]
    return np.asarray(np.minimum(logsumexp(log_ndtr(-gaps / (LABEL_SHIFT * sigma)), axis=1), _most(counts)))


def _most(counts: Array) -> float:
    return math.log1p(-1 / counts.shape[1])


def _checked(votes: Any, noise_std: float, orders: Any) -> tuple[Array, float, Array]:
    counts = errors.array("votes", votes, least=0, ndim=2)
    if counts.shape[1] < 2:
        raise errors.refuse("votes", counts.shape, "for at least two classes", got=f"shape {counts.shape}")
    grid = np.atleast_1d(errors.array("orders", orders, above=1, ndim=(0, 1)))
    return counts, errors.noise("noise_std", noise_std), grid
