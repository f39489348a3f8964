"""One sample of a secret Gaussian: how it is softened first, and what it tells about one record (C17).

    released = N(m̂, Ŝ),    m̂ = m, pulled into a ball,    Ŝ = [temper·S, scales kept in a range] + widen²·I

Softening is the same public map for every posterior, those of neighbouring runs included. Multiplying both
covariances by temper >= 1 shrinks the quadratic term (B3) and leaves the rest; adding one covariance to both is a
convolution with one law, to which the data-processing inequality applies: neither raises any divergence.

A sample's cost is λ max{D_{λ+1}(q‖q'), D_{λ+1}(q'‖q)}: with unequal covariances either may be the larger (I-6), and
infinite where V_α = αS' + (1−α)S is not positive definite. n samples of one posterior cost n times as much. The law of
their loss, which knows more than any order (B16), needs the pairs themselves: `both_ways`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.divergence import gaussian
from bayesdp.divergence.gaussian import Standard
from bayesdp.divergence.gaussian_loss import GaussianPairs
from bayesdp.errors import Array


@dataclass(frozen=True)
class Softening:
    """`temper`, `extra_std`: see the module. `radius` of the ball around 0 for the mean, `scales` the (least, largest)
    standard deviation before widening; None for no such bound. With both, everybody has a finite guarantee.

    Bad input: a temper below 1, a negative widening, a radius that is not positive, or scales that are not 0 < least <=
    largest get `InputError`.
    """

    temper: float = 1.0
    extra_std: float = 0.0
    radius: float | None = None
    scales: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        errors.number("temper", self.temper, least=1, hint="Below 1 the samples would tell more than the posterior's.")
        errors.number("extra_std", self.extra_std, least=0)
        if self.radius is not None:
            errors.number("radius", self.radius, above=0)
        if self.scales is not None:
            if not isinstance(self.scales, tuple | list) or len(self.scales) != 2:
                raise errors.refuse("scales", self.scales, "to be a pair (least, largest)")
            low = errors.number("scales[0]", self.scales[0], above=0)
            errors.number("scales[1]", self.scales[1], least=low)

    @property
    def bounded(self) -> bool:
        """Whether any two posteriors are a finite distance apart."""
        return self.radius is not None and self.scales is not None

    def __call__(self, mean: Array, spread: Array) -> tuple[Array, Array]:
        """(m̂, Ŝ) of means (…, d) and variances (…, d) or covariances (…, d, d).

        Inside of public bounds what is no number counts as N(0, largest² + widen²): an error would be an outcome that
        one record can bring about, and everybody is promised that there is none.
        """
        if self.radius is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # infinite means become NaN
                size = np.linalg.norm(mean, axis=-1, keepdims=True)
                mean = mean * (self.radius / np.maximum(size, self.radius))
        full = spread.ndim > mean.ndim
        spread = self.temper * spread
        if self.scales is not None:
            low, high = self.scales[0] ** 2, self.scales[1] ** 2
            spread = _clip_eigenvalues(spread, low, high) if full else np.clip(spread, low, high)
        spread = spread + self.extra_std**2 * (np.eye(mean.shape[-1]) if full else 1)
        if self.radius is not None and self.scales is not None:
            axes = tuple(range(mean.ndim - 1, spread.ndim))
            lost = ~(np.isfinite(mean).all(axis=-1) & np.isfinite(spread).all(axis=axes))
            mean[lost] = 0.0
            spread[lost] = (self.scales[1] ** 2 + self.extra_std**2) * (np.eye(mean.shape[-1]) if full else 1)
        return mean, spread

    def worst_cost(self, dim: int, orders: Array) -> Array:
        """The largest cost of any two posteriors of `dim` numbers, one per order; infinite where there is none.

        Attained by means 2·radius apart, the one sampled from at the largest variance h, the other at the least l.
        Proof: V_α >= (αl − λh)I bounds the quadratic term. The rest of B3 is a sum of f(ρ) = −½[log(α − λρ) + λ log ρ]
        over the eigenvalues ρ of S relative to S', all in [l/h, h/l]; f falls up to ρ = 1 and rises after, and
        ρf'(ρ) + f'(1/ρ)/ρ = ½λα(ρ−1)[1/(α−λρ) − 1/(αρ−λ)] >= 0 for ρ >= 1, so f(h/l) >= f(l/h). ∎
        """
        if self.radius is None or self.scales is None:
            return np.full(len(orders), math.inf)
        low, high = (scale**2 + self.extra_std**2 for scale in self.scales)
        apart = np.zeros(dim)
        apart[0] = 2 * self.radius
        return gaussian.unequal_cost(apart, np.full(dim, high), np.zeros(dim), np.full(dim, low), orders)


def two_sided_cost(mean: Array, spread: Array, means: Array, spreads: Array, orders: Array) -> Array:
    """Cost of one sample of N(mean, spread) for each of (means, spreads): the larger direction, (others, orders).

    Infinite where (means, spreads) is no Gaussian: a trajectory that left the real numbers, or collapsed.
    """
    good = _gaussian(means, spreads)
    result = np.full((len(means), len(orders)), math.inf)
    if good.any():
        cost = gaussian.full_cost if spread.ndim > mean.ndim else gaussian.unequal_cost
        there = cost(mean, spread, means[good], spreads[good], orders)
        back = cost(means[good], spreads[good], mean, spread, orders)
        result[good] = np.maximum(there, back)
    return result


def both_ways(mean: Array, spread: Array, means: Array, spreads: Array) -> GaussianPairs:
    """N(mean, spread) and each of (means, spreads), either of them the one sampled from: record i has row i's pairs."""
    good = _gaussian(means, spreads)
    shape = means.shape
    ways = [Standard(np.full(shape, math.inf), np.zeros(shape), np.zeros(len(means))) for _ in range(2)]
    if good.any():
        pair = gaussian.full_pair if spread.ndim > mean.ndim else gaussian.diagonal_pair
        found = pair(mean, spread, means[good], spreads[good]), pair(means[good], spreads[good], mean, spread)
        for way, values in zip(ways, found, strict=True):
            for whole, part in zip(way, values, strict=True):
                whole[good] = part
    return GaussianPairs.of(*ways)


def _gaussian(means: Array, spreads: Array) -> npt.NDArray[np.bool_]:
    """Which of (means, spreads) are Gaussians: finite, and not collapsed."""
    flat = spreads.reshape(len(means), math.prod(spreads.shape[1:]))
    good = np.asarray(np.isfinite(np.column_stack([means, flat])).all(axis=1))
    least = np.linalg.eigvalsh(spreads[good]) if spreads.ndim > means.ndim else spreads[good]
    good[good] = (least > np.finfo(float).eps * least.max(axis=1, keepdims=True, initial=0)).all(axis=1)
    return good


def _clip_eigenvalues(matrices: Array, low: float, high: float) -> Array:
    result = matrices.copy()
    good = np.isfinite(matrices).all(axis=(-2, -1))
    values, vectors = np.linalg.eigh(matrices[good])
    clipped = (vectors * np.clip(values, low, high)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    result[good] = (clipped + np.swapaxes(clipped, -1, -2)) / 2
    return result
