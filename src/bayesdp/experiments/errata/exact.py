"""Truth by other means than the library's formulas: enumeration, grids and closed forms; and ε of plain runs."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from bayesdp.accountant import rdp
from bayesdp.accountant.worst_case import Engine, WorstCaseAccountant
from bayesdp.divergence.hockey_stick import averaged_epsilon
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency


@lru_cache(maxsize=64)
def dp_epsilon(
    engine: Engine,
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    adjacency: Adjacency = "add-remove",
    usual_orders: bool = False,
) -> float:
    """ε of equal steps by our accountant; `usual_orders` stays on dp-accounting's grid, from 1.1 up."""
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency, orders=rdp.GRID if usual_orders else None)
    accountant.step(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps)
    return accountant.epsilon(delta)


def one_step_epsilon(noise_multiplier: float, sampling_rate: float, delta: float) -> float:
    """Exact ε of a single step (B9): no run that contains the step has less."""
    shifts = [1 / noise_multiplier]
    return float(averaged_epsilon(delta, shifts, sampling_rate=sampling_rate, direction="remove"))


def log_mean(values: Any) -> float:
    """The log of the mean of exp(values)."""
    v = np.asarray(values, dtype=np.float64)
    return float(v.max() + np.log(np.mean(np.exp(v - v.max()))))


def hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    """Σ (p − e^ε q)₊ of two laws on the same points."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def loss_tail(p: Array, q: Array, epsilon: float) -> float:
    """Pr_p[log p/q ≥ ε] of two laws on the same points."""
    return float(p[p >= math.exp(epsilon) * q].sum())


def three_laws(epsilon: float, delta: float) -> tuple[Array, Array, Array]:
    """Laws of D⁰, D¹, D² on three points; each neighbouring pair has Pr[L ≥ ε] ≤ δ, both ways round (M12).

    The first point costs the first pair its δ. The second costs it just under ε, so that it is free, and the
    second pair its δ; but under D⁰ it is e^ε times as likely as under D¹.
    """
    under = math.exp(epsilon - 1e-9)
    first = np.array([delta, under * delta, 1 - delta - under * delta])
    return first, np.array([0.0, delta, 1 - delta]), np.array([0.0, 0.0, 1.0])


def normal_mixture(x: Array, means: Any, weights: Any) -> Array:
    """Density of Σ_i w_i N(m_i, 1) at `x`."""
    bells = np.exp(-((x[:, None] - np.asarray(means)) ** 2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(bells @ np.asarray(weights), dtype=np.float64)


def renyi(p: Array, q: Array, order: float, spacing: float = 1.0) -> float:
    """D_α of two laws given by their weights, or densities on a lattice of that spacing."""
    both = p > 0
    terms = np.exp(order * np.log(p[both]) + (1 - order) * np.log(q[both]))
    return math.log(float(terms.sum()) * spacing) / (order - 1)
