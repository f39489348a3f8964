"""Heavy-tailed synthetic gradients (S1 V-A, J1-J3): every coordinate is Weibull with shape 1/2.

    X = E²,  E exponential with mean 1:   Pr[X > x] = exp(−√x),   E[X] = 2,  E[X²] = 24

In 1000 dimensions a gradient's norm is about 155, give or take 13 %, and two independent gradients are about
200 apart: heavy tails in each coordinate, but neither in the norm nor in the distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from bayesdp import errors
from bayesdp.errors import Array

RECORDS, DIMENSIONS = 50, 1000
"""The sample of the papers' public notebook."""

_CHUNK = 1 << 21
"""Coordinates drawn at a time where only norms are kept: 16 MB."""


def gradients(records: int, dimensions: int, rng: np.random.Generator) -> Array:
    """Independent Weibull(1/2) coordinates, shape (records, dimensions). Bad input: counts below 1."""
    rows = errors.whole("records", records, least=1)
    columns = errors.whole("dimensions", dimensions, least=1)
    result: Array = rng.standard_exponential((rows, columns))
    np.square(result, out=result)
    return result


def norms(gradients: Any) -> Array:
    """Euclidean norm of each row."""
    return np.asarray(np.linalg.norm(errors.array("gradients", gradients, ndim=2), axis=1))


def fresh_norms(records: int, dimensions: int, rng: np.random.Generator) -> Array:
    """`norms(gradients(records, dimensions, rng))` without keeping the gradients."""
    total, columns = (
        errors.whole("records", records, least=1),
        errors.whole("dimensions", dimensions, least=1),
    )
    rows = max(1, _CHUNK // columns)
    starts = range(0, total, rows)
    return np.concatenate([norms(gradients(min(rows, total - start), columns, rng)) for start in starts])


def clipped(gradients: Any, clip_norm: float) -> Array:
    """Each row g as g / max(1, |g|/C) (clipping, B13). Bad input: a clip norm that is not positive."""
    rows = errors.array("gradients", gradients, ndim=2)
    limit = errors.number("clip_norm", clip_norm, above=0)
    return np.asarray(rows / np.maximum(1.0, norms(rows) / limit)[:, None])


def pair_distances(gradients: Any) -> Array:
    """|g_i − g_j| of *all* pairs i < j, as the papers take them: n(n−1)/2 dependent numbers (ERR 11)."""
    return np.asarray(pdist(errors.array("gradients", gradients, ndim=2)))
