"""Subsampled Gaussian mechanism: the cost of one noisy step for a record that takes part by chance.

    N0 = N(0, 1)                       the step without the record
    M  = (1-q) N0 + q N(r, 1)          the step with it: rate q, shift r = distance / noise_std

    remove:  cost = log E_N0[(M/N0)^α]                                                    (SPEC A7, B4, B5)
    add:     cost = log E_N0[(M/N0)^(-λ)],  λ = α - 1                                     (SPEC B6)

Both are `(α-1) D_α`. The remove direction bounds the add direction at equal variances (B6, Mironov, Talwar
and Zhang 2019), so it alone is the cost for both.

Whole orders, remove (B4): with M/N0 = 1 + y, E[y] = 0, the binomial sum less one has only positive terms,

    A - 1 = Σ_{k=2..α} C(α,k) (1-q)^(α-k) q^k (exp(k(k-1) r²/2) - 1),

so a cost of 1e-12 has as many correct digits as a cost of 1e12.

Everything else (fractional orders, the add direction) is one integral of a non-negative function, for
p = α or p = -λ, with ℓ = log(1+y):

    A - 1 = E_N0[(1+y)^p - 1 - p y] = E_N0[ e^ℓ (expm1((p-1)ℓ) + (p-1) expm1(-ℓ)) ].

The published series for fractional orders (B5) alternates in sign and is given up by public accountants
when noise is small; the integral has no such region, so it is used throughout and the series is an oracle
in the tests.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayesdp import errors
from bayesdp.errors import Array

DIRECTIONS = ("remove", "add")

_BLOCK = 1 << 20
"""Entries of a temporary array: large enough to vectorise, small enough to stay in cache and memory."""


def cost(shift: Any, orders: Any, *, sampling_rate: float, direction: str = "remove") -> Array:
    """`(α-1) D_α` of one step, shape `shift.shape + orders.shape` (SPEC B4, B5, B6).

    Guarantees: exact to about 1e-12 relative for any order > 1, rate in [0, 1] and shift >= 0 whose squared
    value is finite; 0 at rate 0 or shift 0; `α(α-1) r²/2` at rate 1; never NaN.
    """
    shift = errors.array("shift", shift, least=0)
    orders = errors.array("orders", orders, above=1)
    rate = errors.rate("sampling_rate", sampling_rate)
    errors.one_of("direction", direction, DIRECTIONS)
    flat, inverse = np.unique(shift, return_inverse=True)
    columns = [_one_order(flat, float(order), rate, direction)[inverse] for order in orders.ravel()]
    return np.stack(columns, axis=-1).reshape(shift.shape + orders.shape)


def _one_order(shift: Array, order: float, rate: float, direction: str) -> Array:
    """Costs of ascending shifts at one order."""
    if rate == 0:
        return np.zeros_like(shift)
    if rate == 1:
        return order * (order - 1) * shift**2 / 2
    result = np.zeros_like(shift)
    moved = shift[shift > 0]
    if direction == "remove" and order == int(order):
        blocks = np.array_split(moved, max(1, math.ceil(len(moved) * order / _BLOCK)))
        log_excess = np.concatenate([_binomial(block, int(order), rate) for block in blocks])
    else:
        log_excess = _integral(moved, order if direction == "remove" else 1 - order, rate)
    result[shift > 0] = np.logaddexp(0, log_excess)
    return result


@lru_cache(maxsize=256)
def log_binomials(order: int) -> Array:
    """log C(order, k) for k = 0..order, each correctly rounded: logs of exact integers (read-only)."""
    exact = itertools.accumulate(range(order), lambda c, k: c * (order - k) // (k + 1), initial=1)
    result = np.array([math.log(c) for c in exact])
    result.flags.writeable = False
    return result


def log_expm1(x: Array) -> Array:
    """log(e^x - 1) for x > 0 without overflow, -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.where(x > 30, x + np.log1p(-np.exp(-np.maximum(x, 30))), np.log(np.expm1(np.minimum(x, 30))))


def _binomial(shift: Array, alpha: int, rate: float) -> Array:
    """log(A - 1) of a whole order, remove direction (B4)."""
    k = np.arange(2, alpha + 1)
    log_weight = log_binomials(alpha)[2:] + k * math.log(rate) + (alpha - k) * math.log1p(-rate)
    terms = log_weight + log_expm1(shift[:, None] ** 2 * (k * (k - 1) / 2))
    return np.asarray(logsumexp(terms, axis=1))


# --- the integral -----------------------------------------------------------------------------------------

_WINDOW = 12.0
"""How far from a peak the integrand is followed, in noise units: the mass beyond is below 1e-30."""


def _integral(shift: Array, power: float, rate: float) -> Array:
    """log E_N0[(1+y)^p - 1 - p y] by the trapezoidal rule, for ascending shifts.

    The integrand is analytic within π/r of the real line and dies like a Gaussian, so the rule's error is
    exp(-2π²/(r h)) or, for negative p, where the integrand grows off the line, exp(-8π²/(r² h² |p|)): the
    spacing h below keeps both under 1e-15. Shifts within 5 % of each other share a lattice.
    """
    result = np.empty_like(shift)
    start = 0
    while start < len(shift):
        low = float(shift[start])
        stop = int(np.searchsorted(shift, max(1.05 * low, 0.5), side="right"))
        stop = min(stop, start + 1 + _BLOCK // 4096)
        high = float(shift[stop - 1])
        spacing = min(0.2, 0.4 / high)
        if power < 0:
            spacing = min(spacing, 1.4 / (high * math.sqrt(-power)))
        x = _lattice(low, high, spacing, power, rate)
        terms = _log_integrand(shift[start:stop, None], x, power, rate) - x**2 / 2
        result[start:stop] = logsumexp(terms, axis=1) + math.log(spacing) - 0.5 * math.log(2 * math.pi)
        start = stop
    return result


def _lattice(low: float, high: float, spacing: float, power: float, rate: float) -> Array:
    """Lattice points near every place where the integrand can peak, for shifts between `low` and `high`.

    With s(x) in [0, 1] the posterior chance that the record took part, peaks solve x = p r s(x) (or lie at
    r and 2r, from the terms of first and second order). s turns from 0 to 1 around the crossing x0 where
    s = 1/2, so a peak is near 0 or p r, or else within log(|p| r)/r of x0: covered by the crossing's window.
    Small shifts turn slowly and may peak anywhere between 0 and p r, so all of that is covered.
    """
    log_odds = math.log((1 - rate) / rate)
    crossing = sorted(r / 2 + log_odds / r for r in (low, high))
    turn = _WINDOW + math.log1p(abs(power) * high) / low
    peaks = [(min(c * low, c * high), max(c * low, c * high), _WINDOW) for c in (0.0, 1.0, 2.0, power)]
    if high <= 2:
        peaks.append((0.0, max(power, 2.0) * high, _WINDOW))
    else:
        peaks.append((crossing[0], crossing[1], turn))
    spans: list[list[int]] = []
    for first, last in sorted((math.floor((a - w) / spacing), math.ceil((b + w) / spacing)) for a, b, w in peaks):
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(last, spans[-1][1])
        else:
            spans.append([first, last])
    return np.concatenate([np.arange(first, last + 1) for first, last in spans]) * spacing


def _log_integrand(r: Array, x: Array, power: float, rate: float) -> Array:
    """log( (1+y)^p - 1 - p y ) at x, from ℓ = log(1+y), y = q (exp(r x - r²/2) - 1)."""
    exponent = r * (x - r / 2)
    small = np.log1p(rate * np.expm1(np.minimum(exponent, 1)))
    log_ratio = np.where(exponent < 1, small, np.logaddexp(math.log1p(-rate), math.log(rate) + exponent))
    with np.errstate(divide="ignore"):
        return log_ratio + np.log(_bend(log_ratio, power - 1)) + np.maximum((power - 1) * log_ratio - 600, 0)


def _bend(ell: Array, kappa: float) -> Array:
    """expm1(κℓ) + κ expm1(-ℓ), scaled by exp(-max(κℓ-600, 0)): zero to second order at ℓ = 0."""
    direct = np.expm1(np.minimum(kappa * ell, 600)) + kappa * np.expm1(-np.maximum(ell, -600))
    close = np.abs(ell) * max(abs(kappa), 1) < 0.05
    tiny = np.where(close, ell, 0.0)
    series = np.zeros_like(tiny)
    for j in range(10, 1, -1):
        series = series * tiny + (kappa**j + kappa * (-1) ** j) / math.factorial(j)
    return np.maximum(np.where(close, series * tiny**2, direct), 0.0)
