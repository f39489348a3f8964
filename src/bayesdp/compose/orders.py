"""Which Rényi orders to keep, decided before the run from public quantities (the condition of mixtures, H12)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayesdp.compose.ex_post import tail
from bayesdp.divergence import sgm
from bayesdp.errors import Array, array, named, number, probability, refuse, unmet

LARGEST = 4096
"""The largest order kept: log(1/δ)/4095 is 0.003 at δ = 1e-5, below what any other part of an ε resolves."""

_LEAST = 0.02
"""The least λ that `planned` considers."""

_COUNT, _QUIET, _REACH = 15, 0.02, 64
"""So many λ are planned, up to the best one of a record at this fraction of the clip norm, or this times the least."""

_LOUD = 0.25
"""The weight of the first order: there λ is small, and a factor in the weight costs most."""


def default_orders() -> Array:
    """34 orders from 1.25 to 4096, good without a plan: by a fifth at first, by two fifths and more far out.

    Fractional near 1 for little noise (B10), far enough for much noise and low rates (I-2 has an optimum near
    450). Dense where a sampled Gaussian's cost explodes soon after its best order; a mixture over more
    orders pays little for them, because neighbours share the load.
    """
    near = [1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 23, 27, 32, 38, 45, 54, 64]
    return np.array([*near, 90, 128, 180, 256, 360, 512, 720, 1025, 2049, LARGEST], dtype=np.float64)


def planned(noise_multiplier: Any, sampling_rate: Any, steps: Any, delta: float) -> tuple[Array, Array]:
    """(orders, weights) for `ex_post` from λ* = argmin_λ (Σ_t cost_t(λ) + log(1/δ))/λ of the plan on (H12, H14).

    cost_t is the worst case of the plan: a record at the clip norm, subsampled Gaussian with the planned noise and
    rate. 15 λ stand in geometric progression from λ* to the best one of a record at a fiftieth of the clip norm, at
    least 64 λ*: whoever's norms stay at a fraction of the clip norm has one nearby. λ* has a quarter of the weight, the
    others the same each. No order stands below λ*: those who pay the full price have the plan's own DP as their test
    function. A plan may have
    several phases: arguments broadcast, `steps` counts the steps of each.

    Plan for the largest distance there is: with norms above the clip norm, scale `noise_multiplier` down by
    as much, or those records get an ε far above their best.

    Guarantee: only public quantities are used, so H12's condition holds. Any orders and weights fixed in advance are
    sound; these are near the best (`tests/compose/test_orders.py`): a weight w costs at most log(1/w)/λ, and neighbours
    share the load. From λ = 3 on orders are rounded to whole numbers, which cost less to evaluate;
    none exceeds `LARGEST`, and coinciding ones pool their weights.

    Bad input: noise that is not positive, rates outside [0, 1], steps that are not whole and positive, δ
    outside (0, 1), or shapes that do not broadcast get `InputError`.
    """
    z = array("noise_multiplier", noise_multiplier, above=0)
    q = array("sampling_rate", sampling_rate, least=0, most=1)
    t = array("steps", steps, least=1)
    if np.any(t != np.floor(t)):
        raise refuse("steps", steps, "to hold whole numbers of steps")
    try:
        z, q, t = np.broadcast_arrays(z, q, t)
    except ValueError:
        raise unmet(
            "noise_multiplier",
            z.shape,
            f"{named('noise_multiplier')}, {named('sampling_rate')} and {named('steps')} of matching shapes",
            f"{z.shape}, {q.shape}, {t.shape}",
        ) from None
    z = np.maximum(z, 0.01)  # with less noise every order is hopeless, and costs take long to evaluate
    least, best = np.maximum(_best_excesses(z.ravel(), q.ravel(), t.ravel(), probability("delta", delta)), _LEAST)
    lam = np.geomspace(least, max(best, _REACH * least), _COUNT)
    candidates = np.minimum(np.where(lam >= 3, np.round(lam), lam) + 1, LARGEST)
    share = np.array([_LOUD, *[(1 - _LOUD) / (_COUNT - 1)] * (_COUNT - 1)])
    orders, place = np.unique(candidates, return_inverse=True)
    weights = np.bincount(place, weights=share)
    return orders, weights / weights.sum()


def gaussian_best_order(rho: float, delta: float) -> tuple[float, float]:
    """α* = 1 + sqrt(2 log(1/δ)/R) and ε* = R/2 + sqrt(2 R log(1/δ)), R = `rho` = Σ_t r_t² (B2 with B10).

    The best order in closed form for Gaussian steps without sampling, where ε(λ) = (λ + 1)R/2 + log(1/δ)/λ:
    the tail conversion at α* gives ε* exactly, and no order gives less. R = 0 gives (inf, 0).

    Bad input: R negative or not finite, δ outside (0, 1) get `InputError`.
    """
    total = number("rho", rho, least=0)
    target = math.log(1 / probability("delta", delta))
    if total == 0:
        return math.inf, 0.0
    return 1 + math.sqrt(2 * target / total), total / 2 + math.sqrt(2 * total * target)


def _best_excesses(z: Array, q: Array, steps: Array, delta: float) -> tuple[float, float]:
    """λ* of the plan for a record at the clip norm, and at `_QUIET` of it."""
    fractions = np.array([1.0, _QUIET])
    if np.all(q == 1):
        loud, quiet = (gaussian_best_order(float(np.sum(steps / z**2)) * f**2, delta)[0] - 1 for f in fractions)
        return loud, quiet
    whole = np.unique(np.round(np.geomspace(4, LARGEST, 70)))
    grid = np.concatenate([1 + np.geomspace(_LEAST, 2.75, 24), whole])
    cost = np.zeros((fractions.size, grid.size))
    for noise, rate, count in zip(z, q, steps, strict=True):
        cost += count * sgm.cost(fractions / noise, grid, sampling_rate=float(rate))
    loud, quiet = (float(order) - 1 for order in grid[np.argmin(tail(cost, grid, delta), axis=-1)])
    return loud, quiet
