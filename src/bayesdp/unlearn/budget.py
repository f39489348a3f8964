"""The budget β of a ledger from words that people use: an (ε, δ), or how often an attacker may be right.

(ε, δ)        β = ε − log((α−1)/α) + (log δ + log α)/(α−1)     D_α ≤ β gives (ε, δ), one direction (B10)
success s     the largest β at which (1 + TV)/2 ≤ s (`variation`)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bayesdp import convert, errors
from bayesdp.compose.orders import default_orders

ORDER = 2.0
"""Where none is given: of orders at which a study certifies anything it is the most useful one (H21)."""

_ROUNDING = 1 - 1e-12


def from_epsilon(epsilon: float, delta: float, order: float) -> float:
    """β for (ε, δ) at one order. Bad input: an ε that leaves no budget at this order and δ."""
    wanted = errors.number("epsilon", epsilon, above=0)
    alpha = errors.number("order", order, above=1)
    price = float(convert.epsilon_per_order(np.zeros(1), [alpha], delta)[0])
    if wanted <= price:
        hint = "Take a larger ε, δ or order, or leave the order out."
        raise errors.refuse("epsilon", epsilon, f"to be above {price:.3g} at order {alpha:g} and δ={delta:g}", hint)
    return (wanted - price) * _ROUNDING


def best_order(epsilon: float, delta: float, divergence: Callable[[float], float]) -> float:
    """The order at which the budget of (ε, δ) is the largest multiple of a public `divergence`, from 2 on.

    Bad input: an ε that leaves no budget at any order.
    """
    wanted, orders = errors.number("epsilon", epsilon, above=0), default_orders()
    orders = orders[orders >= ORDER]
    left = wanted - convert.epsilon_per_order(np.zeros_like(orders), orders, delta)
    if left.max() <= 0:
        raise errors.refuse("epsilon", epsilon, f"to be above {float((wanted - left).min()):.3g} at δ={delta:g}")
    open_ = orders[left > 0]
    shares = [budget / divergence(float(order)) for budget, order in zip(left[left > 0], open_, strict=True)]
    return float(open_[int(np.argmax(shares))])


def from_success(success: float, order: float = ORDER) -> float:
    """β at which nobody tells the model from one trained without the records more often than `success`.

    Bad input: a success that is not between 1/2, which is guessing, and 1.
    """
    right = errors.number("success", success, above=0.5, below=1)
    alpha, t = errors.number("order", order, above=1), 2 * right - 1
    # The inverses of the inequalities of `variation.from_divergence`: any one of them will do.
    bounds = [2 * t**2, -math.log1p(-(t**2))]
    if alpha >= 2:
        bounds.append(math.log1p(4 * t**2))
    return max(bounds) * _ROUNDING
