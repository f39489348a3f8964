"""From neighbour to neighbour: Rényi divergences along a chain of data sets (weak triangle, E12).

    D_α(P₀ ‖ P_k) ≤ Σ_i c_i D_{o_i}(P_{i−1} ‖ P_i),      c_i = a_{i+1}/(α−1),   o_i = a_i/w_i,

where a_1 = α and a_{i+1} = a_i − w_i, for any weights w_i > 0 that sum to 1, so that a_{k+1} = α − 1.

*Proof.* ∫P₀^α P_k^{1−α} = ∫ Π_i P_{i−1}^{a_i} P_i^{−a_{i+1}}. Take Hölder's inequality with exponents 1/w_i: since
(a_i − a_{i+1})/w_i = 1, factor i becomes (∫P_{i−1}^{o_i} P_i^{1−o_i})^{w_i} = exp(w_i (o_i − 1) D_{o_i}), and
w_i (o_i − 1) = a_{i+1}. ∎

k = 2 is the weak triangle with p = 1/w_1: coefficient (α − 1/p)/(α − 1), orders pα and q(α − 1/p). Taken at p = 2 and
again at doubled orders for the first part it is E12's recursion, the weights 2^{1−k}, 2^{1−k}, …, 1/4, 1/2: orders
double with every request. Weights of our choice let them grow like k α instead. With s_0 = 0 < s_1 < … < s_k = 1 and
a_{i+1} = α(α−1)/(α−1+s_i)

    c_i = α/(α − 1 + s_i),    o_i = (α − 1 + s_i)/(s_i − s_{i−1}),

and shares s_i − s_{i−1} in proportion to the distances between equal Gaussians make the chain exact. Every choice of
weights is valid, so the least over several is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array

Way = Literal["best", "doubling", "printed"]
WAYS: tuple[Way, ...] = get_args(Way)
Curve = Callable[[float], float]
"""Order → an upper bound of the Rényi divergence between two neighbours of the chain, rising with the order."""

_ROUNDS = 12
_STUCK = 1e6


class Link(NamedTuple):
    """One neighbour to the next: `coefficient` times the divergence at `order`."""

    coefficient: float
    order: float


def coefficient(order: float, p: float = 2.0) -> float:
    """(α − 1/p)/(α − 1): what the way so far counts in the weak triangle; E12's κ at p = 2. Positive for every α > 1.

    Bad input: α ≤ 1 or p ≤ 1.
    """
    alpha = errors.number("order", order, above=1)
    return (alpha - 1 / errors.number("p", p, above=1)) / (alpha - 1)


def printed_coefficient(order: float) -> float:
    """(α − 1)/(α − 2) as printed in paper S3 (ERR 20): too large above 2, infinite at 2, negative (unsound) below."""
    alpha = errors.number("order", order, above=1)
    return math.inf if alpha == 2 else (alpha - 1) / (alpha - 2)


def links(order: float, weights: Sequence[float] | Array) -> list[Link]:
    """Coefficients and orders of the chain for `weights`. Bad input: weights not positive or not summing to 1."""
    alpha = errors.number("order", order, above=1)
    w = errors.array("weights", weights, above=0, ndim=1)
    if abs(w.sum() - 1) > 1e-9:
        raise errors.refuse("weights", weights, "to sum to 1")
    before = alpha - np.concatenate([[0.0], np.cumsum(w)[:-1]])
    after = np.append(before[1:], alpha - 1)
    return [Link(b / (alpha - 1), a / (a - b)) for a, b in zip(before.tolist(), after.tolist(), strict=True)]


def doubling(count: int) -> Array:
    """Weights at doubled orders (E12): 1/2 for the last link, 1/4 for the one before, …, the first two alike."""
    halves = 0.5 ** np.arange(1, errors.whole("count", count, least=1))
    return np.concatenate([halves, halves[-1:] if count > 1 else [1.0]])[::-1].copy()


def printed_links(order: float, count: int) -> list[Link]:
    """NPIU as printed: (α−1)/(α−2) times E12's chain at order 2α, and D_{2α−1} for the newest, even if it is alone."""
    alpha = errors.number(
        "order", order, above=2, hint="The printed coefficient is infinite or negative there (ERR 20)."
    )
    last = Link(1.0, 2 * alpha - 1)
    if count == 1:
        return [last]
    factor = printed_coefficient(alpha)
    return [Link(factor * one.coefficient, one.order) for one in links(2 * alpha, doubling(count - 1))] + [last]


def chain(order: float, curves: Sequence[Curve], way: Way = "best") -> tuple[float, list[Link]]:
    """An upper bound of D_α(P₀ ‖ P_k) from the curves of the k links, and the links that give it.

    "best": the least over the weights that are tried (all valid: see the module); "doubling": E12; "printed": S3's.
    The bound may be infinite. Bad input: no curve, another way, α ≤ 1 (≤ 2 for "printed").
    """
    errors.one_of("way", way, WAYS)
    count = errors.whole("number of links", len(curves), least=1)
    if way == "printed":
        found = printed_links(order, count)
        return _total(found, _values(found, curves)), found
    if way == "doubling" or count == 1:
        found = links(order, doubling(count))
        return _total(found, _values(found, curves)), found
    tried = [_try(order, weights, curves) for weights in (_alike(order, count), _even(order, np.ones(count)))]
    tried.append(_try(order, doubling(count), curves))
    # Shares in proportion to the distances that the last round saw: exact for Gaussians, D_o = o d²/2.
    for _ in range(_ROUNDS):
        _, found, values = min(tried, key=lambda one: one[0])
        distances = np.sqrt(values / [one.order for one in found])
        if not np.isfinite(distances).all() or distances.max() == 0:
            break
        tried.append(_try(order, _even(order, np.maximum(distances, distances.max() / _STUCK)), curves))
        if tried[-1][0] >= min(one[0] for one in tried[:-1]):
            break
    value, found, _ = min(tried, key=lambda one: one[0])
    return value, found


def _even(order: float, distances: Array) -> Array:
    """Weights with shares of s in proportion to the distances."""
    s = np.concatenate([[0.0], np.cumsum(distances / distances.sum())])
    s[-1] = 1.0
    a = order * (order - 1) / (order - 1 + s)
    return np.asarray(a[:-1] - a[1:])


def _alike(order: float, count: int) -> Array:
    """Weights that give every link the same order, the least largest one: 1/(1 − (1 − 1/α)^{1/k})."""
    a = order * (1 - 1 / order) ** (np.arange(count + 1) / count)
    a[-1] = order - 1
    return np.asarray(a[:-1] - a[1:])


def _try(order: float, weights: Array, curves: Sequence[Curve]) -> tuple[float, list[Link], Array]:
    found = links(order, weights / weights.sum())
    values = _values(found, curves)
    return _total(found, values), found, values


def _values(found: Sequence[Link], curves: Sequence[Curve]) -> Array:
    return np.array([curve(one.order) for one, curve in zip(found, curves, strict=True)])


def _total(found: Sequence[Link], values: Array) -> float:
    """Σ c D, rounded up."""
    total = math.fsum(one.coefficient * value for one, value in zip(found, values.tolist(), strict=True))
    return total * (1 + 1e-12)
