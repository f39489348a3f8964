"""What a Langevin chain costs if its last iterate is all that is shown (last iterates, L7; proofs in `docs/theory.md`).

    θ_t = φ_t(θ_{t-1}) + N(0, s_t² I),    |φ_t(a) − φ_t(b)| ≤ c_t |a − b|,   a record moves θ_t by d_t = s_t/z_t at most

φ_t is a step of size h on the prior and a batch. Where the potential of every batch is curved between m and M and
h ≤ 2/(m + M), c = 1 − hm < 1: later steps forget what earlier ones told, and the cost stays bounded however long the
chain is. With w_t = c_{t+1} ⋯ c_T:

    (a) all records in every step     μ-GDP, μ² = (Σ_t w_t d_t)² / Σ_t w_t² s_t² (or a little more: see `shift`)
    (b) Poisson batches               steps k+1 … T with a share 1 − r of their noise variance, and once the shift
                                      D / sqrt(r Σ_{t>k} w_t² s_t²), D ≥ Σ_{t≤k} w_t d_t over the steps that the record
                                      was in, but for a small part of δ; for any k and r
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc

from bayesdp import errors
from bayesdp.accountant.rdp import Run, phases
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee

ONLY = "Only the last iterate of each chain is released, and nothing else depends on earlier ones (L7)."
CURVED = (
    "Curvatures as declared: −log prior between {strong:g} and {stiff:g}, the clipped loss of a record between 0 and "
    "{record:g}; tried on made-up records, else taken on trust."
)
FEATURES = "No record's features are longer than {bound:g}; `fit` refuses longer ones."
BATCHES = "The data have at most {records:,} records. Batches of unlikely size are paid for by δ."

_UNLIKELY = 1e-3
"""The share of δ that pays for unlikely batches: half for those so large that a step might not contract, half for a
record that is in more of them than D allows for."""

_ROUNDING = 1 + 1e-9
"""Sums over steps are right to some 1e-12: what comes out of them goes up by this."""


@dataclass(frozen=True, kw_only=True)
class Curvature:
    """How curved a posterior is, declared beforehand: from public numbers, never from the data.

    Args:
        records: the most records that the data may have.
        strong: least curvature (eigenvalue of the second derivative) of −log prior on the real line.
        stiff: the largest; None: the same, as for a Gaussian prior of one scale, 1/scale².
        record: largest curvature of the **clipped** loss −log p(x|θ) of one record, which must be convex. Clipping
            keeps that in a generalised linear model, whose gradient is x times a rising function of xᵀθ; in general
            it does not.
        feature_bound: the longest row of features that `record` is meant for; longer ones are refused by `fit`.

    Examples:
        >>> bd.Curvature.logistic(records=5000, feature_bound=1.0).record
        0.25
    """

    records: int
    strong: float
    record: float
    stiff: float | None = None
    feature_bound: float | None = None

    def __post_init__(self) -> None:
        errors.whole("records", self.records, least=1)
        hint = "Without a strictly log-concave prior nothing is forgotten: release all iterates."
        strong = errors.number("strong", self.strong, above=0, hint=hint)
        errors.number("record", self.record, above=0)
        if self.stiff is not None:
            errors.number("stiff", self.stiff, least=strong)
        if self.feature_bound is not None:
            errors.number("feature_bound", self.feature_bound, above=0)

    @classmethod
    def logistic(cls, *, records: int, feature_bound: float, prior_scale: float = 1.0) -> Self:
        """Logistic regression, weights ~ N(0, prior_scale²): 1/prior_scale², and |x|²/4 at most for a record.

        `feature_bound` is the length of a row of x, a column of ones included; a model with an intercept of its own
        has features (x, 1), so give Curvature(record=(bound² + 1)/4, feature_bound=bound, …) itself.
        """
        bound = errors.number("feature_bound", feature_bound, above=0)
        scale = errors.number("prior_scale", prior_scale, above=0)
        return cls(records=records, strong=scale**-2, record=bound**2 / 4, feature_bound=bound)

    @property
    def stiffest(self) -> float:
        """Largest curvature of −log prior."""
        return self.strong if self.stiff is None else self.stiff

    def longest(self, rates: Array, delta: float, chains: int = 1) -> Array:
        """2/(m + M) for each step: the longest that contracts for all batches, but for a chance of 0.0005 δ in all."""
        rates = errors.array("rates", rates, above=0, most=1, ndim=1)
        miss = _UNLIKELY / 2 * errors.probability("delta", delta) / (len(rates) * chains)
        kinds, which = np.unique(rates, return_inverse=True)
        most = np.array([_largest_batch(self.records, float(q), miss) for q in kinds])[which]
        return np.asarray(2 / (self.strong + self.stiffest + self.record * most / rates))

    def in_words(self) -> tuple[str, ...]:
        """What a guarantee that rests on this assumes."""
        curved = CURVED.format(strong=self.strong, stiff=self.stiffest, record=self.record)
        features = () if self.feature_bound is None else (FEATURES.format(bound=self.feature_bound),)
        return ONLY, curved, *features, BATCHES.format(records=self.records)


class LastIterate:
    """The DP account of the last iterates of `chains` chains: (a) or (b), or the account of all iterates if less.

    `sizes`, `noise`, `rates` and `bounds` are h_t, z_t, q_t and L_t of every step; `everything` is the account of all
    iterates. Where a step is too long to contract `epsilon` is infinite, so that a search for steps stays below.
    """

    def __init__(
        self,
        everything: WorstCaseAccountant,
        curvature: Curvature,
        *,
        sizes: Array,
        noise: Array,
        rates: Array,
        bounds: Array,
        chains: int = 1,
    ) -> None:
        self.everything, self.curvature, self.chains = everything, curvature, chains
        self.sizes = errors.array("sizes", sizes, above=0, ndim=1)
        self.noise = errors.array("noise", noise, above=0, ndim=1)
        self.rates = errors.array("rates", rates, above=0, most=1, ndim=1)
        self.moves = self.sizes * errors.array("bounds", bounds, above=0, ndim=1) / self.rates

    def epsilon(self, delta: float) -> float:
        """The ε at δ. Bad input: δ outside (0, 1)."""
        return min(self.everything.epsilon(delta), self._last(delta)[0]) if self._contracts(delta) else math.inf

    def delta(self, epsilon: float) -> float:
        """A δ at ε: that of all iterates, of which the last are a part."""
        return self.everything.delta(epsilon)

    def guarantee(self, delta: float) -> Guarantee:
        """The promise at δ: with the assumptions of this module only where it is the smaller one."""
        whole = self.everything.guarantee(delta)
        epsilon, left = self._last(delta) if self._contracts(delta) else (math.inf, delta)
        if whole.epsilon <= epsilon:
            return whole
        return dataclasses.replace(
            whole,
            epsilon=epsilon,
            strength=whole.strength if left == delta else "weak",  # unlikely batches are a matter of δ, not of the loss
            assumptions=(*whole.assumptions, *self.curvature.in_words()),
            delta_split={"dp": left} if left == delta else {"dp": left, "unlikely batches": delta - left},
        )

    def _contracts(self, delta: float) -> bool:
        return bool((self.sizes <= self.curvature.longest(self.rates, delta, self.chains)).all())

    def _last(self, delta: float) -> tuple[float, float]:
        """The ε of (a) or (b), and what is left of δ for it."""
        sampled = bool((self.rates < 1).any())
        left = delta * (1 - _UNLIKELY) if sampled else delta
        contraction = 1 - self.sizes * self.curvature.strong
        stds = self.moves * self.noise
        if sampled:
            steps = forgotten(contraction, stds, self.moves, self.rates, _UNLIKELY / 2 * delta / self.chains)
        else:
            steps = [Run(1 / shift(contraction, stds, self.moves), 1.0, 1)]
        account = WorstCaseAccountant(engine=self.everything.engine, adjacency=self.everything.adjacency)
        for z, q, count in steps:
            account.step(noise_multiplier=z, sampling_rate=q, steps=count * self.chains)
        return account.epsilon(left), left


def shift(contraction: Array, stds: Array, moves: Array) -> float:
    """(a): the μ of μ-GDP for steps that contract by c_t, with noise s_t, where a record moves each by d_t at most.

    A shift that is not yet paid for may wait, and shrinks meanwhile. Paying a_t of it in step t costs (a_t/s_t)², and
    Σ_{j≤t} w_j a_j ≤ Σ_{j≤t} w_j d_j, with equality at the end. The cheapest plan is the greatest convex minorant of
    the points (Σ_{j≤t} w_j² s_j², Σ_{j≤t} w_j d_j): Σ over its pieces of rise²/run. It is one straight piece, the
    formula above, if noise and moves do not grow apart; and never above paying at once, Σ (d_t/s_t)².
    """
    weights = _weights(contraction)
    run = np.concatenate([[0.0], np.cumsum((weights * stds) ** 2)])
    rise = np.concatenate([[0.0], np.cumsum(weights * moves)])
    corners = [0, len(run) - 1]
    if (rise < rise[-1] * (run / run[-1]) * (1 - 1e-12)).any():
        corners = _convex_minorant(run, rise)
    with np.errstate(divide="ignore"):
        waiting = float(np.sqrt(np.sum(np.diff(rise[corners]) ** 2 / np.diff(run[corners]))))
    return min(waiting, float(np.sqrt(np.sum((moves / stds) ** 2)))) * _ROUNDING


def forgotten(contraction: Array, stds: Array, moves: Array, rates: Array, miss: float) -> list[Run]:
    """(b): steps, with noise multiplier, rate and count, that together cost at least as much as the last iterate.

    But for a chance `miss` that the record was in so many early batches that its shift is above D. Any k and r will do:
    taken are those that are best where a step costs q²(e^{1/z²} − 1) and D is normal, as in long runs with much noise.
    """
    noise = stds / moves
    if len(moves) == 1:
        return phases(noise, rates)
    weights = _weights(contraction)
    with np.errstate(over="ignore"):
        late = _sum_after(rates**2 * np.expm1(noise**-2.0))
    left = weights * moves
    spread = np.sqrt(2 * np.log(1 / miss) * np.cumsum(left**2 * rates * (1 - rates)))
    likely = np.minimum(np.cumsum(left * rates) + spread, np.cumsum(left))[:-1]
    room = _sum_after((weights * stds) ** 2)
    k = int(np.argmin(np.sqrt(late) + likely / np.sqrt(room))) + 1
    early = _largest_sum(left[:k], rates[:k], miss) / math.sqrt(room[k - 1])
    # At least a little of the noise for either.
    share = min(max(early / (math.sqrt(late[k - 1]) + early), 1e-6), 0.9)
    rest = max(early / math.sqrt(share), 1e-9) * _ROUNDING
    return [*phases(noise[k:] * math.sqrt(1 - share), rates[k:]), Run(1 / rest, 1.0, 1)]


def _sum_after(values: Array) -> Array:
    """Σ_{t>k} of `values`, for k = 1 … T − 1."""
    return np.cumsum(values[::-1])[::-1][1:]


def _largest_sum(sizes: Array, rates: Array, miss: float) -> float:
    """A bound on Σ_t b_t sizes_t for coins b_t of chance rates_t, exceeded with probability at most `miss` (Chernoff).

    (Σ log(1 + q_t (e^{s a_t} − 1)) + log(1/miss)) / s for any s > 0, and never above the sum of all.
    """
    if not sizes.any():
        return 0.0
    unit = sizes / sizes.max()

    def bound(log_s: float) -> float:
        s = np.exp(log_s)
        return float((np.log1p(rates * np.expm1(s * unit)).sum() - np.log(miss)) / s)

    best = minimize_scalar(bound, bounds=(-20.0, 6.0), method="bounded")
    return float(min(best.fun, unit.sum()) * sizes.max())


def _weights(contraction: Array) -> Array:
    """w_t = c_{t+1} ⋯ c_T: what is left at the end of a move in step t."""
    after = np.concatenate([np.log(contraction[1:]), [0.0]])
    return np.asarray(np.exp(np.cumsum(after[::-1])[::-1]))


def _convex_minorant(x: Array, y: Array) -> list[int]:
    """Corners of the greatest convex function below the points; x does not fall."""
    corners = [0]
    for i in range(1, len(x)):
        if x[i] == x[corners[-1]] and i < len(x) - 1:
            continue  # right above the last corner
        while len(corners) > 1 and _on_or_above(x, y, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    return corners


def _on_or_above(x: Array, y: Array, a: int, b: int, c: int) -> bool:
    """Whether point b is not below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) >= (y[c] - y[a]) * (x[b] - x[a]))


def _largest_batch(records: int, rate: float, miss: float) -> int:
    """The least b with Pr[Binomial(records, rate) > b] ≤ miss."""
    return bisect_left(range(records), True, key=lambda b: bool(betainc(b + 1, records - b, rate) <= miss))
