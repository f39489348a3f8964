"""A lower bound on ε from one run with many canaries, each in it by a coin of its own (L9).

    of m canaries r are guessed, v of them rightly; the rest is abstained from

counting   Pr[V ≥ v] ≤ Pr[B ≥ v] + 2 m δ max_{i ≥ 1} Pr[v > B ≥ v − i]/i,   B ~ Binomial(r, e^ε/(1 + e^ε))
           (Steinke, Nasr and Jagielski 2023, Theorem 5.2)
f-DP       if Pr[V ≥ v] > γ, then lines of the trade-off function must hold that a recursion over v … 0 may break
           (Mahloujifar, Melis and Chaudhuri 2025, Algorithm 3, with abstentions)

How many are guessed is fixed before the coins are seen. Both hold for canaries that influence each other in any way:
the mechanism need only keep its promise for each of them, given the others' coins.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from bayesdp import errors
from bayesdp.accountant.rdp import History
from bayesdp.audit.trade_off import most_noise
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency


class Curve(Protocol):
    """A trade-off function, as `TradeOff` is one."""

    def false_alarms(self, power: float) -> float: ...


class Guesses(NamedTuple):
    """How many canaries there were, how many were guessed, and how many of those rightly."""

    canaries: int
    made: int
    right: int

    def p_value(self, epsilon: float, delta: float) -> float:
        """The most that Pr[as many right] can be under (ε, δ)-DP: the counting form."""
        share = 1 / (1 + np.exp(-epsilon))
        beyond = float(binom.sf(self.right - 1, self.made, share))
        below = np.arange(1, self.right + 1)
        within = binom.sf(self.right - below - 1, self.made, share) - beyond
        lost = float(np.max(within / below, initial=0.0))
        return min(1.0, beyond + 2 * self.canaries * delta * lost)

    def epsilon(self, delta: float, failure: float) -> float:
        """The largest ε that is refuted at δ with confidence 1 − `failure`; 0 where none is."""
        low, high = 0.0, 1.0
        if self.made == 0 or self.p_value(low, delta) > failure:
            return 0.0
        while high < 64 and self.p_value(high, delta) <= failure:
            low, high = high, 2 * high
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if self.p_value(middle, delta) <= failure else (low, middle)
        return low

    def refute(self, curve: Curve, failure: float) -> bool:
        """Whether they refute the trade-off function with confidence 1 − `failure`: the f-DP form."""
        m, made, right = self.canaries, self.made, self.right
        if made == 0:
            return False
        inside, outside = failure * right / m, failure * (made - right) / m
        for i in range(right - 1, -1, -1):
            more = max(outside, curve.false_alarms(inside))
            if more == outside:  # then nothing changes any more
                break
            inside = min(1.0, inside + i / (made - i) * (more - outside))
            outside = more
        return inside + outside > made / m

    def noise(self, history: History, adjacency: Adjacency, failure: float) -> float | None:
        """The factor above which they refute a plan with that many times its noise; None where they refute nothing."""
        return most_noise(lambda curve: self.refute(curve, failure), history, adjacency)


def guessed(scores: Array, coins: npt.NDArray[np.bool_], made: int) -> Guesses:
    """Guess "in" for the larger half of `made` canaries at the top, "out" for as many at the bottom.

    `made` must not depend on these scores. Bad input: another number of coins, or more guesses than canaries.
    """
    values, truth = errors.array("scores", scores, ndim=1), np.asarray(coins, bool)
    if truth.shape != values.shape:
        raise errors.refuse("coins", truth.shape, f"with {len(values)} entries", got=f"shape {truth.shape}")
    made = errors.whole("made", made, least=0, most=len(values))
    order = np.argsort(values, kind="stable")
    top, bottom = order[len(order) - (made + 1) // 2 :], order[: made // 2]
    return Guesses(len(values), made, int(truth[top].sum() + (~truth[bottom]).sum()))
