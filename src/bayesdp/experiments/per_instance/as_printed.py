"""Paper S3 as printed, for comparison only: per-instance bounds of single steps and of whole runs (E4-E11).

    Theorem 3.2    D_α of a step of the sum rule at shift r       = `divergence.sgm.cost`/(α−1), which is right (ERR 15)
    Theorem 3.3    expected composition with the stated order map, means of a few runs put in for expectations
    Theorem A.2    the same at p = 2
    Theorem 3.6    any update rule, mean over 20 batches of log of the mean over 20 tuples
    Lemma A.1, Corollary 3.1    (ε, δ) of a step from an L_p norm of e^{CΔ}
    Fact 3.5       how many runs are "needed"

What is wrong with each is said at each and computed in `experiments.errata`. `side_by_side` puts them beside sound
ones. Nothing here is a guarantee.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayesdp import errors
from bayesdp.compose import expected
from bayesdp.errors import Array

P = 1e4
"""The p of Corollary 3.1 in the paper's appendix B."""

SAMPLES = 20
"""Outer batches, and inner tuples for each of them, in the paper's estimates of Theorem 3.6."""


def stated_orders(order: float, steps: int, p: float) -> Array:
    """Theorem 3.3's g(α) = pα/(p−1) − 1/p, iterated: the orders of steps 1…n of training (E7).

    The proof has −1/(p−1) (`compose.expected.inflated_order`); the stated orders are a little larger: safe (ERR 16).
    """
    orders = [errors.number("order", order, above=1)]
    power = errors.number("p", p, above=1)
    for _ in range(errors.whole("steps", steps, least=1) - 1):
        orders.append(power * orders[-1] / (power - 1) - 1 / power)
    return np.array(orders[::-1])


def theorem_3_3(costs: Any, order: float, p: float | str = "3n") -> Array:
    """Σ_i (p−1)^i/p^{i+1} ln mean exp(p·cost)/(α−1), costs (steps, runs, …) at `stated_orders`: a plug-in estimate.

    The mean of a few runs is not an upper bound of an expectation that rare runs dominate (ERR 18, ERR 19).
    """
    return expected.expected(costs, order, p)


def theorem_a_2(costs: Any, order: float) -> Array:
    """Theorem 3.3 at p = 2, costs (steps, runs, …) at orders 1 + (α−1) 2^{n−t}: doubling at every step back."""
    return expected.expected(costs, order, 2.0)


def theorem_3_6(outer: Any, inner: Any, order: int, noise_std: float) -> float:
    """mean_u ln mean_k exp(−Δ_{U,α}/(2s²))/(α−1), a plug-in estimate from sampled batches (E10).

    `outer` is (outer, d): U(X_B) of batches of X; `inner` (outer, inner, α, d): U(X'_B) of α batches of X' a draw.
    Δ_{U,α} = −2 Σ_{i<j} <v_i, v_j> with v_i the difference of the two. The paper takes 20 of each. The log of a small
    sample's mean is biased low and the exponent is heavy-tailed (ERR 19).
    """
    alpha = errors.whole("order", order, least=2)
    scale = errors.noise("noise_std", noise_std)
    there, here = errors.array("inner", inner, ndim=4), errors.array("outer", outer, ndim=2)
    if there.shape[0] != len(here) or there.shape[2:] != (alpha, here.shape[1]):
        raise errors.refuse(
            "inner",
            there.shape,
            f"of shape ({len(here)}, draws, {alpha}, {here.shape[1]}) beside outer",
            got=f"{there.shape}",
        )
    v = (there - here[:, None, None]) / scale
    pairs = (np.square(v.sum(axis=2)).sum(axis=-1) - np.square(v).sum(axis=(2, 3))) / 2
    return float(np.mean(logsumexp(pairs, axis=1) - math.log(v.shape[1])) / (alpha - 1))


def lemma_a_1(
    probability: Any, shifts: Any, *, sampling_rate: float, delta: float, p: float = P, weights: Any = None
) -> Array:
    """Pr[M(X') in S] <= q (E e^{pCΔ})^{1/p} P^{1−1/p} + qδ + (1−q) P, P = Pr[M(X) in S], C = √(2 ln(1.25/δ)) (E5).

    `shifts` are Δ(B)/s. It builds on the classical Gaussian formula, which is proved for C Δ <= 1 only (ERR 14).
    """
    event = errors.array("probability", probability, least=0, most=1)
    rate = errors.rate("sampling_rate", sampling_rate)
    norm = math.exp(_log_norm(shifts, weights, delta, p))
    return np.asarray(rate * norm * event ** (1 - 1 / p) + rate * delta + (1 - rate) * event)


def corollary_3_1(shifts: Any, *, sampling_rate: float, delta: float, p: float = P, weights: Any = None) -> float:
    """ε' = ln(a_p^{p/(p−1)} δ'^{−1/(p−1)} + 1 − q), a_p = q (E e^{p C Δ})^{1/p}, δ'' = q δ + δ' in halves (E4).

    For the remove direction. Outside C Δ <= 1 it claims too little (ERR 14); at p = 10⁴ the norm is nearly the maximum
    (ERR 14b).
    """
    rate = errors.number("sampling_rate", sampling_rate, above=0, most=1)
    half = errors.probability("delta", delta) / 2
    log_a = math.log(rate) + _log_norm(shifts, weights, half / rate, p)
    return math.log(math.exp(p / (p - 1) * log_a - math.log(half) / (p - 1)) + 1 - rate)


def fact_3_5(order: float, worst: float, doubled: float, *, error: float, failure: float, sign: int = 1) -> float:
    """ln[ −ln(J)/c² · e^{6(α−1)ε − 3(2α−1)ε'} ], ε = `worst` at α and ε' = `doubled` at 2α of the whole run (E9).

    `sign` = −1 reads the exponential in the denominator, as the proof has it. Either way the square of the range, a
    factor 2 and the right exponent are missing (ERR 17): `accountant.repeated_runs.sample_size.log_runs`.
    """
    exponent = 6 * (order - 1) * worst - 3 * (2 * order - 1) * doubled
    return math.log(-math.log(failure) / error**2) + sign * exponent


def _log_norm(shifts: Any, weights: Any, delta: float, p: float) -> float:
    """The log of (E e^{pCΔ})^{1/p}."""
    r = errors.array("shifts", shifts, least=0, ndim=1)
    w = np.full(len(r), 1 / len(r)) if weights is None else errors.array("weights", weights, least=0, ndim=1)
    slope = math.sqrt(2 * math.log(1.25 / delta))
    return float(logsumexp(errors.number("p", p, above=1) * slope * r, b=w)) / p
