"""Subsampled Gaussian mechanism: the cost of one noisy step for a record that takes part by chance.

    N0 = N(0, 1)                       the step without the record
    M  = (1-q) N0 + q N(r, 1)          the step with it: rate q, shift r = distance / noise_std

    remove:  cost = log E_N0[(M/N0)^α]                         whole orders B4, fractional orders B5
    add:     cost = log E_N0[(M/N0)^(-λ)],  λ = α - 1          never above the other, B6

Both are `(α-1) D_α`. The remove direction bounds the add direction at equal variances (Mironov, Talwar
and Zhang 2019, B6), so it alone is the cost for both.

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
from scipy.special import expit, logsumexp

from bayesdp import errors
from bayesdp.errors import Array

DIRECTIONS = ("remove", "add")

_BLOCK = 1 << 20
"""Entries of a temporary array: large enough to vectorise, small enough to stay in cache and memory."""


def cost(shift: Any, orders: Any, *, sampling_rate: float, direction: str = "remove") -> Array:
    """`(α-1) D_α` of one step, shape `shift.shape + orders.shape` (B4, B5; `direction="add"`: B6).

    Guarantees: exact to about 1e-12 relative for any order > 1, rate in [0, 1] and shift >= 0 whose squared
    value is finite; 0 at rate 0 or shift 0; `α(α-1) r²/2` at rate 1; never NaN, +inf beyond float64.
    """
    shift = errors.array("shift", shift, least=0)
    orders = errors.array("orders", orders, above=1)
    rate = errors.rate("sampling_rate", sampling_rate)
    errors.one_of("direction", direction, DIRECTIONS)
    flat, inverse = np.unique(shift, return_inverse=True)
    with np.errstate(over="ignore"):
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
        near, far = moved[moved <= _FAR], moved[moved > _FAR]
        integral = _integral(near, order if direction == "remove" else 1 - order, rate)
        log_excess = np.concatenate([integral, _apart(far, order - 1, rate, direction)])
    result[shift > 0] = np.logaddexp(0, log_excess)
    return result


@lru_cache(maxsize=256)
def log_binomials(order: int) -> Array:
    """The log of C(order, k) for k = 0..order, each correctly rounded: logs of exact integers (read-only)."""
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


_FAR = 100.0
"""Shifts from which the record's two outcomes do not overlap: what both share is below e^(-_FAR²/8 + 700)."""


def _apart(shift: Array, excess: float, rate: float, direction: str) -> Array:
    """log(A - 1) where no outcome is likely both with and without the record; λ is `excess`.

    remove: (1-q)[(1-q)^λ - 1] + q[q^λ e^(λ(λ+1) r²/2) - 1],   add: (1-q)^(-λ) - 1.
    """
    if direction == "add":
        return np.full_like(shift, float(log_expm1(np.asarray(-excess * math.log1p(-rate)))))
    absent = (1 - rate) * math.expm1(excess * math.log1p(-rate))
    present = math.log(rate) + log_expm1(excess * (math.log(rate) + (excess + 1) * shift**2 / 2))
    return np.asarray(present + np.log1p(absent * np.exp(-present)))


# --- the integral -----------------------------------------------------------------------------------------

_WINDOW = 12.0
"""How far from a peak the integrand is followed, in noise units: the mass beyond is below 1e-30."""

_SMALL, _RATIO = 0.5, 1.05
"""Shifts that share a lattice: by factors of 2 up to 0.5, by factors of 1.05 above."""


def _integral(shift: Array, power: float, rate: float) -> Array:
    """The log of E_N0[(1+y)^p - 1 - p y] by the trapezoidal rule, for ascending shifts.

    The integrand is analytic within π/r of the real line and dies like a Gaussian, so the rule's error is
    exp(-2π²/(r h)) or, for negative p, where the integrand grows off the line, exp(-8π²/(r² h² |p|)): the
    spacing h below keeps both under 1e-15. Shifts in the same bin share a lattice; bins are fixed, so that a
    cost does not depend on which others are computed beside it (the same bits in chunks or whole, M13).
    """
    result = np.empty_like(shift)
    bins = np.where(shift > _SMALL, np.log(shift / _SMALL) / math.log(_RATIO), np.log2(shift / _SMALL))
    bins = np.maximum(np.ceil(bins), -900)  # smaller ones share the last: all their peaks are at 0
    start = 0
    while start < len(shift):
        stop = int(np.searchsorted(bins, bins[start], side="right"))
        stop = min(stop, start + 1 + _BLOCK // 4096)
        ratio = _RATIO if bins[start] > 0 else 2.0
        high = _SMALL * ratio ** float(bins[start])
        spacing = min(0.2, 0.4 / high)
        if power < 0:
            spacing = min(spacing, 1.4 / (high * math.sqrt(-power)))
        x = _lattice(high / ratio, high, spacing, power, rate)
        terms = _log_integrand(shift[start:stop, None], x, power, rate) - x**2 / 2
        result[start:stop] = logsumexp(terms, axis=1) + math.log(spacing) - 0.5 * math.log(2 * math.pi)
        start = stop
    return result


def _lattice(low: float, high: float, spacing: float, power: float, rate: float) -> Array:
    """Lattice points near every place where the integrand can peak, for shifts between `low` and `high`.

    With s(x) in [0, 1] the posterior chance that the record took part, peaks solve x = p r s(x) (or lie at
    r and 2r, from the terms of first and second order). s turns from 0 to 1 around the crossing x0 where
    s = 1/2, so for p > 0 a peak is near 0 or p r, or else within log(p r)/r of x0: covered by the crossing's
    window. Small shifts turn slowly and may peak anywhere between 0 and p r, so all of that is covered.
    For p < 0 the function x²/2 - p log(1+y) is convex: one peak, anywhere between p r and 0, found by `_peak`.
    """
    log_odds = math.log1p(-rate) - math.log(rate)
    crossing = sorted(r / 2 + log_odds / r for r in (low, high))
    peaks = [(c * low, c * high, _WINDOW) for c in (0.0, 1.0, 2.0)]
    if high > 2:
        peaks.append((crossing[0], crossing[1], _WINDOW + math.log1p(abs(power) * high) / low))
    if power < 0:
        lone = _peak(np.linspace(low, high, 9), power, log_odds)
        peaks.append((float(lone.min()), float(lone.max()), _WINDOW))
    else:
        peaks.append((0.0 if high <= 2 else power * low, power * high, _WINDOW))
    spans: list[list[int]] = []
    for first, last in sorted((math.floor((a - w) / spacing), math.ceil((b + w) / spacing)) for a, b, w in peaks):
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(last, spans[-1][1])
        else:
            spans.append([first, last])
    return np.concatenate([np.arange(first, last + 1) for first, last in spans]) * spacing


def _peak(shift: Array, power: float, log_odds: float) -> Array:
    """The root x in [p r, 0] of x = p r s(x) for p < 0, to well below the window: s increases, so bisection."""
    low, high = power * shift, np.zeros_like(shift)
    for _ in range(50):
        middle = (low + high) / 2
        past = middle > power * shift * expit(shift * (middle - shift / 2) - log_odds)
        low, high = np.where(past, low, middle), np.where(past, middle, high)
    return low


def _log_integrand(r: Array, x: Array, power: float, rate: float) -> Array:
    """log( (1+y)^p - 1 - p y ) at x, from ℓ = log(1+y), y = q (exp(r x - r²/2) - 1)."""
    exponent = r * (x - r / 2)
    y = rate * np.expm1(np.minimum(exponent, 1))
    # Far from y = 0, also towards y = -1, the sum of two positive terms keeps the digits.
    apart = (exponent >= 1) | (y < -0.5)
    log_ratio = np.where(
        apart, np.logaddexp(math.log1p(-rate), math.log(rate) + exponent), np.log1p(np.where(apart, 0.0, y))
    )
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
