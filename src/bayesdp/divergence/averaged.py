"""Any update rule: costs averaged over the batch that the record joins (averaged sensitivity H1, S3's Theorem 3.6 E10).

Both functions take an *exactly known* batch distribution. When batches are only sampled, the log of a sample
mean is biased low (ERR 19): the mean of e^cost then needs an upper confidence bound from `bayesdp.estimate`.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from scipy import special

from bayesdp import errors
from bayesdp.divergence import sgm
from bayesdp.divergence.hockey_stick import batch_weights
from bayesdp.divergence.stable import log_mean_exp
from bayesdp.errors import Array

_MOST_TUPLES = 2_000_000


def averaged_cost(shifts: Any, orders: Any, *, sampling_rate: float, weights: Any = None) -> Array:
    """(α−1)·D_α <= log E_B[A_α(q, Δ(B)/s)] for a step of any update rule U, both directions (H1).

    Δ(B) = |U(B + x*) − U(B)|. `shifts` is (..., batches): Δ(B)/s for each batch B of the data without the
    record, with probabilities `weights` (batches,), equal by default. Proof: ∫p^α q^{1−α} is jointly
    convex. Shape: leading axes + orders.shape; tiny costs keep their relative accuracy. Bad input:
    `InputError`.
    """
    r, w = batch_weights(shifts, weights)
    costs = sgm.cost(r, np.atleast_1d(orders), sampling_rate=sampling_rate)
    with np.errstate(divide="ignore"):
        mean = log_mean_exp(np.swapaxes(costs, -1, -2), np.log(w))
    return mean.reshape(r.shape[:-1] + np.shape(orders))


def inner_product_cost(
    differences: Any, outer_probabilities: Any, inner_probabilities: Any, orders: Any, noise_std: float
) -> Array:
    """(α−1)·D_α(M(X')‖M(X)) <= E_u log E_{v_1..v_α} exp( Σ_{i<j} <v_i, v_j>/s² ), whole orders (S3, E10).

    `differences[u, v]` is U(X'_v) − U(X_u), a number or a vector (third axis), for batch u of X (probability
    `outer_probabilities[u]`, the second argument of the divergence) and batch v of X'
    (`inner_probabilities[v]`); the other direction swaps the roles. The expectation runs over all multisets
    of α batches of X' (each once, with its multinomial weight). Published as Δ_{U,α} = −2 Σ_{i<j}<v_i,v_j>;
    this form is stable and does not change when a constant is added to U. Shape: orders.shape. A fractional
    order, or more than two million multisets, is an `InputError`: then use `averaged_cost`, which is
    usually smaller too.
    """
    v = errors.array("differences", differences, ndim=(2, 3))
    v = v[..., None] if v.ndim == 2 else v
    outer = np.exp(_log_probabilities("outer_probabilities", outer_probabilities))
    log_inner = _log_probabilities("inner_probabilities", inner_probabilities)
    grid = errors.array("orders", orders, above=1, ndim=(0, 1))
    scale = errors.noise("noise_std", noise_std)
    if v.shape[:2] != (len(outer), len(log_inner)):
        raise errors.refuse(
            "differences",
            v.shape,
            f"with one row for each outer and one column for each inner probability, ({len(outer)}, {len(log_inner)})",
            got=f"shape {v.shape[:2]}",
        )
    kept = np.flatnonzero(np.isfinite(log_inner))
    gram = np.einsum("uid,ujd->uij", v[:, kept] / scale, v[:, kept] / scale)
    whole = [errors.whole("orders", order, least=2) for order in np.atleast_1d(grid)]
    logs = [_log_tuples(gram, log_inner[kept], alpha) for alpha in whole]
    return (np.stack(logs, axis=-1).T @ outer).reshape(grid.shape)


def _log_tuples(gram: Array, log_p: Array, alpha: int) -> Array:
    """Per outer batch, log E exp(Σ_{i<j} <v_i,v_j>/s²), from the Gram matrices (outer, inner, inner)."""
    size = gram.shape[-1]
    if comb(size + alpha - 1, alpha) > _MOST_TUPLES:
        raise errors.refuse("orders", alpha, f"small enough to enumerate multisets of {size} batches")
    chosen = np.array(list(combinations_with_replacement(range(size), alpha)))
    counts = np.zeros((len(chosen), size))
    np.add.at(counts, (np.arange(len(chosen))[:, None], chosen), 1.0)
    log_weight = special.gammaln(alpha + 1) - special.gammaln(counts + 1).sum(axis=1) + counts @ log_p
    result = np.empty(len(gram))
    for u, products in enumerate(gram):
        # Σ_{i<j} over the tuple, with Σ_i n_i v_i counted as a whole and each v_i with itself taken out.
        pairs = ((counts @ products * counts).sum(axis=1) - counts @ np.diag(products)) / 2
        result[u] = special.logsumexp(log_weight + pairs)
    return result


def _log_probabilities(name: str, value: Any) -> Array:
    p = errors.array(name, value, least=0, ndim=1)
    if abs(p.sum() - 1) > 1e-9:
        raise errors.refuse(name, value, "to sum to 1")
    with np.errstate(divide="ignore"):
        return np.log(p)
