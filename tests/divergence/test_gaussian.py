"""Two Gaussians: B2, B3; vectors I-6; M2."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.divergence import gaussian
from bayesdp.errors import InputError


def divergence(mean0, var0, mean1, var1, order):
    return float(gaussian.unequal_cost([mean0], [var0], [mean1], [var1], order)) / (order - 1)


def test_vectors():
    # I-6
    assert divergence(0, 1, 0.5, 1.5, 2) == pytest.approx(0.183891517828192, rel=1e-13)
    assert divergence(0, 1.5, 0.5, 1, 2) == pytest.approx(0.64384103622589, rel=1e-13)
    assert divergence(0, 1, 0.1, 1.05, 9) == pytest.approx(0.035256227826896, rel=1e-13)
    assert divergence(0.1, 1.05, 0, 1, 9) == pytest.approx(0.0825315194006584, rel=1e-13)
    assert divergence(0, 2, 0, 1, 2) == np.inf
    assert divergence(0, 1.2, 0, 1, 9) == np.inf


def test_diagonal_vectors_both_ways():
    first = np.array([0.3, -1.1]), np.array([0.20, 0.15]) ** 2
    second = np.array([0.31, -1.12]), np.array([0.205, 0.148]) ** 2
    orders = np.array([2, 9, 33])
    forward = gaussian.unequal_cost(*first, *second, orders) / (orders - 1)
    backward = gaussian.unequal_cost(*second, *first, orders) / (orders - 1)
    assert forward == pytest.approx([0.0225750351166028, 0.11900509911358, 2.37461074554281], rel=1e-12)
    assert backward == pytest.approx([0.0215863716516364, 0.0940866208219028, np.inf], rel=1e-12)


def printed(mean0, var0, mean1, var1, order):
    """B3 as printed, in 50 digits."""
    with mp.workdps(50):
        m0, v0, m1, v1, a = map(mp.mpf, (mean0, var0, mean1, var1, order))
        v = a * v1 + (1 - a) * v0
        if v <= 0:
            return mp.inf
        return (a - 1) * a * (m0 - m1) ** 2 / (2 * v) - mp.log(v / (v0 ** (1 - a) * v1**a)) / 2


@given(st.floats(-5, 5), st.floats(1e-3, 1e3), st.floats(-5, 5), st.floats(1e-3, 1e3), st.floats(1.001, 1024))
def test_agrees_with_fifty_digits_and_its_domain(mean0, var0, mean1, var1, order):
    reference = printed(mean0, var0, mean1, var1, order)
    got = float(gaussian.unequal_cost([mean0], [var0], [mean1], [var1], order))
    edge = abs(1 + (order - 1) * (1 - var0 / var1))
    if edge > 1e-9 * order * (1 + var0 / var1):
        assert got == pytest.approx(float(reference), rel=1e-6 if edge < 1e-3 else 1e-10)


def test_nearly_equal_variances_keep_their_digits():
    got = float(gaussian.unequal_cost([0], [1 + 2.0**-30], [0], [1], 3))
    with mp.workdps(60):
        reference = printed(0, mp.mpf(1) + mp.mpf(2) ** -30, 0, 1, 3)
    assert got == pytest.approx(float(reference), rel=1e-12)
    assert got < 1e-17


@given(st.floats(0, 1e3), st.lists(st.floats(1.001, 1024), min_size=1, max_size=4))
def test_equal_variances_reduce_to_the_closed_form(shift, orders):
    # M2
    whole = gaussian.cost(shift, orders)
    assert gaussian.unequal_cost([0.0], [4.0], [2 * shift], [4.0], orders) == pytest.approx(whole, rel=1e-12)
    assert np.isfinite(whole).all()


def test_full_covariances_are_the_diagonal_case_in_another_basis():
    rng = np.random.default_rng(0)
    orders = np.array([1.5, 4, 30])
    for _ in range(20):
        d = 4
        basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
        stretch = basis * np.exp(rng.normal(size=d))
        var0, var1 = np.exp(rng.normal(size=(2, d)) * 0.05)
        m0, m1 = rng.normal(size=(2, d))
        cov0, cov1 = stretch @ np.diag(var0) @ stretch.T, stretch @ np.diag(var1) @ stretch.T
        cov0, cov1 = (cov0 + cov0.T) / 2, (cov1 + cov1.T) / 2
        full = gaussian.full_cost(stretch @ m0, cov0, stretch @ m1, cov1, orders)
        assert full == pytest.approx(gaussian.unequal_cost(m0, var0, m1, var1, orders), rel=1e-9)


def test_full_covariances_batch_and_far_apart():
    cov0 = np.stack([np.diag([1e-8, 1.0]), np.diag([2.0, 1.0])])
    cov1 = np.eye(2)
    got = gaussian.full_cost(np.zeros((2, 2)), cov0, np.zeros(2), cov1, [2, 3])
    assert got.shape == (2, 2)
    assert got[0] == pytest.approx(gaussian.unequal_cost([0, 0], [1e-8, 1], [0, 0], [1, 1], [2, 3]), rel=1e-9)
    assert (got[1] == np.inf).all()


def test_variances_may_differ_by_any_factor():
    got = gaussian.unequal_cost([[0.0]] * 3, [[1e-300], [1e-20], [1e300]], [0.0], [1.0], 2)
    exact = [-np.log(2) / 2 + 150 * np.log(10), -np.log(2) / 2 + 10 * np.log(10), np.inf]
    assert got == pytest.approx(exact, rel=1e-12)


def test_costs_add_over_coordinates_and_broadcast():
    rng = np.random.default_rng(1)
    m0, m1 = rng.normal(size=(2, 5, 3))
    v0, v1 = np.exp(0.1 * rng.normal(size=(2, 5, 3)))
    whole = gaussian.unequal_cost(m0, v0, m1, v1, [2, 5])
    parts = sum(gaussian.unequal_cost(m0[:, [i]], v0[:, [i]], m1[:, [i]], v1[:, [i]], [2, 5]) for i in range(3))
    assert whole.shape == (5, 2)
    assert whole == pytest.approx(parts, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: gaussian.cost(-1, 2), "shift"),
        (lambda: gaussian.cost(1, 1), "orders"),
        (lambda: gaussian.unequal_cost([0], [0], [0], [1], 2), "var0"),
        (lambda: gaussian.unequal_cost([np.nan], [1], [0], [1], 2), "mean0"),
        (
            lambda: gaussian.full_cost([0, 0], [[1, 2], [2, 1]], [0, 0], np.eye(2), 2),
            "cov0.*positive definite",
        ),
        (lambda: gaussian.full_cost([0, 0], [[1, 1], [0, 1]], [0, 0], np.eye(2), 2), "cov0.*symmetric"),
        (lambda: gaussian.full_cost([0, 0, 0], np.eye(2), [0, 0], np.eye(2), 2), "one d"),
        (lambda: gaussian.full_cost([0, 0], np.ones(2), [0, 0], np.eye(2), 2), "cov0"),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(InputError, match=word):
        call()
