"""Replace-one pairs: B14, H10, ERR 9; vectors I-12."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from bayesdp.divergence import gaussian, replace_one, sgm
from bayesdp.errors import InputError


def line(a, b, orders, rate):
    """Known shifts a, b on a line, either sign."""
    return replace_one.vector_cost(abs(a), abs(b), a * b, orders, sampling_rate=rate)


def test_vectors_of_known_shifts():
    # I-12
    pairs = [(3, 2), (2, 1), (1, 0), (0.5, -0.5)]
    order8 = [3.34210751284, 3.31411180661, 0.000893643907606, 0.000403165248383]
    order2 = [0.0124497396285, 0.00291060257542, 0.000171813422075, 0.000100726015286]
    for (a, b), d8, d2 in zip(pairs, order8, order2, strict=True):
        assert line(a, b, [2, 8], 0.01) / [1, 7] == pytest.approx([d2, d8], rel=6e-12)


def test_vectors_of_the_worst_pair():
    # I-12: S2's noise, shifts ±1/(2σ), beside SGM(q, σ)
    rows = [
        (0.05, 1, 0.0100942723663, 0.601268913989),
        (0.05, 2, 0.00249546313704, 0.0031215266423),
        (0.005, 1, 0.000100900098796, 0.000188633712007),
        (0.01, 0.5, 0.00198445452306, 10.7369483589),
    ]
    for rate, sigma, exact, sampled in rows:
        half = 0.5 / sigma
        assert replace_one.cost(half, half, 8, sampling_rate=rate) / 7 == pytest.approx(exact, rel=6e-12)
        assert sgm.cost(1 / sigma, [8], sampling_rate=rate)[0] / 7 == pytest.approx(sampled, rel=6e-12)


def test_conversion_of_the_composed_pair():
    # I-12: q=0.05, sigma=2, T=1000, delta=1e-3
    orders = np.arange(2, 20)
    rho = 1000 * replace_one.cost(0.25, 0.25, orders, sampling_rate=0.05) / (orders - 1)
    eps = rho + np.log1p(-1 / orders) - (np.log(1e-3) + np.log(orders)) / (orders - 1)
    assert eps.min() == pytest.approx(2.66043, abs=5e-6)
    assert orders[eps.argmin()] == 5


def test_pairwise_distance_in_the_add_remove_formula_is_unsound():
    # ERR 9: distance 1 between the records, but they sit at 3 and 2
    exact = line(3, 2, [8], 0.01)[0]
    printed = sgm.cost(1.0, [8], sampling_rate=0.01)[0]
    assert exact / printed == pytest.approx(3740, rel=1e-3)
    assert replace_one.convexity_cost(1.0, [8], sampling_rate=0.01)[0] >= exact


def grid_cost(a, b, order, rate):
    """Trapezoidal rule on log densities: spectrally accurate for these analytic integrands."""
    peaks = [0, order * a, (1 - order) * b, order * a + (1 - order) * b]
    low, high, count = min(peaks) - 20, max(peaks) + 20, 200_000
    x = np.linspace(low, high, count + 1)
    log_p = np.logaddexp(np.log1p(-rate), np.log(rate) + a * x - a**2 / 2)
    log_q = np.logaddexp(np.log1p(-rate), np.log(rate) + b * x - b**2 / 2)
    total = logsumexp(-(x**2) / 2 + order * log_p + (1 - order) * log_q)
    return total + np.log((high - low) / count / np.sqrt(2 * np.pi))


def test_random_lines_agree_with_a_dense_grid():
    rng = np.random.default_rng(3)
    for _ in range(80):
        a, b = rng.choice([-1, 1], 2) * 10 ** rng.uniform(-2, 0.8, 2)
        order = 1 + 10 ** rng.uniform(-1, 2)
        rate = rng.choice([rng.uniform(), 10 ** rng.uniform(-4, 0), 1 - 10 ** rng.uniform(-6, 0)])
        reference = grid_cost(a, b, order, rate)
        got = line(a, b, order, rate)
        assert abs(got - reference) <= 1e-12 * max(1, reference), (a, b, order, rate)


def test_tiny_costs_keep_relative_accuracy():
    rate, a, b, order = 1e-4, 1e-3, 2e-3, 5.5
    with mp.workdps(50):
        x_density = lambda x, m: (1 - mp.mpf(rate)) * mp.npdf(x) + mp.mpf(rate) * mp.npdf(x, m)  # noqa: E731
        integrand = lambda x: x_density(x, a) ** order * x_density(x, -b) ** (1 - mp.mpf(order))  # noqa: E731
        reference = mp.log(mp.quad(integrand, [-20, -8, -4, 0, 4, 8, 20]))
    got = replace_one.cost(a, b, order, sampling_rate=rate)
    assert float(reference) < 1e-11
    assert float(got) == pytest.approx(float(reference), rel=1e-11)


def test_extreme_input_neither_overflows_nor_loses_the_leading_term():
    shifts = np.array([0.0, 1e-150, 1e-8, 1, 30, 1e3])
    orders = [1.0001, 1.5, 64, 1024]
    for rate in [0.0, 1e-12, 0.01, 0.999999, 1.0]:
        costs = replace_one.cost(shifts[:, None], shifts, orders, sampling_rate=rate)
        assert np.isfinite(costs).all()
        assert (costs >= 0).all()
        assert (costs <= gaussian.cost(shifts[:, None] + shifts, orders) * (1 + 1e-9)).all()
    # P^α Q^{1−α} peaks at αA where only q^α of P and (1−q) of Q count
    huge = float(replace_one.cost(1e3, 1e3, 1024, sampling_rate=0.01))
    assert huge == pytest.approx(1024 * 1023 * 1e6 / 2 + 1024 * np.log(0.01) - 1023 * np.log(0.99), rel=1e-12)


@given(st.floats(0, 1), st.floats(0, 5), st.floats(0, 5), st.floats(1.05, 40))
def test_cost_grows_in_both_shifts_and_reduces_to_the_sampled_gaussian(rate, a, b, order):
    value = replace_one.cost(a, b, order, sampling_rate=rate)
    assert replace_one.cost(a * 1.1, b, order, sampling_rate=rate) >= value * (1 - 1e-11)
    assert replace_one.cost(a, b * 1.1, order, sampling_rate=rate) >= value * (1 - 1e-11)
    assert value <= replace_one.convexity_cost(a + b, order, sampling_rate=rate) * (1 + 1e-11)
    only_old = replace_one.cost(a, 0.0, order, sampling_rate=rate)
    assert only_old == pytest.approx(sgm.cost(a, [order], sampling_rate=rate)[0], rel=1e-9, abs=1e-300)
    only_new = replace_one.cost(0.0, b, order, sampling_rate=rate)
    added = sgm.cost(b, [order], sampling_rate=rate, direction="add")[0]
    assert only_new == pytest.approx(added, rel=1e-9, abs=1e-300)


def test_opposite_on_a_line_is_the_worst_pair():
    # H10 on random vectors with norms below A, B
    rng = np.random.default_rng(4)
    for _ in range(40):
        rate, (top_a, top_b) = rng.uniform(0.001, 0.9), rng.uniform(0.1, 3, 2)
        a, b = top_a * rng.uniform(), top_b * rng.uniform()
        inner = a * b * rng.uniform(-1, 1)
        orders = np.array([2, 3, 9])
        known = replace_one.vector_cost(a, b, inner, orders, sampling_rate=rate)
        assert (known <= replace_one.cost(top_a, top_b, orders, sampling_rate=rate) * (1 + 1e-10)).all()


def test_vectors_in_the_plane_agree_with_two_dimensional_quadrature():
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    mass = np.multiply.outer(weights, weights) / (2 * np.pi)
    for order in [2, 2.5, 4]:
        for rate, norm_a, norm_b, angle in [
            (0.1, 1.0, 0.7, 1.0),
            (0.3, 0.5, 1.2, 2.5),
            (0.02, 1.0, 1.0, 1.571),
        ]:
            a = norm_a * np.array([np.cos(angle), np.sin(angle)])
            p = 1 - rate + rate * np.exp(a[0] * x + a[1] * y - norm_a**2 / 2)
            q = 1 - rate + rate * np.exp(norm_b * x - norm_b**2 / 2)
            reference = np.log((mass * p**order * q ** (1 - order)).sum())
            inner = norm_b * a[0]
            got = replace_one.vector_cost(norm_a, norm_b, inner, order, sampling_rate=rate)
            assert float(got) == pytest.approx(reference, rel=1e-9)


def test_without_sampling_only_the_distance_counts():
    got = replace_one.vector_cost(2.0, 1.0, 0.5, [2, 5], sampling_rate=1)
    assert got == pytest.approx(gaussian.cost(np.sqrt(4 + 1 - 2 * 0.5), [2, 5]), rel=1e-12)


def exact_stick(epsilon, rate, a, b):
    """Threshold by bisection and P(x > x*) − e^ε Q(x > x*) as they stand, with 60 digits."""
    with mp.workdps(60):
        e, q, a, b = map(mp.mpf, (epsilon, rate, a, b))
        p = lambda x: (1 - q) * mp.npdf(x) + q * mp.npdf(x, a)  # noqa: E731
        w = lambda x: (1 - q) * mp.npdf(x) + q * mp.npdf(x, -b)  # noqa: E731
        low, high = min(a / 2, (e + mp.log(q)) / b - b / 2), max(-b / 2, (e - mp.log(q)) / a + a / 2)
        for _ in range(230):
            middle = (low + high) / 2
            low, high = (middle, high) if p(middle) < mp.exp(e) * w(middle) else (low, middle)
        tails = (1 - q) * mp.ncdf(-high) * (1 - mp.exp(e)) + q * mp.ncdf(a - high)
        return tails - mp.exp(e) * q * mp.ncdf(-b - high)


def test_hockey_stick_agrees_with_sixty_digits():
    rng = np.random.default_rng(5)
    small = 0
    for _ in range(50):
        a, b = 10 ** rng.uniform(-2, 1.2, 2)
        rate = rng.choice([rng.uniform(), 10 ** rng.uniform(-4, 0), 1 - 10 ** rng.uniform(-6, 0)])
        epsilon = rng.normal() * min(20, 5 * (a + b))
        reference = exact_stick(epsilon, rate, a, b)
        small += reference < 1e-30
        if reference > 1e-290:
            got = float(replace_one.hockey_stick(epsilon, rate, a, b))
            assert got == pytest.approx(float(reference), rel=1e-11)
    assert small > 2


def test_hockey_stick_over_the_whole_line():
    eps = np.concatenate([-(10.0 ** np.arange(6, -4, -1)), np.linspace(-2, 2, 41), 10.0 ** np.arange(1, 7)])
    for a, b in [(1, 1), (0, 2), (2, 0), (1e-200, 1e-200), (1e3, 1e3), (1e-6, 1e3), (0, 0)]:
        for rate in [0.0, 1e-6, 0.01, 0.999, 1.0]:
            delta = replace_one.hockey_stick(np.sort(eps), rate, a, b)
            assert ((delta >= 0) & (delta <= 1)).all()
            assert (np.diff(delta) <= 1e-15).all()
            assert (delta >= -np.expm1(np.minimum(np.sort(eps), 0)) - 1e-15).all()
    # identity δ_PQ(ε) = 1 − e^ε + e^ε δ_QP(−ε), with Q against P the mirrored pair
    e = np.linspace(-4, 4, 33)
    forward, backward = replace_one.hockey_stick(e, 0.1, 1, 2), replace_one.hockey_stick(-e, 0.1, 2, 1)
    assert forward == pytest.approx(-np.expm1(e) + np.exp(e) * backward, abs=1e-13)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: replace_one.cost(-1, 1, 2, sampling_rate=0.1), "shift_old"),
        (lambda: replace_one.cost(1, np.nan, 2, sampling_rate=0.1), "shift_new"),
        (lambda: replace_one.cost(1, 1, 1, sampling_rate=0.1), "orders"),
        (lambda: replace_one.cost(1, 1, 2, sampling_rate=-0.1), "sampling_rate"),
        (lambda: replace_one.vector_cost(1, 1, 1.5, 2, sampling_rate=0.1), "inner"),
        (lambda: replace_one.convexity_cost(-1, 2, sampling_rate=0.1), "distance"),
        (lambda: replace_one.hockey_stick(np.inf, 0.1, 1, 1), "epsilon"),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_chunked_and_whole_evaluation_agree():
    # M13
    old, new, orders = np.geomspace(1e-3, 50, 90), np.geomspace(20, 1e-2, 90), np.array([1.3, 4, 200])
    whole = replace_one.cost(old, new, orders, sampling_rate=0.03)
    single = [replace_one.cost(a, b, orders, sampling_rate=0.03) for a, b in zip(old, new, strict=True)]
    assert whole == pytest.approx(np.array(single), rel=1e-14)
