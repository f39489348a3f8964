"""From a curve of costs to (ε, δ), and from (ε, δ) to words: conversions (B10), attackers (B12), groups (B15).

    "strong", tail         ε = cost/λ + log(1/δ)/λ                         λ = α − 1, cost = λ·D_α
    "weak", hockey stick   ε = cost/λ + log(λ/α) − log(δ α)/λ              always smaller

The strong form bounds Pr[loss ≥ ε] itself (strong BDP, C1); the weak one bounds Pr[S] − e^ε Pr'[S], as ordinary DP
does. Everything is done in logs; an infinite cost
stays infinite and never becomes NaN.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit, logit, ndtr

from bayesdp import errors
from bayesdp.errors import Array

Strength = Literal["strong", "weak"]
STRENGTHS: tuple[Strength, ...] = get_args(Strength)

DRAWN = 2.0**-78
"""Total variation between one draw of noise on a lattice and its law: a bound (H26)."""

DRAWN_SHARE = 1e-4
"""Of δ, for the distance of all draws from their law: at δ = 1e-5 and ε = 10, enough for 1e10 draws."""


def drawn_delta(kept: float, draws: int, epsilon: float) -> float:
    """(1 + e^ε) τ, τ = draws × `DRAWN`, which all draws take of δ at ε; or `kept`, where that is more (H26).

    With P and Q each at most τ away: P(S) + τ − e^ε (Q(S) − τ) = P(S) − e^ε Q(S) + (1 + e^ε) τ.
    """
    return max(kept, min(1.0, (1 + math.exp(min(epsilon, 700.0))) * draws * DRAWN))


def epsilon(costs: Any, orders: Any, delta: float, strength: Strength = "weak") -> Any:
    """ε = min over orders of cost/λ + log(λ/α) − log(δα)/λ, or of (cost + log(1/δ))/λ for "strong" (B10).

    `costs` is (..., orders); the answer has the leading shape (a float for one curve), is never below 0, and
    infinite where every order is. Guarantee: (ε, δ) holds for anything whose cost is at most `costs`, orders
    and δ being fixed beforehand. An order picked from data must be paid for by whoever picked it (union bound C12,
    mixture H12).

    Bad input: orders ≤ 1, costs whose last axis is not the orders, negative or NaN costs, δ outside (0, 1),
    or another strength get `InputError`.
    """
    return np.maximum(epsilon_per_order(costs, orders, delta, strength).min(axis=-1), 0.0)[()]


def delta(costs: Any, orders: Any, epsilon: float, strength: Strength = "weak") -> Any:
    """δ = min over orders of exp(cost − λε) λ^λ/α^α, or of exp(cost − λε) for "strong", at most 1 (B10).

    The inverse of `epsilon`: same shapes, guarantee and bad input; ε must be finite and not negative. A δ
    below the smallest float64 is rounded up to it: never 0, which would say that nothing is ever lost.
    """
    return from_log_delta(log_delta_per_order(costs, orders, epsilon, strength).min(axis=-1))[()]


def from_log_delta(log_delta: Any) -> Any:
    """Compute e^v as a δ: at most 1, and never rounded down to 0."""
    return np.maximum(np.exp(np.minimum(log_delta, 0.0)), math.ulp(0.0))


def best_order(
    costs: Any,
    orders: Any,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    strength: Strength = "weak",
) -> Any:
    """The order α that attains `epsilon(…, delta)` or `delta(…, epsilon)`: give exactly one of the two.

    Ties go to the smallest order. Bad input as there; both or neither of δ and ε get `InputError`.
    """
    if delta is not None and epsilon is None:
        values = epsilon_per_order(costs, orders, delta, strength)
    elif epsilon is not None and delta is None:
        values = log_delta_per_order(costs, orders, epsilon, strength)
    else:
        raise errors.unmet(
            "delta",
            delta,
            "exactly one of delta and epsilon",
            f"{errors.Argument('delta', delta)} and {errors.Argument('epsilon', epsilon)}",
        )
    return np.asarray(orders, dtype=np.float64)[values.argmin(axis=-1)][()]


def epsilon_per_order(costs: Any, orders: Any, delta: float, strength: Strength = "weak") -> Array:
    """The ε of every single order (B10), shape of `costs`; may be negative. `epsilon` is their minimum."""
    costs, orders = _curve(costs, orders, strength)
    log_delta = math.log(errors.probability("delta", delta))
    rate = orders - 1
    gain = np.log1p(-1 / orders) - np.log(orders) / rate if strength == "weak" else 0.0
    with np.errstate(over="ignore"):
        return np.asarray(costs / rate - log_delta / rate + gain)


def log_delta_per_order(costs: Any, orders: Any, epsilon: float, strength: Strength = "weak") -> Array:
    """The log δ of every single order (B10), shape of `costs`; may be positive. `delta` is their minimum."""
    costs, orders = _curve(costs, orders, strength)
    epsilon = errors.number("epsilon", epsilon, least=0)
    rate = orders - 1
    gain = rate * np.log1p(-1 / orders) - np.log(orders) if strength == "weak" else 0.0
    with np.errstate(over="ignore"):
        return np.asarray(costs - np.where(np.isinf(costs), 0.0, rate * epsilon) + gain)


def attacker_success(epsilon: float, delta: float = 0.0, prior: float = 0.5) -> float:
    """(π e^ε + (1−π) δ) / (π e^ε + 1−π): how sure an attacker can become of the truth (B12, S1 eq. 1).

    It bounds the belief "the record is present" that a Bayesian attacker with prior π holds, on average over
    outcomes, when the record is present. Proof: that average is E_P[π p/(π p + (1−π) q)], an f-divergence
    (t²/(πt + 1−π) is convex), so among (ε, δ) pairs it is largest at the one that every such pair is a
    post-processing of; there the loss is infinite with probability δ and else at most ε. It needs the
    guarantee in this one direction only. δ = 0 gives B12's πe^ε/(πe^ε + 1−π). With the flat prior it is
    (e^ε + δ)/(1 + e^ε), which is then also the best rate of right guesses if (ε, δ) holds in **both**
    directions; from one alone guesses can be right with probability 1 − (1−δ)e^{−ε}/2. (With another prior,
    guessing by the prior alone is right with probability max(π, 1−π), whatever the mechanism.) An infinite
    ε gives 1.

    Bad input: ε negative or NaN, δ outside [0, 1], π outside (0, 1) get `InputError`.
    """
    epsilon, delta = _pair(epsilon, delta)
    odds = epsilon + float(logit(errors.probability("prior", prior)))
    return min(1.0, float(expit(odds) + delta * expit(-odds)))


def attacker_success_gdp(mu: float) -> float:
    """Φ(μ/2): the best rate of right guesses against a μ-GDP mechanism with a flat prior (B12).

    Bad input: μ negative or not finite gets `InputError`.
    """
    return float(ndtr(errors.number("mu", mu, least=0) / 2))


def advantage(epsilon: float, delta: float = 0.0) -> float:
    """(e^ε − 1 + 2δ)/(e^ε + 1), at most 1: total variation, membership advantage, memorisation (B12).

    For (ε, δ) in both directions; one direction alone allows 1 − (1−δ)e^{−ε}.
    Bad input: ε negative or NaN, δ outside [0, 1] get `InputError`. ε may be infinite.
    """
    epsilon, delta = _pair(epsilon, delta)
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta * float(expit(-epsilon)))


def group(epsilon: float, delta: float, k: int) -> tuple[float, float]:
    """(kε, δ (e^{kε} − 1)/(e^ε − 1)), δ at most 1: the guarantee of k records together (B15, weak form).

    Tight (I-13): three distributions attain it for k = 2. Not (kε, kδ), which is false (ERR 7).
    Bad input: ε negative or NaN, δ outside [0, 1], k not a whole number ≥ 1 get `InputError`.
    """
    epsilon, delta = _pair(epsilon, delta)
    k = errors.whole("k", k, least=1)
    if delta == 0 or k == 1:
        return k * epsilon, delta
    if epsilon == 0:
        return 0.0, min(1.0, k * delta)
    if math.isinf(epsilon):
        return math.inf, 1.0
    # (e^{kε}−1)/(e^ε−1) = e^{(k−1)ε} (1−e^{−kε})/(1−e^{−ε}), in logs because e^{kε} leaves float64.
    ratio = (k - 1) * epsilon + math.log(math.expm1(-k * epsilon) / math.expm1(-epsilon))
    return k * epsilon, min(1.0, math.exp(min(0.0, math.log(delta) + ratio)))


def _pair(epsilon: float, delta: float) -> tuple[float, float]:
    checked = errors.array("epsilon", epsilon, least=0, infinite=True, ndim=0)
    return float(checked), errors.number("delta", delta, least=0, most=1)


def _curve(costs: Any, orders: Any, strength: str) -> tuple[Array, Array]:
    errors.one_of("strength", strength, STRENGTHS)
    orders = errors.array("orders", orders, above=1, ndim=1)
    costs = errors.array("costs", costs, least=0, infinite=True)
    if costs.ndim == 0 or costs.shape[-1] != orders.size:
        raise errors.refuse(
            "costs", costs.shape, f"with one entry for each of {orders.size} orders last", got=f"shape {costs.shape}"
        )
    return costs, orders
