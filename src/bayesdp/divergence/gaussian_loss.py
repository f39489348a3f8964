"""The ε of samples of one Gaussian against another from the law of their loss, equal covariances or not (B16).

    L = Σ_j log p(w_j)/q(w_j), w_j ~ P,    M(s) = E e^{sL} = e^{n·cost(s)},  cost(s) = s·D_{s+1}(P‖Q) by B3, s complex

    δ(ε) = E(1 − e^{ε−L})₊ = 1/2π ∫ G(t) e^{−(c+it)ε} dt,    G(t) = M(c+it)/((c+it)(c+1+it)),   any c > 0, M(c) < ∞

because ∫ (1 − e^{−x})₊ e^{−sx} dx = 1/(s(s+1)). It is summed with steps h, and the sum is an upper bound:

- by Poisson's formula h/2π Σ_k G(kh) e^{−(c+ikh)ε} = Σ_j e^{2πcj/h} δ(ε + 2πj/h): δ(ε), and terms that are not
  negative. h only decides how much they add.
- |M(c+it)| falls in |t|: a coordinate's factor is |1 + sx|^{−1/2}, times an exponential of a constant plus
  d²(1−x)/(2x²) · (1+cx)/|1+sx|² (for x = 0 of a constant less d²t²/2), and |1+sx|² = (1+cx)² + t²x². So what is left
  out beyond T = Kh is at most e^{−cε} |M(c+iT)|/(πT), which is added.
- rounding, bounded by the sizes of all terms, is added as well.

c is the best Rényi order less 1, where M(c)e^{−cε} is of the size of δ: nothing cancels. The Rényi bound is where the
search starts and what is left where the sum says less; both bound one number, so that the smaller one costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import convert, errors
from bayesdp.divergence.gaussian import Standard
from bayesdp.errors import Array

_ALIAS, _TAIL = math.log(1e-8), math.log(1e-5)
"""Of δ: what repeated periods and the left-out tail should add to it at most. A tail falls slowly for a single sample
of few unequal coordinates, and a 1e-5th of δ is a millionth of ε."""

_NODES = 2 ** np.arange(3, 11)
_BLOCK = 2**19
_HALVINGS = 36
Places = npt.NDArray[np.int64]

_UNIT = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class GaussianPairs:
    """Pairs in standard coordinates (`gaussian.Standard`): `square`, `excess` (pairs, d), `shrink` (pairs,).

    `record` (pairs,) says whose pair each is: a record's ε is the largest of its pairs'. `square` is infinite for a
    pair of which nothing is known. Bad input: shapes that do not fit, or numbers that no pair has, get `InputError`.
    """

    square: Array
    excess: Array
    shrink: Array
    record: Places

    def __post_init__(self) -> None:
        square = errors.array("square", self.square, least=0, infinite=True, ndim=2)
        excess = errors.array("excess", self.excess, most=1, ndim=2)
        shrink = errors.array("shrink", self.shrink, ndim=1)
        record = errors.array("record", self.record, least=0, ndim=1).astype(np.int64)
        if not (square.shape == excess.shape and shrink.shape == record.shape == square.shape[:1]):
            shapes = f"{square.shape}, {excess.shape}, {shrink.shape} and {record.shape}"
            raise errors.unmet("square", square.shape, "(pairs, d) twice and (pairs,) twice", shapes)
        for name, value in (("square", square), ("excess", excess), ("shrink", shrink), ("record", record)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, *ways: Standard) -> GaussianPairs:
        """Rows i of all `ways`, such as both directions, are pairs of record i."""
        square, excess, shrink = (np.concatenate(part) for part in zip(*ways, strict=True))
        return cls(square, excess, shrink, np.concatenate([np.arange(len(way.shrink)) for way in ways]))

    def chosen(self, rows: Any, owner: Any) -> GaussianPairs:
        """Pairs of the records `rows`, which are those of `owner` now (several may have one)."""
        places = [np.flatnonzero(self.record == row) for row in rows]
        found = np.concatenate(places)
        owners = np.repeat(owner, [len(place) for place in places])
        return GaussianPairs(self.square[found], self.excess[found], self.shrink[found], owners)

    def state(self) -> dict[str, Any]:
        """Everything, as arrays."""
        return {"square": self.square, "excess": self.excess, "shrink": self.shrink, "record": self.record}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> GaussianPairs:
        """What `state` describes; malformed gets `InputError`."""
        return cls(**state)

    def epsilon(self, times: int, delta: float, costs: Array, orders: Array) -> Array:
        """ε at δ of `times` samples for every record, at most that of the weak conversion (B10) of `costs`.

        `costs` (records, orders) are those of one sample, the largest of a record's pairs.
        """
        each = convert.epsilon_per_order(times * costs, orders, delta)
        limit = np.maximum(each.min(axis=1), 0.0)
        # The order must have a finite one above it: what the periods add is judged by both sides.
        last = np.isfinite(each).sum(axis=1) - 1
        best = np.minimum(each.argmin(axis=1), last - 1)
        with np.errstate(invalid="ignore"):
            period = _periods(times * costs, orders - 1, best, limit, delta)
        sound = (limit > 0) & np.isfinite(limit) & (best >= 0) & np.isfinite(period)
        rows = np.flatnonzero(sound[self.record] & np.isfinite(self.square).all(axis=1))
        found = limit[self.record]
        record = self.record[rows]
        found[rows] = self._inverted(rows, times, delta, limit[record], orders[best[record]] - 1, period[record])
        result = np.full(len(limit), -math.inf)
        np.maximum.at(result, self.record, found)
        return np.asarray(np.where(result < 0, limit, np.minimum(limit, result)))

    def _inverted(self, rows: Places, times: int, delta: float, limit: Array, c: Array, period: Array) -> Array:
        """The least ε found for each of the pairs `rows`, at most `limit`."""
        step, result, dim = 2 * math.pi / period, limit.copy(), self.square.shape[1]
        wanted = math.log(delta) + _TAIL + c * limit
        left = np.arange(len(rows))
        for nodes in _NODES:
            enough = np.zeros(len(left), bool)
            for part in _parts(len(left), dim):
                at = left[part]
                far = nodes * step[at]
                size, _ = self._log_moment(rows[at], (c[at] + 1j * far)[:, None])
                enough[part] = times * size.real[:, 0] - np.log(math.pi * far) <= wanted[at]
            now = left if nodes == _NODES[-1] else left[enough]
            for part in _parts(len(now), dim * int(nodes)):
                at = now[part]
                result[at] = self._solved(rows[at], times, delta, limit[at], c[at], step[at], int(nodes))
            left = left[~enough]
        return result

    def _solved(self, rows: Places, times: int, delta: float, limit: Array, c: Array, step: Array, nodes: int) -> Array:
        turns = np.arange(nodes + 1)
        s = c[:, None] + 1j * step[:, None] * turns
        log_moment, error = self._log_moment(rows, s)
        error = 4 * _UNIT * (1 + nodes + times * error + np.abs(s) * limit[:, None])
        height = times * log_moment[:, 0].real
        value = np.exp(times * log_moment - height[:, None]) / (s * (s + 1))
        value *= np.where(turns == 0, 1.0, 2.0) * step[:, None] / (2 * math.pi)
        far = step * nodes
        added = ((error + error[:, :1]) * np.abs(value)).sum(axis=1)
        # |M(c+iT)|/M(c) from the last node, and the rounding of it
        added += np.exp(times * log_moment[:, -1].real - height) * (1 + error[:, -1]) / (math.pi * far)

        def enough(epsilon: Array) -> Array:
            angle = (step * epsilon)[:, None] * turns
            total = (value.real * np.cos(angle) + value.imag * np.sin(angle)).sum(axis=1) + added
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(height - c * epsilon) * total <= delta)

        low, high = np.zeros_like(limit), limit.copy()
        high = np.where(enough(low), low, high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            good = enough(middle)
            low, high = np.where(good, low, middle), np.where(good, middle, high)
        return high

    def _log_moment(self, rows: Places, s: Array) -> tuple[Array, Array]:
        """Compute cost(s) of these pairs for complex s (pairs, nodes), and its rounding error in units of `_UNIT`."""
        square, excess = self.square[rows][:, None, :], self.excess[rows][:, None, :]
        z = s[..., None] * excess
        log = np.log1p(z.real * (2 + z.real) + z.imag**2) / 2 + 1j * np.arctan2(z.imag, 1 + z.real)
        quadratic = (s * (s + 1) / 2)[..., None] * square / (1 + z)
        rest = s * self.shrink[rows, None] / 2
        size = np.abs(quadratic).sum(axis=-1) + (np.abs(log) + np.abs(z)).sum(axis=-1) + np.abs(rest)
        loss = ((1 + np.abs(z)) / np.abs(1 + z)).max(axis=-1) ** 2  # how 1 + z, and its square, magnify rounding
        dim = z.shape[-1]
        return (quadratic - (log - z) / 2).sum(axis=-1) - rest, (dim + 16) * loss * (size + dim)


def _periods(costs: Array, rates: Array, best: Array, limit: Array, delta: float) -> Array:
    """2π/h for each record: there e^{±c·period} δ(ε ± period) is at most e^`_ALIAS` δ, by the costs at other orders."""
    excess = costs - rates * limit[:, None] - math.log(delta) - _ALIAS
    excess = np.column_stack([np.full(len(costs), -math.log(delta) - _ALIAS), excess])  # λ = 0: δ <= 1
    apart = np.concatenate([[0.0], rates]) - rates[best][:, None]
    ratio = np.where(apart == 0, np.inf, excess / np.where(apart == 0, 1.0, np.abs(apart)))
    return np.asarray(
        np.maximum(
            np.where(apart > 0, ratio, np.inf).min(axis=1),
            np.where(apart < 0, ratio, np.inf).min(axis=1),
        )
    )


def _parts(count: int, each: int) -> list[slice]:
    size = max(1, _BLOCK // each)
    return [slice(start, start + size) for start in range(0, count, size)]
