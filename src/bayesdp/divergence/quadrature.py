"""Integrals of non-negative functions in log space, many at once, refined until they are right.

A divergence that has no closed form is an integral whose value may be e^(10^9) or 10^-20. Both are kept
by working with logs only and by integrating non-negative functions only: nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array

LogFunction = Callable[[Array, npt.NDArray[np.intp]], Array]
"""`f(x, problem)`: log of the integrand at `x` (panels, nodes) for the problem index of each panel."""

_HALF_NODES = np.array(
    [
        0.991455371120812639206854697526329,
        0.949107912342758524526189684047851,
        0.864864423359769072789712788640926,
        0.741531185599394439863864773280788,
        0.586087235467691130294144838258730,
        0.405845151377397166906606412076961,
        0.207784955007898467600689403773245,
        0.0,
    ]
)
_HALF_KRONROD = np.array(
    [
        0.022935322010529224963732008058970,
        0.063092092629978553290700663189204,
        0.104790010322250183839876322541518,
        0.140653259715525918745189590510238,
        0.169004726639267902826583426598550,
        0.190350578064785409913256402421014,
        0.204432940075298892414161999234649,
        0.209482141084727828012999174891714,
    ]
)
_HALF_GAUSS = np.zeros(8)
_HALF_GAUSS[1::2] = [
    0.129484966168869693270611432679082,
    0.279705391489276667901467771423780,
    0.381830050505118944950369775488975,
    0.417959183673469387755102040816327,
]
NODES: Array = np.concatenate([-_HALF_NODES, _HALF_NODES[-2::-1]])
"""The 15 Gauss-Kronrod nodes on [-1, 1]."""
KRONROD: Array = np.concatenate([_HALF_KRONROD, _HALF_KRONROD[-2::-1]])
"""Their weights (exact to degree 22)."""
GAUSS: Array = np.concatenate([_HALF_GAUSS, _HALF_GAUSS[-2::-1]])
"""The weights of the embedded 7-point Gauss rule, whose disagreement with `KRONROD` is the error estimate."""

_NEGLIGIBLE = 46.0  # a panel e^-46 = 1e-20 below the largest one is not refined further
_AGREE = 1e-9  # Gauss and Kronrod agreeing to 1e-9 means that Kronrod is right to about 1e-15
_ROUNDING = 2e-15  # a log of size L is known to about L times this, so no closer agreement can be asked for
_NOISE = 1e-4
_LEVELS = 60


def graded_edges(centres: Array, low: Array, high: Array, scale: Array) -> Array:
    """Panel edges (problems, edges) on [low, high], growing geometrically (ratio 4) from each centre.

    `centres` is (problems, c): where the integrand may have a feature; `scale` (problems,) is the width of
    its narrowest one. Whatever lies near a centre is then seen at its own scale.
    """
    levels = int(np.ceil(np.log(np.max((high - low) / scale)) / np.log(4.0))) + 1
    steps = scale[:, None] * 4.0 ** np.arange(max(levels, 1))
    offsets = np.concatenate([-steps, np.zeros((len(scale), 1)), steps], axis=1)
    edges = (centres[:, :, None] + offsets[:, None, :]).reshape(len(scale), -1)
    edges = np.concatenate([edges, low[:, None], high[:, None]], axis=1)
    return np.sort(np.clip(edges, low[:, None], high[:, None]), axis=1)


def log_integral(log_f: LogFunction, edges: Array) -> Array:
    """The log of ∫ e^(log_f(x)) dx over [edges[i, 0], edges[i, -1]], for every problem i at once.

    Adaptive: each panel between two neighbouring edges is halved until the 7-point Gauss and the 15-point
    Kronrod values agree to 1e-9 (the second is then good to about 1e-15), or it is negligible beside the
    largest panel of its problem. What cannot be settled is rounded up by the disagreement. −inf for a
    function that vanishes. `log_f` may return −inf, never NaN.
    """
    problems = len(edges)
    owner, at = np.nonzero(np.diff(edges, axis=1) > 0)
    low, high = edges[owner, at], edges[owner, at + 1]
    before = np.full(len(owner), np.inf)
    peak = np.full(problems, -np.inf)
    done: list[tuple[npt.NDArray[np.intp], Array]] = []
    for level in range(_LEVELS):
        value, gap, size = _panels(log_f, low, high, owner)
        np.maximum.at(peak, owner, value)
        right = (gap <= _AGREE + _ROUNDING * size) | (value < peak[owner] - _NEGLIGIBLE)
        # Halving divides the gap of a smooth function by thousands; where it does not, the gap is rounding.
        stuck = ~right & ((gap < _NOISE) & (gap > before / 2) | (level == _LEVELS - 1))
        settled = right | stuck
        done.append((owner[settled], np.where(stuck, value + np.log1p(gap), value)[settled]))
        low, high, owner, before = low[~settled], high[~settled], owner[~settled], gap[~settled]
        if not len(owner):
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        owner, before = np.concatenate([owner, owner]), np.concatenate([before, before])
    owner, value = np.concatenate([o for o, _ in done]), np.concatenate([v for _, v in done])
    finite = np.where(np.isfinite(peak), peak, 0.0)
    total = np.bincount(owner, np.exp(value - finite[owner]), minlength=problems)
    with np.errstate(divide="ignore"):
        return np.asarray(finite + np.log(total))


def _panels(log_f: LogFunction, low: Array, high: Array, owner: npt.NDArray[np.intp]) -> tuple[Array, Array, Array]:
    """Per panel: log of the Kronrod value, relative gap to the Gauss value, largest |log_f| that counts."""
    half = (high - low) / 2
    logs = np.concatenate(
        [log_f(((low + high) / 2)[part, None] + half[part, None] * NODES, owner[part]) for part in _chunks(len(low))]
    )
    top = logs.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    shares = np.exp(logs - top[:, None])
    kronrod, gauss = shares @ KRONROD, shares @ GAUSS
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(kronrod > 0, np.abs(kronrod - gauss) / kronrod, 0.0)
        return top + np.log(half * kronrod), gap, np.abs(top)


def _chunks(count: int, size: int = 1 << 15) -> list[slice]:
    return [slice(start, start + size) for start in range(0, max(count, 1), size)]
