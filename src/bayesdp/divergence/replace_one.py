"""One record replaced by another under Poisson sampling (B14), and the worst such pair (H10).

P = (1−q) N(0, I) + q N(a, I) against Q = (1−q) N(0, I) + q N(b, I), in noise units: the batch without the
record is the origin, the old record shifts by a, the new one by b. The pair is *not* determined by |a − b|
(ERR 9). When only |a| <= A and |b| <= B are known, a = A and b = −B on a line is the worst (theorem H10), for
every order and every ε: that is what `cost` and `hockey_stick` evaluate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from bayesdp import errors
from bayesdp.divergence import hockey_stick as hs
from bayesdp.divergence.quadrature import graded_edges, log_integral
from bayesdp.divergence.sgm import log_binomials, log_expm1
from bayesdp.errors import Array

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_TAIL = 40.0  # Gaussian mass beyond 40 standard deviations is below e^-800
_TINY_SHIFT = 1e-100  # smaller positive shifts are raised to this (costs grow with the shift, H10)


def cost(shift_old: Any, shift_new: Any, orders: Any, *, sampling_rate: float) -> Array:
    """The log of E_Q[(P/Q)^α], worst pair with |a| <= A = `shift_old`, |b| <= B = `shift_new` (H10).

    P = (1−q)N(0,1) + qN(A,1), Q = (1−q)N(0,1) + qN(−B,1). Shape: the broadcast shifts + orders.shape. By
    adaptive quadrature of the non-negative t^α − 1 − α(t − 1), t = P/Q, against Q (E_Q[t] = 1), so tiny
    costs keep about ten digits and huge ones do not overflow. Bad input: `InputError`.
    """
    old, new = _pair(shift_old=shift_old, shift_new=shift_new)
    grid, rate = _orders(orders), errors.rate("sampling_rate", sampling_rate)
    return _signed_cost(old, -new, grid, rate).reshape(old.shape + np.shape(orders))


def vector_cost(norm_old: Any, norm_new: Any, inner: Any, orders: Any, *, sampling_rate: float) -> Array:
    """The log of E_Q[(P/Q)^α] for *known* a, b, given |a|, |b|, <a, b> (B14). Never above `cost`.

    Both mixtures depend on x only through span(a, b). With x₁ along b, x₂ across, w = Q/N(0,I) depends on x₁
    alone, and E over x₂ of P/N(0,I) is m(x₁) = 1−q + q e^{a₁x₁ − a₁²/2}, so that
    E_Q[(P/Q)^α] − 1 = E_{x₁}[ w φ(m/w) ] + E_{x₁}[ w^{1−α} m^α (e^{c(x₁)} − 1) ],   φ(t) = t^α − 1 − α(t−1),
    c(x₁) the cost of a sampled Gaussian with shift a₂ and rate q e^{a₁x₁ − a₁²/2}/m: no term cancels. On a
    line (a₂ = 0, either sign) only the first is left. |<a, b>| > |a||b| is an `InputError`.
    """
    old, new = _pair(norm_old=norm_old, norm_new=norm_new)
    old, new, product = np.broadcast_arrays(old, new, errors.array("inner", inner))
    if (np.abs(product) > old * new * (1 + 1e-9) + 1e-300).any():
        raise errors.refuse("inner", inner, "within ±norm_old·norm_new (Cauchy-Schwarz)")
    grid, rate = _orders(orders), errors.rate("sampling_rate", sampling_rate)
    along = np.clip(np.where(new > 0, product / np.where(new > 0, new, 1.0), old), -old, old)
    across = np.sqrt((old - np.abs(along)) * (old + np.abs(along)))
    across = np.where(across > 1e-7 * old, across, 0.0)
    on_line = _signed_cost(along, new, grid, rate)
    if rate in (0.0, 1.0):
        exact = on_line + rate * grid * (grid - 1) * (across**2 / 2)[..., None]
        return exact.reshape(old.shape + np.shape(orders))
    a, b, c, alpha = _problems(along, new, grid, across)
    rest = [
        _log_across(*one, rate) if one[2] > 0 else -np.inf
        for one in zip(a.tolist(), b.tolist(), c.tolist(), alpha.tolist(), strict=True)
    ]
    total = np.logaddexp(on_line, np.reshape(rest, on_line.shape))
    return np.asarray(total.reshape(old.shape + np.shape(orders)))


def convexity_cost(distance: Any, orders: Any, *, sampling_rate: float) -> Array:
    """(α−1)·D_α(P‖Q) <= log(1 − q + q e^{α(α−1)d²/2}) for |a − b| = d = `distance` (joint convexity, B14).

    Joint convexity: the pair is a mixture of (N(0,I), N(0,I)) and (N(a,I), N(b,I)). Needs the distance only,
    but is of order q where the exact cost is of order q². Bad input: `InputError`.
    """
    d = errors.array("distance", distance, least=0)
    grid, rate = _orders(orders), errors.rate("sampling_rate", sampling_rate)
    exponent = (grid * (grid - 1) * (d**2 / 2)[..., None]).reshape(d.shape + np.shape(orders))
    if rate == 0:
        return np.zeros_like(exponent)
    return np.asarray(np.logaddexp(0.0, np.log(rate) + log_expm1(exponent)))


def hockey_stick(epsilon: Any, sampling_rate: float, shift_old: Any, shift_new: Any) -> Array:
    """sup_S P(S) − e^ε Q(S) of the worst pair of `cost` (H10), exact, any real ε; arguments broadcast.

    P/Q increases in x, so the best S is {x > x*} with P(x*) = e^ε Q(x*). Eliminating N(0,1)'s share by that
    equation leaves q G(x* − A, A) + q e^{ε − Bx* − B²/2} G(x*, B), where G(y, d) = φ(y)[m(y) − m(y+d)] >= 0
    with the Mills ratio m: nothing cancels, δ keeps its digits down to 1e-300. Bad input: `InputError`.
    """
    rate = errors.rate("sampling_rate", sampling_rate)
    old, new = _pair(shift_old=shift_old, shift_new=shift_new)
    eps, old, new = np.broadcast_arrays(errors.array("epsilon", epsilon), old, new)
    remove = hs.sampled_delta(eps, old, sampling_rate=rate, direction="remove")
    add = hs.sampled_delta(eps, new, sampling_rate=rate, direction="add")
    result = np.where(new == 0, remove, add)
    if rate == 0:
        return result
    if rate == 1:
        return hs.gaussian_delta(eps, old + new)
    both = (old > 0) & (new > 0)
    if both.any():
        e, a, b = eps[both], np.maximum(old[both], _TINY_SHIFT), np.maximum(new[both], _TINY_SHIFT)
        # δ(ε) = 1 − e^ε + e^ε δ'(−ε) with the roles of P and Q, which mirror each other, exchanged.
        swap = e < 0
        forward = _log_stick(np.abs(e), np.where(swap, b, a), np.where(swap, a, b), rate)
        loss = np.minimum(e, 0.0)
        result[both] = -np.expm1(loss) + np.exp(loss + forward)
    return result


def _pair(**shifts: Any) -> tuple[Array, Array]:
    """Two checked shifts, broadcast; the names are for the error message."""
    old, new = np.broadcast_arrays(*(errors.array(name, value, least=0) for name, value in shifts.items()))
    return old, new


def _orders(orders: Any) -> Array:
    return np.atleast_1d(errors.array("orders", orders, above=1, ndim=(0, 1)))


def _problems(a: Array, b: Array, grid: Array, c: Array) -> tuple[Array, Array, Array, Array]:
    """Flat arrays, one entry for each (shift, order)."""
    wide = np.broadcast_arrays(a[..., None], b[..., None], c[..., None], grid)
    return wide[0].ravel(), wide[1].ravel(), wide[2].ravel(), wide[3].ravel()


def _signed_cost(a: Array, b: Array, grid: Array, rate: float) -> Array:
    """The cost on a line for bumps of P at `a` and of Q at `b`, either sign; shape a.shape + (orders,)."""
    shape = (*a.shape, len(grid))
    if rate == 0:
        return np.zeros(shape)
    if rate == 1:
        return grid * (grid - 1) * ((a - b) ** 2 / 2)[..., None]
    flat_a, flat_b, _, alpha = _problems(a, b, grid, a)
    odds = np.full(flat_a.shape, np.log(rate) - np.log1p(-rate))
    logs = [
        _log_line(flat_a[part], flat_b[part], alpha[part], odds[part])
        for part in np.split(np.arange(len(alpha)), range(256, len(alpha), 256))
    ]
    return np.asarray(np.logaddexp(0.0, np.concatenate(logs)).reshape(shape))


def _log_line(a: Array, b: Array, alpha: Array, odds: Array) -> Array:
    """The log of E_Q[(P/Q)^α] − 1 for flat arrays; `odds` is log(q/(1−q)), one for each problem."""

    def log_f(x: Array, i: npt.NDArray[np.intp]) -> Array:
        log_w, log_ratio = _densities(x, a[i, None], b[i, None], odds[i, None])
        return np.asarray(-(x**2) / 2 - _HALF_LOG_2PI + log_w + log_phi(log_ratio, alpha[i, None]))

    return log_integral(log_f, _edges(a, b, alpha, odds))


def _log_across(along: float, b: float, across: float, alpha: float, rate: float) -> float:
    """The log of E_{x₁}[ w^{1−α} m^α (e^{c(x₁)} − 1) ]: what the part across b adds to `vector_cost`."""
    odds = float(np.log(rate) - np.log1p(-rate))
    one = [np.array([value]) for value in (along, b, alpha, odds)]

    def log_f(x: Array, _: npt.NDArray[np.intp]) -> Array:
        log_w, log_ratio = _densities(x, one[0], one[1], one[3])
        within = _log_sampled(across, alpha, (along * x - along**2 / 2 + odds).ravel()).reshape(x.shape)
        return np.asarray(-(x**2) / 2 - _HALF_LOG_2PI + log_w + alpha * log_ratio + within)

    return float(log_integral(log_f, _edges(*one))[0])


def _log_sampled(shift: float, alpha: float, odds: Array) -> Array:
    """The log of e^c − 1 for the sampled Gaussian cost c at many rates: the binomial sum (B4), or the integral."""
    if alpha != int(alpha):
        same = np.ones_like(odds)
        return _log_line(shift * same, 0 * same, alpha * same, odds)
    k = np.arange(2.0, int(alpha) + 1)
    fixed: Array = log_binomials(int(alpha))[2:] + log_expm1(np.asarray(k * (k - 1) * (shift**2 / 2)))
    blocks = np.array_split(odds, 1 + odds.size * k.size // (1 << 20))
    sums = [special.logsumexp(fixed + k * o[:, None], axis=1) - alpha * np.logaddexp(0.0, o) for o in blocks]
    return np.concatenate(sums)


def _densities(x: Array, a: Array, b: Array, odds: Array) -> tuple[Array, Array]:
    """Both log Q/N(0,1) and log P/Q at x; the second keeps its digits where P and Q nearly agree."""
    log_keep, log_rate = -np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)
    bump = log_rate + b * x - b**2 / 2
    log_w = np.logaddexp(log_keep, bump)
    log_share = bump - log_w
    gap = (a - b) * (x - (a + b) / 2)
    log_p = np.logaddexp(log_keep, log_rate + a * x - a**2 / 2)
    # Two ways to log P/Q; the one whose terms are smaller has the smaller rounding.
    tilted = np.logaddexp(log_keep - log_w, log_share + gap)
    far = np.where(np.abs(log_share) + np.abs(gap) < np.abs(log_p) + np.abs(log_w), tilted, log_p - log_w)
    near = np.log1p(np.exp(log_share) * np.expm1(np.clip(gap, -1.0, 1.0)))
    return log_w, np.where(np.abs(gap) < 1, near, far)


def log_phi(log_t: Array, alpha: Array) -> Array:
    """The log of t^α − 1 − α(t − 1) from log t; near t = 1 by a series in log t that does not cancel."""
    u = np.clip(log_t, -0.5 / alpha, 0.5 / alpha)
    series, term, log_alpha = np.zeros_like(u), u.copy(), np.log(alpha)
    for k in range(2, 17):
        term = term * u / k
        series += term * np.expm1((k - 1) * log_alpha)
    below = np.minimum(log_t, -0.5 / alpha)
    left = np.expm1(alpha * below) - alpha * np.expm1(below)
    above = np.maximum(log_t, 0.5 / alpha)
    right = -np.exp(-alpha * above) * (1 - alpha) - alpha * np.exp(-(alpha - 1) * above)
    with np.errstate(divide="ignore"):
        middle = np.log(alpha * np.maximum(series, 0.0))
    outer = np.where(log_t < 0, np.log(left), alpha * above + np.log1p(right))
    return np.where(np.abs(log_t) * alpha <= 0.5, middle, outer)


def _edges(a: Array, b: Array, alpha: Array, odds: Array) -> Array:
    """Panels that see every feature of N(0,1)·w·φ(P/Q): bumps of Q, peaks of P^α Q^{1−α}, the two bends.

    P^α Q^{1−α} is, piece by piece, e^{−x²/2 + cx} with c one of 0, αa, (1−α)b and their sum, so its peaks
    are there or at a bend, where one of the two mixtures changes from its first to its second part (width
    1/|shift|, sharpened by √α).
    """
    top = alpha * a
    back = (1 - alpha) * b
    bends = [np.where(s == 0, 0.0, s / 2 - odds / np.where(s == 0, 1.0, s)) for s in (a, b)]
    bumps = np.stack([np.zeros_like(a), a, b, top, back, top + back], axis=1)
    low, high = bumps.min(axis=1) - _TAIL, bumps.max(axis=1) + _TAIL
    centres = np.concatenate([bumps, np.stack(bends, axis=1)], axis=1)
    scale = 0.5 / (1 + np.maximum(np.abs(a), np.abs(b)) * np.sqrt(alpha))
    return graded_edges(np.clip(centres, low[:, None], high[:, None]), low, high, scale)


def _log_stick(eps: Array, a: Array, b: Array, rate: float) -> Array:
    """The log of δ(ε) for ε >= 0, a, b > 0, 0 < q < 1 (see `hockey_stick`)."""
    x = _threshold(eps, a, b, rate)
    first = hs.log_tail_gap(x - a, a)
    second = eps - b * x - b**2 / 2 + hs.log_tail_gap(x, b)
    return np.asarray(np.minimum(np.log(rate) + np.logaddexp(first, second), 0.0))


def _threshold(eps: Array, a: Array, b: Array, rate: float) -> Array:
    """The x* with log P(x*)/Q(x*) = ε for a, b > 0, 0 < q < 1: Newton steps inside a shrinking bracket."""
    keep, log_rate = np.log1p(-rate), np.log(rate)
    low = np.minimum(a / 2, (eps + log_rate) / b - b / 2)  # there P <= N(0,1) and Q >= q N(−b, 1)
    high = np.maximum(-b / 2, (eps - log_rate) / a + a / 2)  # there P >= q N(a, 1) and Q <= N(0,1)
    x = np.clip(eps / (a + b), low, high)
    for step in range(200):
        up, down = log_rate + a * x - a**2 / 2, log_rate - b * x - b**2 / 2
        log_p, log_q = np.logaddexp(keep, up), np.logaddexp(keep, down)
        value = log_p - log_q - eps
        low, high = np.where(value < 0, x, low), np.where(value < 0, high, x)
        middle = (low + high) / 2
        if ((middle <= low) | (middle >= high) | (value == 0)).all():
            break
        slope = a * np.exp(up - log_p) + b * np.exp(down - log_q)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            newton = x - value / slope
        use = (newton > low) & (newton < high) & (step % 3 != 2)
        x = np.where(value == 0, x, np.where(use, newton, middle))
    return x
