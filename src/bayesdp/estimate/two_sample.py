"""Do two samples come from one law? Permutation tests: exact whatever the law is, if the two are exchangeable.

    p = (1 + number of permutations with a statistic as large) / (1 + permutations)           Pr[p ≤ α] ≤ α

means     |mean of one − mean of the other|
kernel    MMD² = |mean embedding of one − that of the other|², Gaussian kernel of the median distance (Gretton et al.
          2012, "A kernel two-sample test"): it sees any difference of the laws, given enough records
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.errors import Array, array, refuse

PERMUTATIONS = 999
MOST = {"means": 2000, "kernel": 400}
"""Records of each sample that are compared: as many are drawn where there are more."""


def mean_test(one: Any, other: Any, seed: int = 0) -> float:
    """The p-value of equal means. Bad input: fewer than two numbers on a side, or one that is not finite."""
    values, first = _joined(one, other, MOST["means"], seed)
    return _permuted(values - values.mean(), None, first, seed)


def kernel_test(one: Any, other: Any, seed: int = 0) -> float:
    """The p-value of equal laws. Bad input: as for `mean_test`."""
    values, first = _joined(one, other, MOST["kernel"], seed)
    apart = np.abs(values[:, None] - values[None])
    width = float(np.median(apart[np.triu_indices(len(values), 1)])) or float(apart.max()) or 1.0
    return _permuted(values, np.exp(-((apart / width) ** 2) / 2), first, seed)


def _joined(one: Any, other: Any, most: int, seed: int) -> tuple[Array, int]:
    """Both sides in one, and how many are of the first."""
    rng = np.random.default_rng(seed)
    sides = [array(name, side, ndim=1) for name, side in (("one", one), ("other", other))]
    if min(map(len, sides)) < 2:
        raise refuse("one", min(map(len, sides)), "with at least two numbers on each side")
    kept = [side if len(side) <= most else rng.choice(side, most, replace=False) for side in sides]
    return np.concatenate(kept), len(kept[0])


def _permuted(values: Array, kernel: Array | None, first: int, seed: int) -> float:
    """The p-value of wᵀ K w, w = 1/n on one side and −1/m on the other: their squared distance; K = v vᵀ for means."""
    rng, size = np.random.default_rng(seed), len(values)
    weights = np.where(np.arange(size) < first, 1 / first, -1 / (size - first))
    drawn = np.stack([weights, *(rng.permutation(weights) for _ in range(PERMUTATIONS))])
    found = (drawn @ values) ** 2 if kernel is None else np.einsum("pi,pi->p", drawn @ kernel, drawn)
    # Rounding must not make one that is as large look smaller, also where all are zero.
    rounding = 1e-12 * (float(np.max(values**2)) if kernel is None else 1.0)
    return float(np.mean(found >= found[0] * (1 - 1e-9) - rounding))
