"""From how far a record moves an update to what the step costs it, for many records at once.

    shift = distance / noise_std,      cost = (α-1) D_α of the step, shape (records, orders)

add-remove: the sampled Gaussian's remove cost (B4), which bounds both directions; "add" alone is the exact, smaller
one (B6). replace-one: the record and any other of at most the cap change places, the worst pair (H10), which is not
symmetric: what the run itself had is the first of the pair, so "both" takes the larger. Few records are costed exactly,
many by lookup in a table that is never below the truth: which of the two depends on the number of records only, so
that a resumed run gives the same answer as one that was not interrupted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.divergence import replace_one, sgm
from bayesdp.divergence.lattice import CostLattice
from bayesdp.divergence.stable import log_mean_exp
from bayesdp.divergence.table import CostTable, RoundedUp
from bayesdp.errors import Array
from bayesdp.estimate import METHODS, upper_mean

EXACT_RECORDS = 32
"""Up to this many signals are costed exactly; from here on a lookup is faster."""

FLOAT32_SLACK = 1e-5
"""Norms that were computed in float32 are raised by this before they are costed."""

HALF_SLACK = 1e-2
"""The same for 16 bits: bfloat16 keeps eight of them."""

FAR = 1e3
"""Shifts above this are costed as if the record were never left out: an upper bound, closer the larger the shift."""

_TOGETHER = 2**22
"""Stored distances that are looked at together: 32 MB."""

_QUADRATURE = 1 + 1e-9
"""Replace-one costs come from a quadrature with about ten digits: rounded up."""

DIRECTIONS = ("both", "remove", "add")


class StepCost:
    """Costs of a Gaussian step at fixed `orders`, for one adjacency and direction.

    `cap` is the largest distance there is (the clip norm): a larger one is refused. Under "replace-one" it is
    also the distance of the unknown other record, so it is needed there.
    """

    def __init__(self, orders: Array, *, adjacency: str, direction: str, cap: float | None) -> None:
        errors.one_of("direction", direction, DIRECTIONS)
        if adjacency == "replace-one" and cap is None:
            raise errors.refuse(
                "cap",
                None,
                f'to be given for {errors.named("adjacency")}="replace-one": the other record may be anything up to it',
                got="",
            )
        self.orders, self.cap = orders, cap
        self._adjacency, self._direction = adjacency, direction
        self._worst: dict[tuple[float, float], Array] = {}
        self._rounded_up: dict[tuple[float, ...], RoundedUp] = {}

    def distances(self, name: str, value: Any) -> Array:
        """`value` checked, raised if it came in single precision, and not above the cap."""
        result = errors.array(name, value, least=0, ndim=(1, 2))
        slack = _slack(value)
        if self.cap is not None and (result > self.cap * (1 + max(slack, FLOAT32_SLACK))).any():
            raise errors.refuse(
                name,
                float(result.max()),
                f"to be at most {errors.named('cap')}={self.cap:g}",
                "Clip before accounting.",
            )
        with np.errstate(over="ignore"):
            result = result * (1 + slack)
        return result if self.cap is None else np.minimum(result, self.cap)

    def __call__(self, distances: Array, noise_std: float, sampling_rate: float) -> Array:
        """Costs of shape distances.shape + (orders,)."""
        with np.errstate(over="ignore"):
            shift = distances.ravel() / noise_std
            far = shift + self._other(noise_std) > FAR
        near = np.where(far, 0.0, shift)
        if len(shift) <= EXACT_RECORDS:
            costs = self._exact(near, noise_std, sampling_rate)
        elif self._adjacency == "add-remove" and self._direction != "add":
            costs = CostTable(self.orders, sampling_rate=sampling_rate)(near**2)
        else:
            costs = self._rounded(noise_std, sampling_rate)(near)
        if far.any() and sampling_rate > 0:
            costs[far] = self._unsampled(shift[far], noise_std)
        return costs.reshape(*distances.shape, len(self.orders))

    @property
    def can_sum(self) -> bool:
        """Whether costs are convex in the squared shift, which `mean_of_steps` needs."""
        return self._adjacency == "add-remove" and self._direction != "add"

    def mean_of_steps(self, name: str, distances: Array, noise_std: float, sampling_rate: float) -> Array:
        """(steps, records) to the mean cost of a step, (records, orders), by a lattice (`divergence.lattice`).

        Records are taken block by block, so that `distances` may be a memory-mapped array.
        """
        steps, records = distances.shape
        lattice = CostLattice(self.orders, sampling_rate=sampling_rate)
        block, result = max(1, _TOGETHER // steps), np.empty((records, len(self.orders)))
        for start in range(0, records, block):
            shift = self.distances(name, distances[:, start : start + block]) / noise_std
            far = shift > FAR
            costs = lattice(np.square(np.where(far, 0.0, shift)))
            if far.any() and sampling_rate > 0:
                with np.errstate(over="ignore"):
                    squares = np.square(np.where(far, shift, 0.0)).sum(axis=0)
                    costs += squares[:, None] * (self.orders * (self.orders - 1) / 2)
            result[start : start + block] = costs / steps
        return result

    def worst(self, noise_std: float, sampling_rate: float) -> Array | None:
        """Cost at the cap, one per order; None without a cap."""
        if self.cap is None:
            return None
        if (noise_std, sampling_rate) not in self._worst:
            self._worst[noise_std, sampling_rate] = self(np.array([self.cap]), noise_std, sampling_rate)[0]
        return self._worst[noise_std, sampling_rate]

    def averaged(self, distances: Array, noise_std: float, sampling_rate: float, weights: Array) -> Array:
        """Compute log E_B A for batches with known probabilities (H1): (records, batches) to (records, orders)."""
        costs = self(distances, noise_std, sampling_rate)
        with np.errstate(divide="ignore"):
            return log_mean_exp(np.swapaxes(costs, 1, 2), np.log(weights))

    def bounded(self, distances: Array, noise_std: float, sampling_rate: float, method: str, failure: float) -> Array:
        """An upper confidence bound of log E_B A from sampled batches (averaged sensitivity H1, bounds H9)."""
        if self.cap is None and METHODS[method].needs_range:
            raise errors.refuse(
                "cap",
                None,
                f"to be given for sampled batches and {errors.Argument('estimator', method)}: a bound on an average "
                "needs the worst case",
                "Or give batch_weights if the batches are all there are.",
                got="",
            )
        costs, worst = self(distances, noise_std, sampling_rate), self.worst(noise_std, sampling_rate)
        costs = np.moveaxis(costs, 1, 0)
        if worst is not None:
            costs = np.minimum(costs, worst)
        return upper_mean(costs, method=method, failure=failure, log_high=worst)

    def _exact(self, shift: Array, noise_std: float, sampling_rate: float) -> Array:
        if self._adjacency == "replace-one":
            return self._replaced(shift, noise_std, sampling_rate)
        direction = "add" if self._direction == "add" else "remove"
        return sgm.cost(shift, self.orders, sampling_rate=sampling_rate, direction=direction)

    def _replaced(self, shift: Array, noise_std: float, sampling_rate: float) -> Array:
        """The worst pair (H10), the unknown record at the cap: the run had this record, or had the other, or either."""
        other = np.full_like(shift, min(self._other(noise_std), FAR))
        pairs = {"remove": [(shift, other)], "add": [(other, shift)], "both": [(shift, other), (other, shift)]}
        costs = [
            replace_one.cost(old, new, self.orders, sampling_rate=sampling_rate) for old, new in pairs[self._direction]
        ]
        return np.asarray(np.max(costs, axis=0) * _QUADRATURE)

    def _unsampled(self, shift: Array, noise_std: float) -> Array:
        """Cost at rate 1, which no smaller rate exceeds (B2): α(α-1) r²/2, infinite beyond float64."""
        with np.errstate(over="ignore"):
            squared = np.square(shift + self._other(noise_std))
            return np.asarray(squared[:, None] * (self.orders * (self.orders - 1) / 2))

    def _other(self, noise_std: float) -> float:
        """The shift of the unknown other record under replace-one, 0 where there is none."""
        if self._adjacency != "replace-one" or self.cap is None:
            return 0.0
        with np.errstate(over="ignore"):
            return float(np.float64(self.cap) / noise_std)

    def _rounded(self, noise_std: float, sampling_rate: float) -> RoundedUp:
        # The replace-one pair depends on the noise through the other record, the add direction does not.
        key = (sampling_rate, noise_std) if self._adjacency == "replace-one" else (sampling_rate,)
        if key not in self._rounded_up:
            self._rounded_up[key] = RoundedUp(lambda shift: self._exact(shift, noise_std, sampling_rate))
        return self._rounded_up[key]


def _slack(value: Any) -> float:
    """How far numbers of this precision may lie below what they stand for, as a share."""
    given = np.asarray(value).dtype
    if given.kind in "biuO" or given.itemsize >= np.dtype(np.float64).itemsize:
        return 0.0
    return FLOAT32_SLACK if given.itemsize >= np.dtype(np.float32).itemsize else HALF_SLACK
