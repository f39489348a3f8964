"""The subsampled Gaussian against closed forms, 50-digit arithmetic, the published series and test vectors."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as public
from hypothesis import example, given
from hypothesis import strategies as st

from bayesdp.divergence import sgm
from bayesdp.errors import InputError

rates = st.floats(-7, -1e-3).map(lambda e: 10**e)
shifts = st.floats(-4, 3).map(lambda e: 10**e)
whole_orders = st.sampled_from([2, 3, 5, 8, 17, 64, 255, 1024])
fractional_orders = st.floats(-2, 1.5).map(lambda e: 1 + 10**e)


def cost(shift, order, rate, direction="remove"):
    return float(sgm.cost(shift, [order], sampling_rate=rate, direction=direction)[0])


def exact_sum(order, rate, shift):
    """B4 in 60 digits."""
    with mp.workdps(60):
        q, r = mp.mpf(rate), mp.mpf(shift)
        terms = [
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp((k * k - k) * r * r / 2)
            for k in range(order + 1)
        ]
        return mp.log(mp.fsum(terms))


def exact_integral(power, rate, shift):
    """E_N0[(1+y)^p] - 1 in 30 digits by adaptive quadrature."""
    with mp.workdps(30):
        p, q, r = mp.mpf(power), mp.mpf(rate), mp.mpf(shift)
        crossing = r / 2 + mp.log((1 - q) / q) / r

        def integrand(x):
            y = q * mp.expm1(r * x - r * r / 2)
            return mp.npdf(x) * ((1 + y) ** p - 1 - p * y)

        centres = {mp.mpf(0), r, 2 * r, p * r, crossing} | {p * r * k / 8 for k in range(9) if r < 1}
        points = sorted(
            {c + d for c in centres for d in (-13, -6, -2, 0, 2, 6, 13)} | {crossing - 4 / r, crossing + 4 / r}
        )
        return mp.log1p(mp.quad(integrand, points))


def series(order, rate, z):
    """B5, the published series for fractional orders, in 60 digits."""
    with mp.workdps(60):
        a, q, z = mp.mpf(order), mp.mpf(rate), mp.mpf(z)
        z0 = z**2 * mp.log(1 / q - 1) + mp.mpf(1) / 2
        total, i = mp.mpf(0), 0
        while i < 400:
            j = a - i
            term = mp.binomial(a, i) * (
                q**i * (1 - q) ** j * mp.exp((i * i - i) / (2 * z**2)) * mp.erfc((i - z0) / (mp.sqrt(2) * z)) / 2
                + q**j * (1 - q) ** i * mp.exp((j * j - j) / (2 * z**2)) * mp.erfc((z0 - j) / (mp.sqrt(2) * z)) / 2
            )
            total += term
            i += 1
            if i > a and abs(term) < mp.mpf(10) ** -20:
                return mp.log(total)
        raise AssertionError("the series did not converge: choose a larger z")


@pytest.mark.parametrize(
    ("rate", "shift", "lam", "remove", "add"),
    [
        (0.01, 1, 8, 0.0142532963470641, 0.00506715715829231),
        (0.01, 1, 32, 376.029383862434, 0.0553030080234031),
        (0.1, 0.5, 8, 0.128490387400921, 0.0815778332175447),
        (1, 1, 8, 36, 36),
        (0.01, 0.1, 32, 0.000532297409899366, 0.000528855708580811),
        (0.01, 0.25, 32, 0.00347604383988115, 0.00333201803409663),
    ],
)
def test_spec_i2(rate, shift, lam, remove, add):
    assert cost(shift, lam + 1, rate) == pytest.approx(remove, rel=2e-14)
    assert cost(shift, lam + 1, rate, "add") == pytest.approx(add, rel=2e-14)


@pytest.mark.parametrize(
    ("order", "values"),
    [
        (2, (0.0004244338676019845, 9.630317323181951e-6, 2.116806627335163e-7, 2.069524047454121e-9)),
        (8, (11.1563909483302, 4.051050960793189e-5, 8.472338356032845e-7, 8.278144277599686e-9)),
        (16, (29.81000957181026, 2.532466414808429, 1.695833425742097e-6, 1.65564167916045e-8)),
    ],
)
def test_spec_i8_whole_orders(order, values):
    got = sgm.cost(np.array([1, 0.5, 0.1, 0.01]) / 0.469, [order], sampling_rate=128 / 60000)[:, 0] / (order - 1)
    np.testing.assert_allclose(got, values, rtol=2e-14)


@pytest.mark.parametrize(
    ("rate", "shift", "order", "remove", "add"),
    [
        (0.01, 1, 1.25, 0.000105398005098176, 0.000101790723715654),
        (0.01, 1, 1.5, 0.00012725374332745, 0.000121475993064014),
        (0.01, 1, 2.5, 0.00021757533228188, 0.000198173289063761),
        (0.01, 1, 4.7, 0.000436171642223483, 0.000356630930841883),
        (0.1, 0.5, 1.5, 0.00209893459571018, 0.00199519123368621),
        (0.1, 0.5, 4.7, 0.00720513404613942, 0.00580931263373816),
        (128 / 60000, 1 / 0.469, 1.25, 0.000174703822880921, 0.000119314944516903),
        (128 / 60000, 1 / 0.469, 1.5, 0.00023316380027525, 0.000137203149595087),
        (128 / 60000, 1 / 0.469, 2.5, 0.000978879175873529, 0.000198313901696591),
        (128 / 60000, 1 / 0.469, 4.7, 2.87149768594256, 0.000298207808529564),
    ],
)
def test_spec_i8_fractional_orders(rate, shift, order, remove, add):
    assert cost(shift, order, rate) / (order - 1) == pytest.approx(remove, rel=2e-13)
    assert cost(shift, order, rate, "add") / (order - 1) == pytest.approx(add, rel=2e-13)


@given(rates, shifts, whole_orders)
@example(1e-7, 1e3, 1024)
@example(0.999, 1e-4, 1024)
def test_whole_orders_agree_with_60_digits(rate, shift, order):
    assert cost(shift, order, rate) == pytest.approx(float(exact_sum(order, rate, shift)), rel=3e-12)


def test_fractional_orders_and_add_direction_agree_with_30_digits():
    rng = np.random.default_rng(1)
    for _ in range(8):
        rate, shift, order = (
            10 ** rng.uniform(-6, -0.02),
            10 ** rng.uniform(-2, 1.8),
            1 + 10 ** rng.uniform(-2, 1.2),
        )
        assert cost(shift, order, rate) == pytest.approx(float(exact_integral(order, rate, shift)), rel=1e-11)
        assert cost(shift, order, rate, "add") == pytest.approx(
            float(exact_integral(1 - order, rate, shift)), rel=1e-11
        )


@pytest.mark.parametrize(
    ("order", "rate", "z"), [(1.5, 0.01, 2.0), (2.3, 0.003, 2.0), (4.7, 0.03, 3.0), (7.9, 0.003, 1.5)]
)
def test_fractional_orders_agree_with_the_published_series(order, rate, z):
    assert cost(1 / z, order, rate) == pytest.approx(float(series(order, rate, z)), rel=1e-11)


@given(rates, st.floats(0.5, 20), st.sampled_from([2, 3, 8, 33, 100]))
def test_whole_orders_agree_with_dp_accounting(rate, z, order):
    theirs = public._compute_rdp_poisson_subsampled_gaussian(rate, z, [order])[0]
    assert cost(1 / z, order, rate) / (order - 1) == pytest.approx(theirs, rel=1e-6, abs=1e-13)


def test_fractional_orders_do_not_share_dp_accountings_truncation():
    """dp-accounting 0.6 stops its series early near order 1: I-8's exact value is below its answer."""
    theirs = public._compute_rdp_poisson_subsampled_gaussian(0.01, 1.0, [1.25])[0]
    assert cost(1.0, 1.25, 0.01) / 0.25 < 0.95 * theirs


@given(rates, shifts, st.one_of(whole_orders.filter(lambda a: a < 300), fractional_orders))
def test_add_is_below_remove_and_below_its_own_ceiling(rate, shift, order):
    remove, add = cost(shift, order, rate), cost(shift, order, rate, "add")
    assert 0 <= add <= remove * (1 + 1e-11)
    assert add <= -(order - 1) * math.log1p(-rate) * (1 + 1e-11)


@given(rates, shifts, fractional_orders, st.floats(1, 2), st.floats(1, 2), st.floats(1, 2))
def test_cost_grows_with_rate_shift_and_order(rate, shift, order, more_rate, more_shift, more_order):
    base = cost(shift, order, rate) * (1 - 1e-11)
    assert base <= cost(shift, order, min(1, rate * more_rate))
    assert base <= cost(shift * more_shift, order, rate)
    bigger = 1 + (order - 1) * more_order
    assert base / (order - 1) <= cost(shift, bigger, rate) / (bigger - 1)


@given(rates, shifts, st.floats(0.05, 30), st.floats(0.05, 30), st.floats(0, 1))
def test_cost_is_convex_in_the_order(rate, shift, lam1, lam2, t):
    mixed = t * lam1 + (1 - t) * lam2
    chord = t * cost(shift, 1 + lam1, rate) + (1 - t) * cost(shift, 1 + lam2, rate)
    assert cost(shift, 1 + mixed, rate) <= chord * (1 + 1e-11)


@given(shifts, st.one_of(whole_orders, fractional_orders), st.sampled_from(sgm.DIRECTIONS))
def test_edges(shift, order, direction):
    assert cost(shift, order, 0.0, direction) == 0
    assert cost(0.0, order, 0.3, direction) == 0
    assert cost(shift, order, 1.0, direction) == pytest.approx(order * (order - 1) * shift**2 / 2, rel=1e-14)


def test_no_overflow_and_no_nan_up_to_order_1024_and_shift_1000():
    got = sgm.cost([0, 1e-8, 1, 1e3], [1.01, 1.5, 2, 64, 700.5, 1024], sampling_rate=1e-6)
    assert np.isfinite(got).all()
    assert (np.diff(got, axis=0) >= 0).all()
    assert got[3, 5] == pytest.approx(1024 * 1023 * 1e6 / 2 + 1024 * math.log(1e-6), rel=1e-12)


def test_blocks_do_not_change_the_answer(monkeypatch):
    shift, orders = np.linspace(0, 5, 301), [1.3, 2, 40]
    whole = {d: sgm.cost(shift, orders, sampling_rate=0.02, direction=d) for d in sgm.DIRECTIONS}
    monkeypatch.setattr(sgm, "_BLOCK", 500)
    for direction, expected in whole.items():
        got = sgm.cost(shift.reshape(7, 43), orders, sampling_rate=0.02, direction=direction)
        np.testing.assert_allclose(got.reshape(301, 3), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shift": -1.0}, "shift"),
        ({"shift": [0.0, math.nan]}, "shift[1]=nan"),
        ({"orders": [1.0]}, "orders"),
        ({"sampling_rate": 1.5}, "sampling_rate=1.5"),
        ({"sampling_rate": math.nan}, "sampling_rate"),
        ({"direction": "both"}, "direction='both'"),
    ],
)
def test_bad_input_is_named(arguments, words):
    good = {"shift": 1.0, "orders": [2.0], "sampling_rate": 0.1, "direction": "remove"} | arguments
    with pytest.raises(InputError) as error:
        sgm.cost(good["shift"], good["orders"], sampling_rate=good["sampling_rate"], direction=good["direction"])
    assert words in str(error.value)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_cost_does_not_depend_on_which_others_are_computed_beside_it(direction):
    """M13: bit for bit, whole and fractional orders; else a resumed run would differ from one that went through."""
    shifts = np.concatenate([np.random.default_rng(0).random(40), np.geomspace(1e-9, 300, 40), [5e-324]])
    orders = [1.25, 2, 8.5, 33]
    whole = sgm.cost(shifts, orders, sampling_rate=0.03, direction=direction)
    alone = [sgm.cost(shift, orders, sampling_rate=0.03, direction=direction) for shift in shifts]
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize(
    ("rate", "shift", "order"),
    [(0.5, 0.05, 1023.5), (0.99, 0.5, 100.5), (0.999999, 0.5, 200.5), (1 - 1e-12, 1.9, 17.5), (1 - 2**-53, 5.0, 2.5)],
)
def test_add_direction_finds_its_peak_wherever_it_lies(rate, shift, order):
    """The peak is anywhere between -λr and 0; near rate 1 log(1-q+q e^t) must not be formed from 1 - q(1 - e^t)."""
    step = 0.1 / (1 + shift * math.sqrt(order))
    with mp.workdps(30):
        q, r, p = mp.mpf(rate), mp.mpf(shift), 1 - mp.mpf(order)
        lowest = float(p * r) - 14
        places = [mp.mpf(lowest) + k * mp.mpf(step) for k in range(int((12 - lowest) / step))]
        terms = [mp.exp(p * mp.log(1 - q + q * mp.exp(r * x - r * r / 2)) - x * x / 2) for x in places]
        exact = mp.log(mp.fsum(terms) * mp.mpf(step) / mp.sqrt(2 * mp.pi))
    assert cost(shift, order, rate, "add") == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("rate", [1e-9, 0.01, 1 - 1e-9])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_outcomes_that_are_far_apart_have_a_closed_form(rate, direction):
    """It takes over at shift 100 without a jump, agrees with whole orders, and takes no time at any shift."""
    orders = [1.0001, 1.5, 64.5]
    below, above = (sgm.cost(r, orders, sampling_rate=rate, direction=direction) for r in (100.0, 100 * (1 + 1e-15)))
    np.testing.assert_allclose(above, below, rtol=1e-11)
    near_two = sgm.cost([1e4, 1e6], [2, 2 + 1e-12], sampling_rate=rate)
    np.testing.assert_allclose(near_two[:, 0], near_two[:, 1], rtol=1e-10)
    assert (sgm.cost(1e200, [1.5, 2, 1024], sampling_rate=rate) == np.inf).all()
    np.testing.assert_allclose(
        sgm.cost(1e200, [1.5, 2], sampling_rate=rate, direction="add"), np.array([0.5, 1]) * -math.log1p(-rate)
    )
