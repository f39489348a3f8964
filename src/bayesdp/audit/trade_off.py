"""What a promise allows a test to reach, whichever form the promise has, and which of a family a test refutes (L9).

    power of a test ≤ min over k of γ_k · (false alarms) + δ_k,      γ = e^ε, ε any real number

(ε, δ)-DP is two such lines, for a test and for its opposite; the trade-off function of a plan is many of them, from the
law of its privacy loss (`attacker`, H17). A minimum of lines is concave and, with fewer lines, only allows more: what
is refuted here is refuted by the whole curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bayesdp import errors
from bayesdp.accountant.rdp import History
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.attacker import LossLaw
from bayesdp.errors import Array
from bayesdp.guarantee import Adjacency

_FAR: Array = np.geomspace(12, 40, 40)
_EPSILONS: Array = np.concatenate([-_FAR[:0:-1], np.linspace(-12, 12, 961), _FAR[1:]])
"""The ε of the lines; none beyond is needed for tests of fewer than e^40 trials."""


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Lines that no test passes: `slopes` γ and `offsets` δ."""

    slopes: Array
    offsets: Array

    @classmethod
    def of_promise(cls, epsilon: float, delta: float) -> TradeOff:
        """(ε, δ)-DP in both directions: power ≤ e^ε α + δ, and 1 − α ≤ e^ε (1 − power) + δ."""
        ratio = math.exp(-epsilon)
        return cls(np.array([1 / ratio if ratio else math.inf, ratio]), np.array([delta, 1 - ratio * (1 - delta)]))

    @classmethod
    def of_laws(cls, laws: Sequence[LossLaw], slack: float) -> TradeOff:
        """By the law of the loss in each direction: δ(ε) = E[(1 − e^{ε−L})₊], the larger of both at every ε."""
        offsets = np.max([_deltas(law) for law in laws], axis=0) + slack
        return cls(np.exp(_EPSILONS), np.minimum(offsets, 1.0))

    @classmethod
    def of_plan(cls, history: History, adjacency: Adjacency) -> TradeOff | None:
        """Of these steps, Poisson-sampled and with Gaussian noise; None where their law cannot be told."""
        laws, slack = accountant_of(history, adjacency).loss_laws(usual=1e-3)
        return cls.of_laws(laws, slack) if laws else None

    def power(self, false_alarms: float) -> float:
        """The most that a test with this rate of false alarms detects."""
        return float(min(1.0, np.min(self.slopes * false_alarms + self.offsets)))

    def false_alarms(self, power: float) -> float:
        """The fewest false alarms of a test of this power: the inverse."""
        return float(max(0.0, np.max((power - self.offsets) / self.slopes)))

    def refuted_by(self, false_alarms: float, missed: float) -> bool:
        """Whether a test with at most these error rates cannot be."""
        return 1 - missed > self.power(false_alarms)


def accountant_of(history: History, adjacency: Adjacency) -> WorstCaseAccountant:
    """An accountant that has counted these steps."""
    accountant = WorstCaseAccountant(adjacency=adjacency)
    for noise, rate, steps in history:
        accountant.step(noise_multiplier=noise, sampling_rate=rate, steps=steps)
    return accountant


def with_noise(history: History, factor: float) -> History:
    """The same steps with `factor` times the noise."""
    return tuple(run._replace(noise_multiplier=run.noise_multiplier * factor) for run in history)


MOST_NOISE = 64.0
"""The largest factor that is looked for: with it hardly anything is left to refute."""

_NEAR = 4e-3
"""How close to the least refuted factor a search stops."""


def most_noise(refuted: Callable[[TradeOff], bool], history: History, adjacency: Adjacency) -> float | None:
    """The least factor above which `refuted` refutes the plan with that many times its noise; None if it never does.

    `refuted` must be monotone: more noise is easier to refute. The answer is on the refuted side: at most `_NEAR` of it
    too large, never too small.
    """

    def impossible(factor: float) -> bool:
        curve = TradeOff.of_plan(with_noise(history, factor), adjacency)
        return curve is not None and refuted(curve)

    high, step = 1.5, 1.5
    while not impossible(high):
        if high > MOST_NOISE:
            return None
        high, step = high * high, high
    low = high / step
    while low > 1 / MOST_NOISE and step == 1.5 and high <= 1.5 and impossible(low):
        low, high = low / step, low
    while high > low * (1 + _NEAR):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if impossible(middle) else (middle, high)
    return high


def least_epsilon(refuted: Callable[[TradeOff], bool], delta: float) -> float:
    """The largest ε at which (ε, δ)-DP is refuted, 0 where none is; found from the refuted side, to 1e-6."""
    errors.probability("delta", delta)
    if not refuted(TradeOff.of_promise(0.0, delta)):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(TradeOff.of_promise(high, delta)):
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(TradeOff.of_promise(middle, delta)) else (low, middle)
    return low


def _deltas(law: LossLaw) -> Array:
    """δ at every ε of the lines: from what lies above each, added up from the top."""
    losses, chances = law.losses[::-1], np.maximum(law.probabilities[::-1], 0.0)
    above = np.concatenate([[0.0], np.cumsum(chances)])
    below = np.concatenate([[0.0], np.cumsum(chances * np.exp(-np.clip(losses, -700.0, 700.0)))])
    count = len(losses) - np.searchsorted(law.losses, _EPSILONS, side="right")
    found = law.infinite + above[count] - np.exp(_EPSILONS) * below[count]
    raised: Array = np.maximum(found, 0.0) + 4 * np.finfo(np.float64).eps * (len(losses) + 1)
    return raised
