"""S1's estimator and accounting as printed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesdp.divergence import sgm
from bayesdp.estimate import METHODS
from bayesdp.experiments.bayesian_dp import as_printed


def test_estimator_is_the_papers() -> None:
    """I-3: the eight distances; Hölder with T = 100 and γ = 1e-15 has the total 4.68083068118943."""
    distances = np.array([0.10, 0.25, 0.40, 0.55, 0.70, 0.85, 1.00, 0.30])
    costs = sgm.cost(distances, np.array([9.0]), sampling_rate=0.01)[:, 0]
    for steps, failure in ((1, 1e-15), (100, 1e-15), (1, as_printed.FAILURE)):
        logs = steps * costs
        y = np.exp(logs)
        t = {1e-15: 279.12799927928}.get(failure) or _student(failure, 7)
        expected = math.log(y.mean() + t * y.std() / math.sqrt(7)) / steps
        if failure == 1e-15 and steps == 100:
            assert steps * expected == pytest.approx(4.68083068118943, rel=1e-12)
        if failure == as_printed.FAILURE:
            found = as_printed.bayesian_cost(distances, 1.0, sampling_rate=0.01, lam=8)
            assert found == pytest.approx(expected, rel=1e-9)
    assert "heuristic" in METHODS["student-t"].assumption


def test_failure_is_the_float_spacing_of_the_public_code() -> None:
    assert as_printed.FAILURE == 1 - (1 - 1e-16)


def _student(failure: float, freedom: int) -> float:
    from scipy import stats

    return float(stats.t.isf(failure, freedom))
