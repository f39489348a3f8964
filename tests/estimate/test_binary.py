"""The share of ones: the number of C9, exact binomial oracles, bad input."""

from __future__ import annotations

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesdp.errors import InputError
from bayesdp.estimate import beta_upper, clopper_pearson_upper

failures = st.sampled_from([0.5, 0.05, 1e-6, 1e-15])


def test_the_number_of_c9():
    assert stats.beta.sf(0.01, 1, 101) == pytest.approx(0.3623720178604967, rel=1e-14)
    assert beta_upper(0, 100, 0.3623720178604967) == pytest.approx(0.01, rel=1e-13)


@pytest.mark.parametrize("failure", [0.05, 1e-6, 1e-15])
def test_no_ones(failure):
    assert beta_upper(0, 100, failure) == pytest.approx(-mp.expm1(mp.log(failure) / 101), rel=1e-12)
    assert clopper_pearson_upper(0, 100, failure) == pytest.approx(-mp.expm1(mp.log(failure) / 100), rel=1e-12)


@given(st.integers(0, 60), st.integers(0, 60), failures)
def test_against_the_incomplete_beta_function(ones, zeros, failure):
    limit = beta_upper(ones, zeros, failure)
    with mp.workdps(40):
        below, above = mp.mpf(limit) * (1 - mp.mpf("1e-13")), mp.mpf(limit) * (1 + mp.mpf("1e-13"))
        assert mp.betainc(ones + 1, zeros + 1, below, 1, regularized=True) > failure
        assert above >= 1 or mp.betainc(ones + 1, zeros + 1, above, 1, regularized=True) < failure


@given(st.integers(0, 60), st.integers(1, 60), failures)
def test_clopper_pearson_is_the_exact_binomial_limit(ones, zeros, failure):
    limit = clopper_pearson_upper(ones, ones + zeros, failure)
    assert stats.binom.cdf(ones, ones + zeros, limit * (1 - 1e-12)) > failure
    assert stats.binom.cdf(ones, ones + zeros, min(limit * (1 + 1e-12), 1.0)) < failure
    interval = stats.binomtest(ones, ones + zeros, alternative="less").proportion_ci(0.95, method="exact")
    assert clopper_pearson_upper(ones, ones + zeros, 0.05) == pytest.approx(interval.high, rel=1e-9)


@given(st.integers(0, 200), st.integers(1, 200), failures)
def test_the_confidence_limit_is_above_the_bayesian_one_and_the_share(ones, zeros, failure):
    confident = clopper_pearson_upper(ones, ones + zeros, failure)
    assert beta_upper(ones, zeros, failure) <= confident <= 1
    if failure <= 0.05:
        assert confident > ones / (ones + zeros)


def test_all_ones():
    assert clopper_pearson_upper(7, 7, 0.05) == 1.0
    assert beta_upper(7, 0, 0.05) == pytest.approx(0.95 ** (1 / 8), rel=1e-12)


@pytest.mark.parametrize(("trials", "p"), [(28, 0.01), (50, 0.3)])
def test_exact_failure_rate(trials, p):
    for failure in (0.2, 0.05, 1e-3):
        low = [k for k in range(trials + 1) if clopper_pearson_upper(k, trials, failure) < p]
        assert sum(stats.binom.pmf(k, trials, p) for k in low) <= failure


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: beta_upper(-1, 3, 0.05), "ones=-1"),
        (lambda: beta_upper(1, 0.5, 0.05), "zeros=0.5"),
        (lambda: beta_upper(1, 3, 0), "failure=0"),
        (lambda: clopper_pearson_upper(4, 3, 0.05), "ones=4"),
        (lambda: clopper_pearson_upper(0, 0, 0.05), "trials=0"),
        (lambda: clopper_pearson_upper(1, 3, 1.0), "failure=1.0"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()
