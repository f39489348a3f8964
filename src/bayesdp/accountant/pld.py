"""The privacy loss distribution of a fixed run, by dp-accounting.

    δ(ε) = E[(1 − e^{ε−L})₊],   L the loss of the run: losses of the steps add, their laws convolve by FFT

add-remove:   both directions (B9) are composed apart and the larger answer counts (B11)
replace-one:  the pair with shifts ±1/z dominates (H10); x → −x swaps its two sides: one direction is both

Discretisation is pessimistic (connect-the-dots). What is left to decide here is the width of the grid, and
how much of δ the rounding of the FFT may have used up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant

from bayesdp.accountant.rdp import History, Run, event
from bayesdp.attacker import LossLaw

RELATIONS = {
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": NeighboringRelation.REPLACE_ONE,
}

USUAL = 1e-4
"""The width of the grid of losses where no finer one is needed."""
_SHARE = 0.01
"""How much rounding may add to the variance of the loss; ε moves by about a tenth of that share."""
_POINTS = 2**18
"""Grid points up to the largest loss of one step, and up to the ε of the run."""
_ROUNDING = 1e-16
"""Mass that the FFT may misplace per composed step: three times what was seen in 10⁶ steps."""
_SUMMING = 1e-12
"""What a δ of many summands may have lost to their rounding, for its size: ten times what was seen."""
_COARSEST = 10.0


def epsilon(history: History, adjacency: str, delta: float, width: float) -> float:
    """The least ε with δ(ε) ≤ δ, after δ has paid for rounding; infinite where nothing of δ is left."""
    left = delta - rounding(history)
    if width > _COARSEST or left < delta / 2:
        return math.inf
    with np.errstate(all="ignore"):
        return max(0.0, float(_compose(history, adjacency, width).get_epsilon(left)))


def delta(history: History, adjacency: str, epsilon: float, width: float) -> float:
    """δ(ε), rounding added, at most 1."""
    if width > _COARSEST:
        return 1.0
    with np.errstate(all="ignore"):
        found = float(_compose(history, adjacency, width).get_delta(epsilon))
    return min(1.0, max(found, 0.0) * (1 + _SUMMING) + rounding(history))


def laws(history: History, adjacency: str, width: float) -> tuple[LossLaw, ...]:
    """The law of the loss in both directions, or once where they are the same; none where the grid is too coarse.

    Each is the loss between two laws on the grid that dominate the run's (connect-the-dots): δ(ε) from it is never
    below the run's own, at every real ε, but for what `rounding` says.
    """
    if width > _COARSEST:
        return ()
    with np.errstate(all="ignore"):
        pld = _compose(history, adjacency, width)._pld
    # dp-accounting only tells δ at one ε, by a pass over all losses; a curve needs the losses themselves.
    sides = (pld._pmf_remove,) if pld._symmetric else (pld._pmf_remove, pld._pmf_add)
    return tuple(_law(side.to_dense_pmf()) for side in sides)


def _law(dense: Any) -> LossLaw:
    losses = (np.arange(dense.size) + dense._lower_loss) * dense._discretization
    return LossLaw(losses, np.asarray(dense._probs), float(dense._infinity_mass))


def grid_width(history: History, adjacency: str, variance: float, reach: float, usual: float = USUAL) -> float:
    """Width of the loss grid: `usual`, or a tenth, hundredth … where many steps of little loss would drown.

    n roundings to a grid of width h add up to n h² to the variance of the loss (about Σ D_2: `variance`), so
    h shrinks until that is a hundredth. It grows again where a loss as large as one step's tail or as
    `reach`, a bound on ε, would need too many points. Pessimistic at any width; infinite where only
    that would be left.
    """
    width = usual
    while variance > 0 and _roundings(history) * width**2 > _SHARE * variance:
        width /= 10
    width = max(width, max(_tail(run, adjacency) for run in history) / _POINTS, reach / _POINTS)
    drowned = _roundings(history) * width**2 > 10 * variance
    return math.inf if drowned else width


def _tail(run: Run, adjacency: str) -> float:
    """The loss of a step (all steps at once without sampling) ten standard deviations out."""
    shift = (1 if adjacency == "add-remove" else 2) / run.noise_multiplier
    if run.sampling_rate == 1:
        shift *= math.sqrt(run.steps)
    lost = shift**2 / 2 + 10 * shift
    return float(np.logaddexp(0.0, lost + math.log(run.sampling_rate)))


def _roundings(history: History) -> int:
    # Unsampled Gaussian steps are one Gaussian of their joint size before they are rounded.
    return sum(run.steps if run.sampling_rate < 1 else 1 for run in history)


def rounding(history: History) -> float:
    """How much probability the FFT may have misplaced."""
    return _ROUNDING * _roundings(history)


@lru_cache(maxsize=16)
def _compose(history: History, adjacency: str, width: float) -> PLDAccountant:
    accountant = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=width)
    for run in history:
        accountant.compose(event(run), run.steps)
    return accountant
