"""Rényi divergences between two Gaussians, of equal variance (B2) or not (B3); a cost is (α−1)·D_α."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesdp import errors
from bayesdp.divergence.stable import log1p_minus
from bayesdp.errors import Array

_NEAR = 0.1  # variances this close are compared by series


class Standard(NamedTuple):
    """What any divergence of N(m0, Σ0) from N(m1, Σ1) depends on, in coordinates in which Σ1 = I and Σ0 is diagonal.

    `square` is d² = (m0 − m1)² and `excess` x = 1 − v0 per coordinate (last axis), `shrink` Σ[log(1 − x) + x].
    """

    square: Array
    excess: Array
    shrink: Array


def cost(shift: Any, orders: Any) -> Array:
    """α(α−1)r²/2 for N(a, s²I) against N(b, s²I), r = |a − b|/s (B2). Shape: shift.shape + orders.shape.

    A negative or non-finite shift, or an order <= 1, is an `InputError`.
    """
    r = errors.array("shift", shift, least=0)
    grid = errors.array("orders", orders, above=1)
    with np.errstate(over="ignore"):
        return np.multiply.outer(r**2 / 2, grid * (grid - 1))


def unequal_cost(mean0: Any, var0: Any, mean1: Any, var1: Any, orders: Any) -> Array:
    """(α−1)·D_α(N(m0, v0)‖N(m1, v1)) of diagonal Gaussians (B3), summed over the last axis.

    Per coordinate, with λ = α−1, x = 1 − v0/v1 and d = m0 − m1:

        αλ d² / (2 v1 (1 + λx)) − ½ [log(1 + λx) + λ log(1 − x)]     if 1 + λx > 0, else +inf,

    the brackets evaluated as two terms of one sign, so nearly equal variances keep their digits. Arguments
    broadcast; shape: their leading axes + orders.shape. A variance <= 0 is an `InputError`.
    """
    grid = errors.array("orders", orders, above=1, ndim=(0, 1))
    pair = diagonal_pair(mean0, var0, mean1, var1)
    return _standard_cost(pair, np.atleast_1d(grid)).reshape(pair.shrink.shape + grid.shape)


def diagonal_pair(mean0: Any, var0: Any, mean1: Any, var1: Any) -> Standard:
    """Diagonal Gaussians in standard coordinates; arguments as for `unequal_cost`."""
    m0, m1 = errors.array("mean0", mean0), errors.array("mean1", mean1)
    v0, v1 = errors.array("var0", var0, above=0), errors.array("var1", var1, above=0)
    m0, v0, m1, v1 = np.broadcast_arrays(np.atleast_1d(m0), v0, m1, v1)
    with np.errstate(over="ignore"):
        square = ((m0 - m1) / np.sqrt(v1)) ** 2
        excess = (v1 - v0) / v1
    near = np.abs(excess) <= _NEAR
    shrink = np.where(near, log1p_minus(np.where(near, -excess, 0.0)), np.log(v0) - np.log(v1) + excess)
    return Standard(square, excess, shrink.sum(axis=-1))


def full_cost(mean0: Any, cov0: Any, mean1: Any, cov1: Any, orders: Any) -> Array:
    """(α−1)·D_α(N(m0, Σ0)‖N(m1, Σ1)) for full covariances (B3); means (..., d), covariances (..., d, d).

    With Σ1 = LLᵀ and the eigenvalues x_i of L⁻¹(Σ1 − Σ0)L⁻ᵀ, V_α = αΣ1 + (1−α)Σ0 is L·diag(1 + λx_i)·Lᵀ in
    the eigenbasis: positive definite iff every 1 + λx_i > 0, and the divergence is a sum over coordinates
    as in `unequal_cost`; +inf otherwise. A covariance that is not symmetric positive definite is an
    `InputError`.
    """
    grid = errors.array("orders", orders, above=1, ndim=(0, 1))
    pair = full_pair(mean0, cov0, mean1, cov1)
    return _standard_cost(pair, np.atleast_1d(grid)).reshape(pair.shrink.shape + grid.shape)


def full_pair(mean0: Any, cov0: Any, mean1: Any, cov1: Any) -> Standard:
    """Gaussians with full covariances in standard coordinates; arguments as for `full_cost`."""
    m0, m1 = errors.array("mean0", mean0), errors.array("mean1", mean1)
    c0, c1 = _covariance("cov0", cov0), _covariance("cov1", cov1)
    size = c1.shape[-1]
    if m0.shape[-1:] != (size,) or m1.shape[-1:] != (size,) or c0.shape[-1] != size:
        raise errors.unmet(
            "mean",
            m0.shape,
            "means (..., d) and covariances (..., d, d) of one d",
            f"shapes {m0.shape}, {c0.shape}, {m1.shape}, {c1.shape}",
        )
    lead = np.broadcast_shapes(m0.shape[:-1], m1.shape[:-1], c0.shape[:-2], c1.shape[:-2])
    c0, c1 = np.broadcast_to(c0, (*lead, size, size)), np.broadcast_to(c1, (*lead, size, size))
    root = np.linalg.cholesky(c1)
    half = np.linalg.solve(root, c1 - c0)
    whitened = np.linalg.solve(root, np.swapaxes(half, -1, -2))
    excess, basis = np.linalg.eigh((whitened + np.swapaxes(whitened, -1, -2)) / 2)
    shift = np.linalg.solve(root, np.broadcast_to(m0 - m1, (*lead, size))[..., None])
    square = (np.swapaxes(basis, -1, -2) @ shift)[..., 0] ** 2
    near = (np.abs(excess) <= _NEAR).all(axis=-1)
    # Far apart, the determinants know log(1 − x) better than 1 − x, which may be all rounding.
    logdet = np.linalg.slogdet(c0)[1] - np.linalg.slogdet(c1)[1] + excess.sum(axis=-1)
    shrink = np.where(near, log1p_minus(np.where(near[..., None], -excess, 0.0)).sum(axis=-1), logdet)
    return Standard(square, excess, shrink)


def _standard_cost(pair: Standard, grid: Array) -> Array:
    square, excess, shrink = pair
    lam = (grid - 1)[:, None]
    stretch = lam * excess[..., None, :]
    inside = np.asarray((stretch > -1).all(axis=-1))
    stretch = np.where(inside[..., None], stretch, 0.0)
    with np.errstate(over="ignore"):
        quadratic = (lam + 1) * lam * square[..., None, :] / (2 * (1 + stretch))
        total = (quadratic - log1p_minus(stretch) / 2).sum(axis=-1) - lam[:, 0] * shrink[..., None] / 2
        return np.where(inside, total, np.inf)


def _covariance(name: str, value: Any) -> Array:
    cov = errors.array(name, value)
    if cov.ndim < 2 or cov.shape[-1] != cov.shape[-2]:
        raise errors.refuse(name, cov.shape, "with shape (..., d, d)", got=f"shape {cov.shape}")
    if not np.allclose(cov, np.swapaxes(cov, -1, -2), rtol=1e-9, atol=0):
        raise errors.refuse(name, value, "to be symmetric")
    try:
        np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise errors.refuse(name, value, "to be positive definite") from None
    return cov
