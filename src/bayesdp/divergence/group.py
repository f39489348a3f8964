"""Several records leave at once: the subsampled Gaussian mechanism for a group of k.

    N0 = N(0, 1)                                     a step without any of them
    M  = Σ_j Bin(k, q)(j) N(j r, 1)                  a step with all k: each takes part by chance, shift r each

    cost = log E_N0[(M/N0)^α] = (α−1) D_α(M ‖ N0),   j ≤ k records in the batch

**Theorem.** For any rule by which one record, whatever the rest of the batch, moves the update by at most r (in units
of the noise), (α−1) D_α(step with the k records ‖ step without) is at most `cost`, for every order α > 1.

*Proof.* Given the batch of the others (joint convexity of ∫p^α q^{1−α}) and the set S of the k that is drawn, the
update is shifted by a vector v_S with |v_S| ≤ |S| r. With x ~ N(0, I) and G_S = ⟨v_S, x⟩ the moment is
E[(Σ_S Pr(S) e^{G_S − Var G_S/2})^α], and Cov(G_S, G_S') = ⟨v_S, v_S'⟩ ≤ |S||S'| r², which is the covariance where all
records shift alike on a line. By Kahane's inequality (1985) E φ(Σ_S p_S e^{G_S − Var G_S/2}) grows with the
covariances for every convex φ; here φ(t) = t^α. ∎

Steps given the past add up as ever (B11). It is exact on that line, so a chain of weak triangles, or k times the order,
can only be larger. The direction is "remove": records that were there and leave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from scipy.stats import binom

from bayesdp import errors
from bayesdp.divergence import sgm
from bayesdp.divergence.quadrature import graded_edges, log_integral
from bayesdp.divergence.replace_one import log_phi
from bayesdp.errors import Array

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_TAIL = 40.0  # Gaussian mass beyond 40 standard deviations is below e^-800
_ROUND_UP = 1 + 1e-9  # quadrature keeps about ten digits
_BLOCK = 1 << 20  # entries of a temporary array


def cost(shift: Any, orders: Any, *, sampling_rate: float, records: int) -> Array:
    """`(α−1) D_α` of one step for `records` records together, shape `shift.shape + orders.shape`.

    Guarantees: never below the exact value and within 1e-8 of it, relatively; `sgm.cost` for one record;
    `α(α−1)(k r)²/2` at rate 1. Bad input: a negative shift, orders ≤ 1, a rate outside [0, 1], fewer than one record.
    """
    r = errors.array("shift", shift, least=0)
    grid = errors.array("orders", orders, above=1)
    rate = errors.rate("sampling_rate", sampling_rate)
    k = errors.whole("records", records, least=1)
    if k == 1 or rate in (0.0, 1.0):
        return sgm.cost(k * r, grid, sampling_rate=rate)
    flat, alpha = (part.ravel() for part in np.broadcast_arrays(r.reshape(r.shape + (1,) * grid.ndim), grid))
    result = np.zeros(flat.size)
    moved = flat > 0
    if moved.any():
        log_excess = [_log_excess(a, b, rate, k) for a, b in zip(flat[moved], alpha[moved], strict=True)]
        result[moved] = np.logaddexp(0.0, log_excess) * _ROUND_UP
    return result.reshape(r.shape + grid.shape)


def _log_excess(shift: float, alpha: float, rate: float, k: int) -> float:
    """The log of E_N0[t^α − 1 − α(t − 1)], t = M/N0, E_N0[t] = 1: nothing cancels."""
    j = np.arange(k + 1.0)
    log_weight = binom.logpmf(j, k, rate)

    def log_ratio(x: Array) -> Array:
        tilt = j * shift * x[..., None] - (j * shift) ** 2 / 2
        # Two ways to log t: where every tilt is small, the one that keeps digits near t = 1.
        near = np.log1p((np.exp(log_weight) * np.expm1(np.clip(tilt, -1.0, 1.0))).sum(axis=-1))
        return np.where(np.abs(tilt).max(axis=-1) < 1, near, logsumexp(log_weight + tilt, axis=-1))

    def log_f(x: Array, _: npt.NDArray[np.intp]) -> Array:
        parts = np.array_split(x, 1 + x.size * len(j) // _BLOCK)
        log_t = np.concatenate([log_ratio(part) for part in parts])
        return np.asarray(-(x**2) / 2 - _HALF_LOG_2PI + log_phi(log_t, np.full_like(log_t, alpha)))

    # t^α N0 is, piece by piece, a bump at α j r; pieces change where two neighbouring terms of the mixture are equal.
    bumps = alpha * j * shift
    bends = (j[:-1] + 0.5) * shift - np.diff(log_weight) / shift
    low, high = np.array([-_TAIL]), np.array([bumps[-1] + _TAIL])
    centres = np.clip(np.concatenate([bumps, bends]), low, high)[None, :]
    scale = np.array([0.5 / (1 + k * shift * np.sqrt(alpha))])
    edges = graded_edges(centres, low, high, scale)[0]
    # Many records have many bumps close together: edges nearer than the narrowest feature are one.
    thinned = np.unique(np.clip(np.round(edges / scale) * scale, low, high))
    return float(log_integral(log_f, thinned[None, :])[0])
