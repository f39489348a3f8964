"""A lower bound on ε from how often a test is wrong in many independent plays (L9; Clopper-Pearson limits C9).

    with confidence 1 − γ:   false alarms ≤ a,   missed ≤ b        two one-sided limits, each with γ/2
    refuted:                 every promise that no test with errors (a, b) could keep          (`trade_off`)

The threshold is chosen on one half of the plays and tried on the other, which it has not seen: so the limits hold
although it was chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, ndtri

from bayesdp import errors
from bayesdp.accountant.rdp import History
from bayesdp.audit.trade_off import least_epsilon, most_noise
from bayesdp.errors import Array
from bayesdp.estimate.binary import clopper_pearson_upper
from bayesdp.guarantee import Adjacency

_CANDIDATES = 400
"""Thresholds that are looked at in the first half."""


class Errors(NamedTuple):
    """Limits of a test's error rates, and the plays that they were counted in, of each kind."""

    false_alarms: float
    missed: float
    plays: int

    def epsilon(self, delta: float) -> float:
        """The ε that they refute at δ, whatever the mechanism is: the larger of the test's and of its opposite's."""
        return least_epsilon(lambda curve: curve.refuted_by(self.false_alarms, self.missed), delta)

    def noise(self, history: History, adjacency: Adjacency) -> float | None:
        """The factor above which they refute a plan with that many times its noise; None where they refute nothing."""
        return most_noise(lambda curve: curve.refuted_by(self.false_alarms, self.missed), history, adjacency)


class Tested(NamedTuple):
    """What the second half says at the two thresholds of the first: the best for ε, and the best for a curve."""

    ratio: Errors
    curve: Errors


def two_errors(absent: Array, present: Array, *, delta: float, failure: float) -> Tested:
    """Of scores, larger where the record is more likely in, from plays without it and with it, in any number ≥ 4.

    Guarantee: each of the two pairs of limits holds with probability 1 − `failure`, for plays that are independent
    within each half. Bad input: fewer than four scores of a kind, or one that is not a number.
    """
    errors.probability("failure", failure)
    out, there = (errors.array(name, one, ndim=1) for name, one in (("absent", absent), ("present", present)))
    if min(len(out), len(there)) < 4:
        raise errors.refuse("present", min(len(out), len(there)), "with at least 4 plays of each kind")
    first = out[::2], there[::2]
    rest = out[1::2], there[1::2]
    thresholds = np.quantile(np.concatenate(first), np.linspace(0, 1, _CANDIDATES + 2)[1:-1])
    alarms = np.array([np.sum(first[0] >= one) for one in thresholds])
    missed = np.array([np.sum(first[1] < one) for one in thresholds])
    # Cautious limits: else the luckiest of many thresholds is taken, which is seldom the best.
    a, b = (_limits(*one, failure / _CANDIDATES) for one in ((alarms, len(first[0])), (missed, len(first[1]))))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(np.log((1 - b - delta) / a), np.log((1 - a - delta) / b))
        apart = -ndtri(a) - ndtri(b)
    best = [thresholds[int(np.argmax(np.nan_to_num(one, nan=-np.inf)))] for one in (ratio, apart)]
    return Tested(*(_tested(*rest, float(one), failure) for one in best))


def _tested(out: Array, there: Array, threshold: float, failure: float) -> Errors:
    alarms, missed = int(np.sum(out >= threshold)), int(np.sum(there < threshold))
    return Errors(
        clopper_pearson_upper(alarms, len(out), failure / 2),
        clopper_pearson_upper(missed, len(there), failure / 2),
        min(len(out), len(there)),
    )


def _limits(counts: Array, trials: int, failure: float) -> Array:
    """Clopper-Pearson limits of many counts at once, to choose among."""
    full = counts >= trials
    found = betainccinv(counts + 1, np.where(full, 1, trials - counts), failure)
    return np.where(full, 1.0, found)
