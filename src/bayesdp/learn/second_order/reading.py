"""The posterior that reads a release as data (H27).

    r_t = S ψ(θ_t) + ξ_t,    ψ(θ_t) ≈ ψ(θ) + N A (θ − θ_t),    ψ(θ) ~ N(0, N B),    ξ_t ~ N(0, K s² I)

θ_t is where step t was taken, one of the K that are read, ψ(θ) the sum of scores at the true parameters, the same in
all of them. All that counts are the means over the steps, r and θ₀: in the coordinates S,
r | θ ~ N(N A (θ − θ₀), N B + s² I), and with a prior that is Gaussian near θ₀ the posterior is Gaussian too. Where
nothing is clipped and no noise added, B = A and this is N(θ̂, (N A + Λ)⁻¹), Laplace's; noise widens it, and so does a
clipped score that says less than its curvature.

A and B are known up to noise themselves: the posterior is the mean over draws of them, shrunk as in `symmetric`, of
which the first two moments are kept. Everything here is made of what was released.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesdp.errors import Array
from bayesdp.learn.second_order import symmetric

_LEAST = 0.03
"""Eigenvalues of A and B at least, where their mean is 1."""


class Told(NamedTuple):
    """What the last steps released, their mean in double precision: θ₀, S, sums Sψ, A, B, the `stds` of their noise.

    `shape` is the curvature per record that was known before, in the coordinates S; `gradient` and `precision` are
    those of the log prior at θ₀.
    """

    theta: Array
    white: Array
    score: Array
    curvature: Array
    spread: Array
    stds: tuple[float, float, float]
    shape: Array
    records: int
    gradient: Array
    precision: Array


class Read(NamedTuple):
    """Moments of the posterior, and what makes one doubt it, for each parameter.

    `information`: uᵀBu/uᵀAu for the direction u it is estimated by, 1 where nothing is clipped and the model is right.
    `unsure`: the share of its variance that comes from not knowing A and B. `distance`: how far θ₀ was from the mean,
    in standard deviations. `weights`: how much of A and of B was taken from the release, 0 to 1.
    """

    mean: Array
    cov: Array
    information: Array
    unsure: Array
    distance: Array
    weights: tuple[float, float]


def read(told: Told, draws: int = 200) -> Read:
    """The posterior."""
    n, d = told.records, len(told.theta)
    curvature = symmetric.shrunk(told.curvature / n, told.shape, told.stds[1] / n)
    spread = symmetric.shrunk(told.spread / n, curvature.matrix, told.stds[2] / n)
    rng = np.random.default_rng(0)
    first = _balanced(rng, draws, d) * np.sqrt(curvature.variance)
    second = _balanced(rng, draws, d)[rng.permutation(draws)] * np.sqrt(spread.variance)
    bent = curvature.matrix + symmetric.unflat(first, d)
    # B follows A: what is not known of one is not known of the other.
    wide = spread.matrix + symmetric.unflat(first + second, d)
    means, covs = _posteriors(told, bent, wide)
    mean = means.mean(axis=0)
    cov = covs.mean(axis=0) + (means - mean).T @ (means - mean) / draws
    centre = _posteriors(told, curvature.matrix[None], spread.matrix[None])[1][0]
    rows = np.linalg.solve(told.white.T, centre)  # the columns are the directions, in the coordinates S
    seen, bends = (np.einsum("ij,ik,kj->j", rows, part, rows) for part in (spread.matrix, curvature.matrix))
    return Read(
        mean,
        (cov + cov.T) / 2,
        np.asarray(seen / np.maximum(bends, np.finfo(float).tiny)),
        1 - np.diagonal(centre) / np.diagonal(cov),
        np.abs(mean - told.theta) / np.sqrt(np.diagonal(cov)),
        (float(curvature.weight), float(spread.weight)),
    )


def _balanced(rng: np.random.Generator, draws: int, dim: int) -> Array:
    """Normals whose second half is the first with the opposite sign, so that their mean is exact."""
    half = rng.normal(size=((draws + 1) // 2, symmetric.entries(dim)))
    return np.concatenate([half, -half])[:draws]


def _posteriors(told: Told, curvature: Array, spread: Array) -> tuple[Array, Array]:
    """Means (k, d) and covariances (k, d, d) for each of k pairs (A, B), both in the coordinates S."""
    n, back = told.records, np.linalg.inv(told.white)
    slopes = n * symmetric.floored(curvature, _LEAST) @ back.T  # of Sψ in θ, with a minus
    noisy = n * symmetric.floored(spread, _LEAST) + told.stds[0] ** 2 * np.eye(len(told.theta))
    solved = np.linalg.solve(noisy, slopes)
    covs = np.linalg.inv(np.swapaxes(slopes, -1, -2) @ solved + told.precision)
    means = told.theta + np.einsum("kij,kj->ki", covs, told.score @ solved + told.gradient)
    return means, (covs + np.swapaxes(covs, -1, -2)) / 2
