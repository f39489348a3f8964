"""Elementary functions written so that nothing cancels: small costs keep all their digits."""

from __future__ import annotations

import numpy as np

from bayesdp.divergence.sgm import log_expm1
from bayesdp.errors import Array

_SERIES_BELOW = 0.1  # below this the direct form would lose more than a digit
_TERMS = 18


def log1p_minus(value: Array) -> Array:
    """The difference log(1 + v) − v <= 0 for v > −1: −v²/2 + v³/3 − … near 0."""
    small = np.clip(value, -_SERIES_BELOW, _SERIES_BELOW)
    series = np.zeros_like(small)
    for k in range(_TERMS, 1, -1):
        series = 1 / k - small * series
    return np.where(np.abs(value) <= _SERIES_BELOW, -(small**2) * series, np.log1p(value) - value)


def expm1_minus(value: Array) -> Array:
    """e^v − 1 − v >= 0: v²/2 + v³/6 + … near 0."""
    small = np.clip(value, -_SERIES_BELOW, _SERIES_BELOW)
    series = np.ones_like(small)
    for k in range(_TERMS, 2, -1):
        series = 1 + small * series / k
    return np.where(np.abs(value) <= _SERIES_BELOW, small**2 / 2 * series, np.expm1(value) - value)


def log_mean_exp(costs: Array, log_weights: Array) -> Array:
    """The log of Σ_i w_i e^{c_i} over the last axis for Σ w_i = 1, c_i >= 0: log(1 + Σ w_i (e^{c_i} − 1)).

    Tiny costs keep their relative accuracy; an infinite cost of weight 0 counts for nothing.
    """
    with np.errstate(invalid="ignore"):
        terms = np.where(np.isneginf(log_weights), -np.inf, log_weights + log_expm1(costs))
    top = terms.max(axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total = np.log(np.exp(terms - safe).sum(axis=-1)) + safe[..., 0]
    return np.asarray(np.logaddexp(0.0, total))
