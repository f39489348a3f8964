"""Hockey-stick divergences δ(ε) = sup_S P(S) − e^ε Q(S) of Gaussian steps: plain (B8), sampled (B9), averaged over
batches (H7).

Everything rests on one non-negative expression, `log_tail_gap`, so that a δ of 1e-300 is still right and
none is ever negative.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import special

from bayesdp import errors
from bayesdp.errors import Array

Direction = Literal["remove", "add"]
"""Which of the two data sets is the first argument: "remove" has the record (M_q‖N0), "add" has not."""

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_TINY_RATE = 1e-300  # smaller rates are raised to this, so that dividing by a rate cannot overflow
_HALVINGS = 110


def log_tail_gap(start: Any, width: Any) -> Array:
    """The log of φ(y)[m(y) − m(y + d)], Mills ratio m(y) = Φ(−y)/φ(y), y = `start`, d = `width` >= 0.

    This is log δ_G(d(y + d/2); d): Φ(−y) − e^ε Φ(−y − d) with e^ε = φ(y)/φ(y + d), written so that nothing
    cancels: Φ(−y)(1 − m(y+d)/m(y)), and m decreases. −inf at d = 0.
    """
    y, d = np.broadcast_arrays(np.asarray(start, dtype=np.float64), np.asarray(width, dtype=np.float64))
    direct = _log_mills(y) - _log_mills(y + d)
    # Over a short gap the difference is the integral of −(log m)', a positive and smooth function.
    short = np.minimum(d, 0.25)[..., None]
    smooth = (short[..., 0] / 2) * (_mills_decay(y[..., None] + short * (1 + _NODES) / 2) @ _WEIGHTS)
    drop = np.where(d <= 0.25, smooth, np.maximum(direct, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(special.log_ndtr(-y) + np.log(-np.expm1(-drop)))


def gaussian_delta(epsilon: Any, shift: Any) -> Array:
    """δ_G(ε; r) = Φ(r/2 − ε/r) − e^ε Φ(−r/2 − ε/r), N(r, 1) against N(0, 1) (Balle and Wang 2018, B8).

    Any real ε, any shift r >= 0 (0 gives max(0, 1 − e^ε)); arguments broadcast. Exact to about 1e-12
    relative, also for tiny δ. A negative or non-finite shift or a non-finite ε is an `InputError`.
    """
    eps, r = np.broadcast_arrays(errors.array("epsilon", epsilon), errors.array("shift", shift, least=0))
    return np.exp(_log_gaussian_delta(eps, r))


def gaussian_epsilon(delta: Any, shift: Any) -> Array:
    """The smallest ε >= 0 with δ_G(ε; r) <= δ (B8), rounded up; arguments broadcast.

    δ outside (0, 1) or a negative shift is an `InputError`.
    """
    target, r = np.broadcast_arrays(
        errors.array("delta", delta, above=0, below=1), errors.array("shift", shift, least=0)
    )
    # δ_G(ε; r) <= Φ(r/2 − ε/r), so this ε is large enough.
    upper = np.maximum(r * (r / 2 - special.ndtri(target)), 0.0) * (1 + 1e-12)
    log_target = _rounded_down_log(target)
    _, high = _bisect(lambda eps: _log_gaussian_delta(eps, r) <= log_target, np.zeros_like(upper), upper)
    return high


def gaussian_shift(epsilon: Any, delta: Any) -> Array:
    """The largest r (also called μ) with δ_G(ε; r) <= δ, for ε >= 0 (B8), rounded down; broadcasts.

    A Gaussian step of this shift spends exactly (ε, δ); a larger one more. Negative ε or δ outside (0, 1)
    is an `InputError`.
    """
    eps, target = np.broadcast_arrays(
        errors.array("epsilon", epsilon, least=0), errors.array("delta", delta, above=0, below=1)
    )
    log_target = _rounded_down_log(target)
    high = np.ones_like(target)
    while not (above := _log_gaussian_delta(eps, high) > log_target).all():
        high = np.where(above, high, 2 * high)
    low, _ = _bisect(lambda r: _log_gaussian_delta(eps, r) > log_target, np.zeros_like(high), high)
    return low


def sampled_delta(epsilon: Any, shift: Any, *, sampling_rate: float, direction: Direction) -> Array:
    """δ(ε) of the Poisson-sampled Gaussian step (B9), exact, any real ε; arguments broadcast.

        remove: q·δ_G(log(1 + (e^ε − 1)/q); r);   add: t·δ_G(log(e^ε q/t); r), t = 1 − e^ε(1−q), 0 if t <= 0

    Below ε = log(1−q) the whole space is the best event of "remove": 1 − e^ε. Bad input: `InputError`.
    """
    eps, r = np.broadcast_arrays(errors.array("epsilon", epsilon), errors.array("shift", shift, least=0))
    rate = errors.rate("sampling_rate", sampling_rate)
    errors.one_of("direction", direction, ["remove", "add"])
    if rate == 0:
        return np.asarray(-np.expm1(np.minimum(eps, 0.0)))
    rate = max(rate, _TINY_RATE)
    kept = np.log1p(-rate) if rate < 1 else -np.inf
    # log(e^ε q/t) of "add" is −ε'(−ε) for the ε' of "remove".
    inside = eps > kept if direction == "remove" else -eps > kept
    inner = _inner_epsilon(eps, rate, kept) if direction == "remove" else -_inner_epsilon(-eps, rate, kept)
    share = rate if direction == "remove" else -np.expm1(np.minimum(eps + kept, 0.0))
    outside = -np.expm1(np.minimum(eps, 0.0)) if direction == "remove" else 0.0
    return np.where(inside, share * np.exp(_log_gaussian_delta(inner, r)), outside)


def _inner_epsilon(eps: Array, rate: float, kept: float) -> Array:
    """ε' with e^ε' = 1 + (e^ε − 1)/q = (e^ε − (1−q))/q, by whichever form does not cancel; `kept` = log(1−q)."""
    odds = np.expm1(np.minimum(eps, 1.0)) / rate
    near = (odds > -0.5) & (eps < 1)
    left = np.where(eps > kept, -np.expm1(np.minimum(kept - eps, 0.0)), 1.0)
    return np.where(near, np.log1p(np.where(near, odds, 0.0)), eps - np.log(rate) + np.log(left))


def averaged_delta(
    epsilon: Any, shifts: Any, *, sampling_rate: float, direction: Direction, weights: Any = None
) -> Array:
    """E_B δ(ε; q, Δ(B)/s) >= δ(ε) of one step of any update rule (joint convexity, H7).

    `shifts` is (..., batches), the shift that the record causes beside each batch of an exactly known batch
    distribution with the given `weights` (batches,), equal by default; ε broadcasts against the leading axes.
    For sampled batches the mean needs an upper confidence bound (`bayesdp.estimate`). Bad input:
    `InputError`.
    """
    r, w = batch_weights(shifts, weights)
    eps = errors.array("epsilon", epsilon)
    return sampled_delta(eps[..., None], r, sampling_rate=sampling_rate, direction=direction) @ w


def averaged_epsilon(
    delta: Any, shifts: Any, *, sampling_rate: float, direction: Direction, weights: Any = None
) -> Array:
    """The smallest ε >= 0 with `averaged_delta(ε, …)` <= δ (H7), rounded up; broadcasts as there."""
    r, w = batch_weights(shifts, weights)
    target = errors.array("delta", delta, above=0, below=1)
    # Sampling and averaging only lower δ, so the largest shift without sampling is enough.
    upper = gaussian_epsilon(target, r.max(axis=-1)) * (1 + 1e-12)

    def enough(eps: Array) -> Array:
        value = sampled_delta(eps[..., None], r, sampling_rate=sampling_rate, direction=direction) @ w
        return np.asarray(value <= target * (1 - 1e-13))

    _, high = _bisect(enough, np.zeros_like(upper), upper)
    return high


def batch_weights(shifts: Any, weights: Any) -> tuple[Array, Array]:
    """Checked `shifts` (..., batches) and `weights` (batches,), equal by default; `InputError` if bad."""
    r = errors.array("shifts", shifts, least=0)
    if r.ndim == 0:
        raise errors.refuse("shifts", shifts, "with an axis of batches")
    if weights is None:
        return r, np.full(r.shape[-1], 1 / r.shape[-1])
    w = errors.array("weights", weights, least=0, ndim=1)
    if len(w) != r.shape[-1] or abs(w.sum() - 1) > 1e-9:
        raise errors.refuse("weights", weights, f"to be {r.shape[-1]} probabilities that sum to 1")
    return r, w / w.sum()


def _log_gaussian_delta(eps: Array, r: Array) -> Array:
    safe = np.maximum(r, 1e-100)  # δ_G grows with r, so a smaller positive shift is rounded up
    with np.errstate(divide="ignore", over="ignore"):
        at_zero = np.log(-np.expm1(np.minimum(eps, 0.0)))
        start = np.clip(eps / safe - safe / 2, -1e150, 1e150)
        return np.asarray(np.where(r > 0, log_tail_gap(start, safe), at_zero))


def _log_mills(y: Array) -> Array:
    with np.errstate(over="ignore"):
        right = np.log(special.erfcx(np.maximum(y, 0.0) / np.sqrt(2.0))) + 0.5 * np.log(np.pi / 2)
        left = special.log_ndtr(np.maximum(-y, 0.0)) + np.minimum(y, 0.0) ** 2 / 2 + _HALF_LOG_2PI
    return np.asarray(np.where(y > 0, right, left))


def _mills_decay(y: Array) -> Array:
    """−(log m)'(y) = 1/m(y) − y > 0; far out by its asymptotic series, where the difference would cancel."""
    far = np.maximum(y, 50.0)
    square = far**-2
    series = (1 - square * (2 - square * (10 - square * (74 - 706 * square)))) / far
    return np.where(y > 50, series, np.exp(-_log_mills(np.minimum(y, 50.0))) - y)


def _rounded_down_log(target: Array) -> Array:
    """The log of δ less what rounding may add to a computed log δ, so that roots err to the safe side."""
    return np.asarray(np.log(target) * (1 + 1e-14) - 1e-15)


def _bisect(enough: Any, low: Array, high: Array) -> tuple[Array, Array]:
    """Bracket of the point from which `enough` holds; it holds at `high`, and may hold at `low` already."""
    high = np.where(enough(low), low, high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if ((middle == low) | (middle == high)).all():  # no number is left between the two
            break
        good = enough(middle)
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return low, high
