"""Plain sums: what steps cost together when every step's parameters were fixed beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.errors import Array, array, refuse, unmet, whole


def total(costs: Any, axis: int = 0) -> Array:
    """Σ_t cost_t at each order (composition for fixed parameters, B11).

    Guarantee: a Rényi bound of the whole run at every order, if each step's cost holds whatever the earlier
    outcomes were: parameters fixed in advance, or costs that are suprema over the past. For costs that
    depend on the past see `one_holder`, `expected`, `ex_post` and `filters`.

    Bad input: negative or NaN costs, or an axis that the array lacks, get `InputError`; infinite costs are
    allowed.
    """
    cost = array("costs", costs, least=0, infinite=True)
    if cost.ndim == 0:
        raise refuse("costs", (), "with at least 1 dimension", got="a single number")
    axis = whole("axis", axis, least=-cost.ndim, most=cost.ndim - 1)
    with np.errstate(over="ignore"):
        result: Array = cost.sum(axis=axis)
    return result


def basic(epsilons: Any, deltas: Any) -> tuple[float, float]:
    """(Σ_t ε_t, Σ_t δ_t) (basic composition, C20; k equal steps give (kε, kδ)).

    Guarantee: ordinary (ε, δ)-DP composes so, adaptively too. For Bayesian DP it holds for people outside the
    data only (x' independent of the transcript); for members with adaptively chosen steps it is **unsound**
    (ERR 5): given earlier outcomes x' no longer follows μ, and each step's δ may grow by e^{ε so far}.

    Bad input: negative, NaN or infinite ε, δ outside [0, 1], or lengths that differ get `InputError`. The sum
    of the δ is returned at most 1.
    """
    epsilon = np.atleast_1d(array("epsilons", epsilons, least=0, ndim=(0, 1)))
    delta = np.atleast_1d(array("deltas", deltas, least=0, most=1, ndim=(0, 1)))
    if epsilon.size != delta.size:
        raise unmet(
            "deltas",
            delta.size,
            "as many deltas as epsilons",
            f"{delta.size} deltas and {epsilon.size} epsilons",
        )
    return float(epsilon.sum()), min(1.0, float(delta.sum()))
