"""An upper confidence bound on E[Y] from samples of log Y: four bounds that hold (H9), Student-t (C10), plug-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array, array, number, one_of, probability, refuse
from bayesdp.estimate.betting import betting
from bayesdp.estimate.bounded import bernstein, hoeffding, kl
from bayesdp.estimate.student_t import student_t
from bayesdp.standing import Caveat, Standing

Bound = Callable[[Array, float], Array]
"""(samples on the last axis, failure) → an upper bound on their mean."""


@dataclass(frozen=True)
class Method:
    """One way from samples to a mean.

    `bound(x, failure)` takes samples on the last axis: in [0, 1] when `distribution_free`, else on any
    scale (it then commutes with shifts and scalings). `assumption` is the sentence that a guarantee
    prints, `standing` what a guarantee that rests on it is.
    """

    bound: Bound
    distribution_free: bool
    assumption: str
    least_samples: int = 1
    standing: Standing = "proved"

    @property
    def words(self) -> str | Caveat:
        """The assumption, as a caveat where the method is not proved."""
        return self.assumption if self.standing == "proved" else Caveat(self.standing, self.assumption)

    @property
    def needs_range(self) -> bool:
        """No bound on a mean holds for every law without a range: a rare enough value escapes any sample."""
        return self.distribution_free


def _sample_mean(x: Array, failure: float) -> Array:  # noqa: ARG001 - one signature for all methods
    return np.asarray(x.mean(axis=-1))


_FREE = "the samples are independent draws from the population (C15) and never exceed the worst case"

METHODS: dict[str, Method] = {
    "betting": Method(betting, True, f"{_FREE}, and their order does not depend on their values (betting, H9)"),
    "bernstein": Method(bernstein, True, f"{_FREE} (empirical Bernstein, H9)", least_samples=2),
    "kl": Method(kl, True, f"{_FREE} (Chernoff-KL, H9)"),
    "hoeffding": Method(hoeffding, True, f"{_FREE} (Hoeffding, H9)"),
    "student-t": Method(
        student_t,
        False,
        "heuristic: Student-t holds for Gaussian samples; with rare large costs its failure probability is"
        " not the stated one (C10, ERR 4)",
        least_samples=2,
        standing="heuristic",
    ),
    "plug-in": Method(
        _sample_mean,
        False,
        "the sample mean stands for the mean of the population: an estimate without confidence, not a bound",
        standing="estimate",
    ),
}
"""The methods of `upper_mean` by name; the first is as a rule the tightest of those that hold."""


def upper_mean(
    log_values: npt.ArrayLike,
    *,
    method: str,
    failure: float,
    log_high: npt.ArrayLike | None = None,
    log_low: float = 0.0,
) -> Array:
    """Log U with Pr[U < E[Y]] ≤ γ, from samples Y = exp(log_values), exp(log_low) ≤ Y ≤ exp(log_high).

    The bound is that of `method` (`METHODS`; H9 and C10), in log space throughout, raised to log mean(Y)
    and lowered to the worst case `log_high` where that is given (C11).

    Args:
        log_values: samples on axis 0, further axes (orders, steps) apart from each other. For betting, in
            an order that does not depend on the values. They must be independent draws: m pairs are 2m
            different records, not all pairs of a few (C15).
        method: one of `METHODS`. The first four hold for every law on the range and need `log_high`;
            "student-t" is a heuristic (ERR 4) and "plug-in" an estimate.
        failure: γ, for each entry of the answer by itself. K orders at T steps fail together with
            probability at most T·K·γ (C12).
        log_high: the worst case of log Y, one for all or one for each trailing entry; may be infinite.
        log_low: the least log Y; costs are not negative.

    Returns:
        One bound for each trailing entry: shape `log_values.shape[1:]`. A sample that is +inf gives +inf,
        or the worst case.

    Raises:
        InputError: for an unknown method, γ outside (0, 1), a missing or too small `log_high`, too few
            samples, NaN, or a finite sample outside the range by more than rounding (1e-9 of the limit,
            or 1e-12).
    """
    chosen = METHODS[one_of("method", method, METHODS)]
    failure = probability("failure", failure)
    low = number("log_low", log_low)
    logs = array("log_values", log_values, infinite=True)
    if logs.ndim == 0 or len(logs) < chosen.least_samples:
        raise refuse(
            "log_values",
            logs.shape,
            f"with at least {chosen.least_samples} sample(s) on axis 0 for method={method!r}",
            got=f"shape {logs.shape}",
        )
    if log_high is None and chosen.needs_range:
        raise refuse(
            "log_high",
            None,
            f"to be given for method={method!r}",
            "A bound that holds for every law needs the worst case: give a cap or a clip norm, or use"
            ' method="student-t" knowing that it is a heuristic.',
        )
    caps = _worst_case(log_high, low, logs.shape[1:]).reshape(-1)
    rows = logs.reshape(len(logs), -1).T.copy()  # samples last: no row's sum depends on its neighbours
    _check_range(rows, low, caps, logs.shape)

    # The other rows answer with their cap: an infinite sample, an infinite range, or a range of one point.
    open_rows = np.isfinite(rows).all(axis=-1)
    if chosen.needs_range:
        open_rows &= np.isfinite(caps) & (caps > low)
    answer = np.full(len(rows), np.inf)
    if open_rows.any():
        limit = caps[open_rows]
        samples = np.clip(rows[open_rows], low, limit[:, None])
        if chosen.needs_range:
            bound = _from_range(chosen.bound, samples, failure, low, limit)
        else:
            bound = _from_top(chosen.bound, samples, failure)
        answer[open_rows] = np.maximum(bound, _from_top(_sample_mean, samples, failure))
    return np.asarray(np.minimum(answer, caps).reshape(logs.shape[1:]), dtype=np.float64)


def _from_range(bound: Bound, samples: Array, failure: float, low: float, caps: Array) -> Array:
    """The log of the bound on E[Y] from that on E[X], X = (Y − a)/(b − a), a = exp(low), b = exp(cap)."""
    width = caps - low
    x = np.exp(samples - caps[:, None]) * (np.expm1(low - samples) / np.expm1(-width)[:, None])
    mean = np.minimum(bound(x, failure), 1.0)
    # log((1 − mean)·a + mean·b): from a while the range is short (tiny costs keep their digits), else from b.
    short = low + np.log1p(mean * np.expm1(np.minimum(width, 1.0)))
    long = caps + np.log(mean + (1 - mean) * np.exp(-width))
    return np.asarray(np.where(width <= 1.0, short, long), dtype=np.float64)


def _from_top(bound: Bound, samples: Array, failure: float) -> Array:
    """The log of the bound on E[Y] from that on E[Y/top − 1], top the largest sample."""
    top = samples.max(axis=-1)
    return np.asarray(top + np.log1p(bound(np.expm1(samples - top[:, None]), failure)), dtype=np.float64)


def _rounding(limit: Array | float) -> Array:
    """How far a computed log value may lie beyond the limit: both come from sums of many terms near 1."""
    return np.asarray(1e-9 * np.abs(limit) + 1e-12, dtype=np.float64)


def _worst_case(log_high: npt.ArrayLike | None, low: float, shape: tuple[int, ...]) -> Array:
    """`log_high` in the shape of the answer, +inf where there is none."""
    if log_high is None:
        return np.full(shape, np.inf)
    high = array("log_high", log_high, least=low - float(_rounding(low)), infinite=True)
    try:
        return np.broadcast_to(np.maximum(high, low), shape)
    except ValueError:
        raise refuse(
            "log_high", high.shape, f"to be one number or to fit shape {shape}", got=f"shape {high.shape}"
        ) from None


def _check_range(rows: Array, low: float, caps: Array, shape: tuple[int, ...]) -> None:
    limit = caps[:, None]
    outside = (rows < low - _rounding(low)) | (np.isfinite(rows) & (rows > limit + _rounding(limit)))
    if not outside.any():
        return
    column, sample = np.unravel_index(int(np.argmax(outside)), outside.shape)
    where = (int(sample), *map(int, np.unravel_index(column, shape[1:])))
    raise refuse(
        "log_values",
        float(rows[column, sample]),
        f"between log_low={low:g} and log_high={caps[column]:g}",
        got=f"log_values[{', '.join(map(str, where))}]={float(rows[column, sample])!r}",
    )
