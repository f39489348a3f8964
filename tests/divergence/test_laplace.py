"""Laplace noise against 50-digit arithmetic, quadrature and its two limits."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.divergence import laplace
from bayesdp.errors import InputError


@given(st.floats(1e-12, 1e3), st.floats(1.0001, 1024))
def test_agrees_with_the_printed_formula_in_fifty_digits(shift, order):
    with mp.workdps(60):
        r, a = mp.mpf(shift), mp.mpf(order)
        reference = mp.log(a / (2 * a - 1) * mp.exp((a - 1) * r) + (a - 1) / (2 * a - 1) * mp.exp(-a * r))
    assert float(laplace.cost(shift, order)) == pytest.approx(float(reference), rel=1e-11)


def test_printed_formula_is_the_integral():
    order, shift = mp.mpf("2.5"), mp.mpf("1.3")
    with mp.workdps(30):
        ratio = lambda x: mp.exp(order * (-abs(x - shift)) + (order - 1) * abs(x)) / 2  # noqa: E731
        reference = mp.log(mp.quad(ratio, [-mp.inf, 0, shift, mp.inf]))
    assert float(laplace.cost(1.3, 2.5)) == pytest.approx(float(reference), rel=1e-13)


def test_limits():
    assert laplace.cost(0.0, [2, 1024]) == pytest.approx([0, 0])
    # pure DP: D_α <= r, reached as α grows
    assert laplace.cost(3.0, 1e9) / 1e9 == pytest.approx(3.0, rel=1e-8)
    assert laplace.cost([1e3], [1024.0])[0, 0] == pytest.approx(1023e3 + np.log(1024 / 2047), rel=1e-14)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=6), st.floats(1.01, 200))
def test_l1_norm_bounds_the_sum_over_coordinates(shifts, order):
    parts = laplace.cost(shifts, order).sum()
    assert laplace.cost(sum(shifts), order) >= parts * (1 - 1e-12)


@pytest.mark.parametrize(("shift", "order", "word"), [(-1, 2, "shift"), (np.inf, 2, "shift"), (1, 1, "orders")])
def test_bad_input_is_refused(shift, order, word):
    with pytest.raises(InputError, match=word):
        laplace.cost(shift, order)
