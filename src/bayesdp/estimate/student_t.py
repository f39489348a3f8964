"""The estimator of paper S1: a Student-t upper limit for a mean (C10). A heuristic, not a bound (ERR 4)."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from bayesdp.errors import Array


def student_t(x: Array, failure: float) -> Array:
    """M + t·S/√(n−1), t the upper γ-quantile of Student's law with n−1 degrees of freedom (C10).

    M = mean(X), S = √(mean(X²) − M²); zero spread gives M. Right for Gaussian samples only: when a value of
    probability 0.01 carries the mean, 28 samples miss it with probability 0.75 and the answer is then too
    small whatever γ is (ERR 4). Samples are on the last axis.
    """
    n = x.shape[-1]
    quantile = _upper_quantile(failure, n - 1) / math.sqrt(n - 1)
    spread = np.asarray(x.std(axis=-1))
    # The quantile may be infinite; no spread is still no margin.
    margin = np.multiply(quantile, spread, out=np.zeros_like(spread), where=spread > 0)
    return np.asarray(x.mean(axis=-1) + margin)


def _upper_quantile(failure: float, freedom: int) -> float:
    """The t ≥ 0 that Student's law exceeds with probability γ; 0 for γ ≥ 1/2, so that no limit is below M."""
    if failure >= 0.5:
        return 0.0
    # By symmetry from the lower tail: 1 − γ has lost γ when γ is near the spacing of floats. SciPy's is too
    # small, even −inf, for some γ below 1e-150; infinity is then on the safe side.
    quantile = float(special.stdtrit(freedom, failure))
    return -quantile if float(special.stdtr(freedom, quantile)) <= failure * (1 + 1e-9) else math.inf
