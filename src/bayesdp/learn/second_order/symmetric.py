"""Symmetric matrices as vectors of the same length, their shrinkage to a shape, and their roots.

    flat(M)      = (M_ii; √2 M_ij, i < j),    |flat(M)| = |M|_F
    shrunk(M̃)    = κT + α(M̃ − κT),            α = τ²/(τ² + s²)

M̃ = M + noise of standard deviation s on each entry of flat(M̃). The estimate is the posterior mean of M under
flat(M) ~ N(κ flat(T), τ² I), and αs² its variance, with κ and τ² by moments of M̃ itself (James and Stein; Ledoit and
Wolf): E|M̃ − κT|² = m(τ² + s²) for m entries. Everything is permuted where rows and columns are.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

Matrix = Any
"""(…, d, d), of NumPy or of JAX: `xp` is the module that knows it."""

LEAST = 0.1
"""τ/κ at least: a shape is never taken to be known better."""


class Shrunk(NamedTuple):
    """The estimate, its variance on each entry of the flat matrix, and the weight α of what was released."""

    matrix: Matrix
    variance: Any
    weight: Any


def entries(dim: int) -> int:
    """How many numbers a symmetric matrix has."""
    return dim * (dim + 1) // 2


def flat(matrix: Matrix, xp: ModuleType = np) -> Any:
    """The numbers of M as a vector of its Frobenius length, (…, d(d + 1)/2)."""
    rows, columns = np.tril_indices(matrix.shape[-1])
    return matrix[..., rows, columns] * xp.asarray(np.where(rows == columns, 1, math.sqrt(2)), matrix.dtype)


def unflat(vector: Any, dim: int, xp: ModuleType = np) -> Matrix:
    """The inverse of `flat`."""
    rows, columns = np.tril_indices(dim)
    where = np.zeros((dim, dim), int)
    where[rows, columns] = where[columns, rows] = np.arange(len(rows))
    return vector[..., where] * xp.asarray(np.where(np.eye(dim, dtype=bool), 1, math.sqrt(0.5)), vector.dtype)


def shrunk(noisy: Matrix, shape: Matrix, std: Any, xp: ModuleType = np) -> Shrunk:
    """See above; a negative κ is taken for a small one."""
    size = xp.sum(shape * shape)
    scale = xp.maximum(xp.sum(noisy * shape) / size, 0.02)
    away = noisy - scale * shape
    free = max(entries(noisy.shape[-1]) - 1, 1)
    typical = scale * xp.sqrt(size / noisy.shape[-1])
    spread = xp.maximum(xp.sum(away * away) / free - std**2, (LEAST * typical) ** 2)
    weight = spread / (spread + std**2)
    return Shrunk(scale * shape + weight * away, weight * std**2, weight)


def floored(matrix: Matrix, least: Any, xp: ModuleType = np) -> Matrix:
    """The matrix with eigenvalues at least `least`."""
    values, vectors = xp.linalg.eigh((matrix + xp.swapaxes(matrix, -1, -2)) / 2)
    return (vectors * xp.maximum(values, least)[..., None, :]) @ xp.swapaxes(vectors, -1, -2)


def upright(matrix: Matrix, least: Any, xp: ModuleType = np) -> Matrix:
    """|M|: eigenvalues without their sign, at least `least`. Far from an optimum curvature may be of either sign."""
    values, vectors = xp.linalg.eigh((matrix + xp.swapaxes(matrix, -1, -2)) / 2)
    return (vectors * xp.maximum(xp.abs(values), least)[..., None, :]) @ xp.swapaxes(vectors, -1, -2)


def power(matrix: Matrix, exponent: float, least: Any, xp: ModuleType = np) -> Matrix:
    """M^exponent, eigenvalues taken to be at least `least`; symmetric, so that no order of columns is preferred."""
    values, vectors = xp.linalg.eigh((matrix + xp.swapaxes(matrix, -1, -2)) / 2)
    return (vectors * (xp.maximum(values, least) ** exponent)[..., None, :]) @ xp.swapaxes(vectors, -1, -2)
