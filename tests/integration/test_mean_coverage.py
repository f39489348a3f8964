"""How often the bounds on a mean fail: never more than stated for H9, far more for Student-t (M5, ERR 4)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from bayesdp.estimate import METHODS, upper_mean

pytestmark = pytest.mark.simulation

FREE = [name for name, method in METHODS.items() if method.distribution_free]
EXCHANGEABLE = ["bernstein", "kl", "hoeffding", "student-t"]
CAP = 3.0
RUNS = 3000


def two_point_mean(p):
    return math.log1p(p * math.expm1(CAP))


def exact_miss(method, p, m, failure):
    """The probability that the bound is below the mean, Y = e³ with probability p and 1 otherwise."""
    ones = np.arange(m + 1)
    logs = np.where(np.arange(m)[:, None] < ones, CAP, 0.0)
    bounds = upper_mean(logs, method=method, failure=failure, log_high=CAP)
    return float(stats.binom.pmf(ones, m, p)[bounds < two_point_mean(p)].sum())


def allowed(failure):
    """More misses than this in RUNS have probability 1e-6 if the stated failure probability is true."""
    return stats.binom.isf(1e-6, RUNS, failure)


@pytest.mark.parametrize("m", [28, 1000])
@pytest.mark.parametrize("p", [1e-2, 1e-3])
@pytest.mark.parametrize("failure", [0.05, 1e-3])
def test_two_point_laws(p, m, failure):
    for method in EXCHANGEABLE:
        miss = exact_miss(method, p, m, failure)
        assert (miss <= failure) == METHODS[method].distribution_free
    logs = np.where(np.random.default_rng(m).random((m, RUNS)) < p, CAP, 0.0)
    bounds = upper_mean(logs, method="betting", failure=failure, log_high=CAP)
    assert (bounds < two_point_mean(p)).sum() <= allowed(failure)


@pytest.mark.parametrize("failure", [1e-3, 1e-15])
def test_erratum_4(failure):
    """Of 28 samples none is large with probability 0.7547; Student-t then says 0, whatever γ is."""
    assert exact_miss("student-t", 0.01, 28, failure) == pytest.approx(0.99**28, abs=1e-9)
    assert round(0.99**28, 4) == 0.7547
    nothing_seen = np.zeros(28)
    assert upper_mean(nothing_seen, method="student-t", failure=failure) == 0.0
    for method in FREE:
        assert upper_mean(nothing_seen, method=method, failure=failure, log_high=CAP) > two_point_mean(0.01)


@pytest.mark.parametrize("failure", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("p", [0.3, 0.7, 0.95])
def test_all_sequences_of_a_two_point_law(p, failure):
    """The exact failure probability, betting included, by going through all 4096 sequences."""
    ones = np.array(list(itertools.product([0, 1], repeat=12))).T
    weights = p ** ones.sum(axis=0) * (1 - p) ** (1 - ones).sum(axis=0)
    for method in FREE:
        bounds = upper_mean(CAP * ones, method=method, failure=failure, log_high=CAP)
        miss = weights[bounds < two_point_mean(p)].sum()
        assert miss <= failure
        if failure == 0.5 and method in ("betting", "kl"):
            assert miss > 0.02  # the bound is tight enough for this test to be able to fail


@pytest.mark.parametrize("m", [28, 200, 1000])
def test_a_heavy_tailed_law(m):
    """Y = 1 + min(exp(2Z), 1000), Z Gaussian, at a stated failure rate of 0.05."""
    spread, most, failure = 2.0, 1e3, 0.05
    z = math.log(most) / spread
    mean = math.exp(spread**2 / 2) * stats.norm.cdf(z - spread) + most * stats.norm.sf(z)
    draws = np.exp(spread * np.random.default_rng(m).standard_normal((m, RUNS)))
    logs = np.log1p(np.minimum(draws, most))

    def misses(method):
        bounds = upper_mean(logs, method=method, failure=failure, log_high=math.log1p(most))
        return int((bounds < math.log1p(mean)).sum())

    for method in FREE:
        assert misses(method) <= allowed(failure)
    assert misses("student-t") > 1.5 * allowed(failure)


def test_student_t_holds_where_it_may():
    """Nearly Gaussian samples: the heuristic keeps its rate, so its failures above are the law's."""
    y = 100 + np.random.default_rng(0).standard_normal((28, RUNS))
    bounds = upper_mean(np.log(y), method="student-t", failure=0.05)
    misses = (bounds < math.log(100)).sum()
    assert stats.binom.ppf(1e-6, RUNS, 0.05) <= misses <= allowed(0.05)
