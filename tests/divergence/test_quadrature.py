"""The adaptive rule and the cancellation-free functions, each against an independent value."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.divergence import quadrature, stable


def test_rules_are_exact_for_polynomials():
    for degree in range(0, 23, 2):
        assert quadrature.KRONROD @ quadrature.NODES**degree == pytest.approx(2 / (degree + 1), rel=1e-14)
    for degree in range(0, 14, 2):
        assert quadrature.GAUSS @ quadrature.NODES**degree == pytest.approx(2 / (degree + 1), rel=1e-14)
    assert pytest.approx(2 / 15, rel=1e-9) != quadrature.GAUSS @ quadrature.NODES**14


def test_many_gaussian_peaks_at_once():
    centre, width = np.array([0.0, 1e3, -1e6, 5.0]), np.array([1.0, 1e-3, 1e-2, 1e-5])
    height = np.array([0.0, 1e5, -1e9, 700.0])

    def log_f(x, i):
        return height[i, None] - ((x - centre[i, None]) / width[i, None]) ** 2 / 2

    edges = quadrature.graded_edges(centre[:, None], centre - 1e6, centre + 1e5, width)
    assert edges.shape[0] == 4
    assert (np.diff(edges, axis=1) >= 0).all()
    got = quadrature.log_integral(log_f, edges) - height
    exact = np.log(width * np.sqrt(2 * np.pi))
    assert np.abs(got - exact) == pytest.approx(0, abs=1e-9 + 1e-15 * 1e9)
    assert got[[0, 3]] == pytest.approx(exact[[0, 3]], abs=1e-10)


def test_kinks_and_zeros_are_refined():
    edges = np.array([[-1.0, 0.123, 4.0]])

    def kinked(x, i):
        with np.errstate(divide="ignore"):
            return np.log(np.abs(x - 1 / 3) ** 1.5)

    exact = ((4 / 3) ** 2.5 + (11 / 3) ** 2.5) / 2.5
    assert quadrature.log_integral(kinked, edges)[0] == pytest.approx(np.log(exact), rel=1e-9)
    nothing = quadrature.log_integral(lambda x, i: np.full(x.shape, -np.inf), edges)
    assert nothing[0] == -np.inf


tiny = st.floats(1e-30, 0.999)


@given(tiny | tiny.map(lambda v: -v) | st.floats(1, 50), tiny | tiny.map(lambda v: -20 * v) | st.floats(1, 20))
def test_small_differences_keep_their_digits(v, w):
    with mp.workdps(80):
        log_gap, exp_gap = mp.log1p(mp.mpf(v)) - mp.mpf(v), mp.expm1(mp.mpf(w)) - mp.mpf(w)
    assert float(stable.log1p_minus(np.float64(v))) == pytest.approx(float(log_gap), rel=1e-13, abs=1e-300)
    assert float(stable.expm1_minus(np.float64(w))) == pytest.approx(float(exp_gap), rel=1e-13, abs=1e-300)


def test_log_mean_exp():
    with np.errstate(divide="ignore"):
        log_w = np.log([0.25, 0.75, 0.0])
    got = stable.log_mean_exp(np.array([[1e-18, 2e-18, np.inf], [1.0, 2.0, 0.0], [1e12, 0, 0]]), log_w)
    assert got == pytest.approx([1.75e-18, np.log(0.25 * np.e + 0.75 * np.e**2), 1e12 + np.log(0.25)], rel=1e-14)
    assert stable.log_mean_exp(np.array([np.inf, 0.0, 0.0]), log_w) == np.inf
    assert stable.log_mean_exp(np.zeros(3), log_w) == 0
