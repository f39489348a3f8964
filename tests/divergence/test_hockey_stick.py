"""Hockey sticks: B8, B9, H7; vectors I-10, I-11, I-13; ERR 14 and 14b; M4."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.divergence import hockey_stick as hs
from bayesdp.errors import InputError

DIRECTIONS = ["remove", "add"]


def exact_delta(epsilon: float, shift: float) -> mp.mpf:
    """B8 as printed, with 60 digits so that its cancellation does no harm."""
    with mp.workdps(60):
        e, r = mp.mpf(epsilon), mp.mpf(shift)
        return mp.ncdf(r / 2 - e / r) - mp.exp(e) * mp.ncdf(-r / 2 - e / r)


def test_gaussian_delta_agrees_with_sixty_digits_however_small():
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(150):
        shift = 10 ** rng.uniform(-4, 2)
        epsilon = rng.normal() * 10 * shift + shift**2 * rng.uniform(-0.5, 1)
        reference = exact_delta(epsilon, shift)
        if reference > 1e-290:
            checked += 1
            assert float(hs.gaussian_delta(epsilon, shift)) == pytest.approx(float(reference), rel=1e-11)
    assert checked > 80


def test_gaussian_delta_at_the_edges():
    assert hs.gaussian_delta([-1.0, 0.0, 2.0], 0.0) == pytest.approx([1 - np.exp(-1), 0, 0])
    assert hs.gaussian_delta([-1e6, 0, 5e5, 1e7], 1e3) == pytest.approx([1, 1, 0.4996010580, 0], rel=1e-6)
    tiny = hs.gaussian_delta([-1.0, 0.0, 1.0], 1e-200)
    assert tiny[0] == pytest.approx(1 - np.exp(-1))
    assert 0 < tiny[1] < 1e-99
    assert tiny[2] == 0


def test_shift_for_a_budget():
    assert float(hs.gaussian_shift(1, 1e-5)) == pytest.approx(0.268051123211294, rel=1e-13)  # I-13
    assert float(hs.gaussian_shift(0.1, 1e-5)) == pytest.approx(0.0325207840562115, rel=1e-13)  # I-11
    assert (2 * float(hs.gaussian_shift(1, 1e-5))) ** 2 == pytest.approx(0.287405618619346, rel=1e-13)


def test_epsilon_of_composed_gaussians():
    # I-9: noise multiplier 5, ten steps
    assert float(hs.gaussian_epsilon(1e-5, np.sqrt(10) / 5)) == pytest.approx(2.5943833805, rel=1e-10)


@given(st.floats(1e-12, 0.9), st.floats(1e-3, 1e3))
def test_epsilon_is_enough_and_the_smallest(delta, shift):
    epsilon = float(hs.gaussian_epsilon(delta, shift))
    assert float(hs.gaussian_delta(epsilon, shift)) <= delta
    if epsilon > 0:
        assert float(hs.gaussian_delta(epsilon * (1 - 1e-9), shift)) > delta * (1 - 1e-15)
        assert float(hs.gaussian_shift(epsilon, delta)) == pytest.approx(shift, rel=1e-7)


def test_classical_calibration_fails_beyond_its_range():
    # ERR 14: noise sqrt(2 ln(1.25/δ))/ε was proved for ε <= 1 only
    eps = np.array([1.0, 8, 10, 20])
    true = hs.gaussian_delta(eps, eps / np.sqrt(2 * np.log(1.25e5)))
    assert true[1:] == pytest.approx([7.97e-6, 2.265e-5, 1.527e-3], rel=1e-3)
    assert (true[:2] < 1e-5).all()
    assert (true[2:] > 1e-5).all()


@given(st.floats(-3, 6), st.floats(1e-3, 1 - 1e-6), st.floats(0.01, 8))
def test_sampled_delta_is_the_integral(epsilon, rate, shift):
    x = np.linspace(-12, shift + 12, 200_001)
    base, bump = np.exp(-(x**2) / 2), np.exp(-((x - shift) ** 2) / 2)
    without, with_ = base / np.sqrt(2 * np.pi), ((1 - rate) * base + rate * bump) / np.sqrt(2 * np.pi)
    for direction, p, q in [("remove", with_, without), ("add", without, with_)]:
        reference = np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), x)
        got = float(hs.sampled_delta(epsilon, shift, sampling_rate=rate, direction=direction))
        assert got == pytest.approx(reference, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sampled_delta_at_extreme_rates(direction):
    eps = np.array([-40.0, -1, 0, 1, 40, 800])
    full = hs.sampled_delta(eps, 2.0, sampling_rate=1, direction=direction)
    assert full == pytest.approx(hs.gaussian_delta(eps, 2.0), rel=1e-12)  # M4
    never = hs.sampled_delta(eps, 2.0, sampling_rate=0, direction=direction)
    assert never == pytest.approx(np.maximum(0, -np.expm1(eps.clip(max=0))))
    assert np.isfinite(hs.sampled_delta(eps, 1e3, sampling_rate=1e-308, direction=direction)).all()


def corollary_3_1(rate, shifts, weights, delta, power):
    """E4, the paper's own formula (valid only while C·Δ < 1, ERR 14): ε' at δ'' = δ split in half."""
    half = delta / 2
    slope = np.sqrt(2 * np.log(1.25 / (half / rate)))
    logs = power * slope * np.asarray(shifts) + np.log(weights)
    log_a = np.log(rate) + np.logaddexp.reduce(logs) / power
    return slope, np.log(np.exp(log_a * power / (power - 1) - np.log(half) / (power - 1)) + 1 - rate)


def test_averaging_beats_corollary_3_1():
    # I-10 and ERR 14b
    shifts, weights = [0.01, 0.1], [0.9, 0.1]
    slope, printed = corollary_3_1(0.01, shifts, weights, 1e-5, 1e4)
    assert slope == pytest.approx(3.95576693217795, rel=1e-13)
    assert printed == pytest.approx(0.00484908891915638, rel=1e-12)
    classical = np.log1p(0.01 * np.expm1(0.1 * np.sqrt(2 * np.log(1.25 / 1e-3))))
    ours = {
        d: float(hs.averaged_epsilon(1e-5, shifts, sampling_rate=0.01, direction=d, weights=weights))
        for d in DIRECTIONS
    }
    assert ours["remove"] == pytest.approx(0.000970936961240115, rel=1e-11)
    assert ours["add"] == pytest.approx(0.000841222779233098, rel=1e-11)
    supremum = float(hs.averaged_epsilon(1e-5, [0.1], sampling_rate=0.01, direction="remove"))
    assert supremum == pytest.approx(0.00218156323030413, rel=1e-11)
    assert max(ours.values()) < supremum < min(printed, classical)


def test_averaged_delta_is_the_weighted_mean_and_broadcasts():
    eps, shifts = np.array([[0.1], [0.5]]), np.array([[0.2, 1.0, 3.0], [0.0, 0.1, 0.2]])
    weights = [0.2, 0.3, 0.5]
    got = hs.averaged_delta(eps, shifts, sampling_rate=0.2, direction="remove", weights=weights)
    single = hs.sampled_delta(eps[..., None], shifts, sampling_rate=0.2, direction="remove")
    assert got.shape == (2, 2)
    assert got == pytest.approx(single @ weights)
    back = hs.averaged_epsilon(got[0], shifts, sampling_rate=0.2, direction="remove", weights=weights)
    assert back == pytest.approx([0.1, 0.1], rel=1e-9)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: hs.gaussian_delta(np.nan, 1), "epsilon"),
        (lambda: hs.gaussian_delta(1, -1), "shift"),
        (lambda: hs.gaussian_epsilon(0, 1), "delta"),
        (lambda: hs.gaussian_shift(-1, 1e-5), "epsilon"),
        (lambda: hs.sampled_delta(1, 1, sampling_rate=1.5, direction="add"), "sampling_rate"),
        (lambda: hs.sampled_delta(1, 1, sampling_rate=0.5, direction="both"), "direction"),
        (lambda: hs.averaged_delta(1, 1, sampling_rate=0.5, direction="add"), "shifts"),
        (
            lambda: hs.averaged_delta(1, [1, 2], sampling_rate=0.5, direction="add", weights=[0.5, 0.6]),
            "weights",
        ),
    ],
)
def test_bad_input_is_refused(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_add_direction_keeps_its_digits_where_both_shares_nearly_agree():
    """log(e^ε q/t) from three logs of size log q lost nine digits at a shift of 1e-6."""
    epsilon, shift, rate = 1e-9, 1e-6, 0.01
    with mp.workdps(50):
        e, r, q = map(mp.mpf, (epsilon, shift, rate))
        t = 1 - mp.exp(e) * (1 - q)
        inner = mp.log(mp.exp(e) * q / t)
        exact = t * (mp.ncdf(r / 2 - inner / r) - mp.exp(inner) * mp.ncdf(-r / 2 - inner / r))
    got = hs.sampled_delta(epsilon, shift, sampling_rate=rate, direction="add")
    assert float(got) == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_weights_that_sum_to_nearly_one_are_made_to():
    light = hs.averaged_delta(0.1, [1.0, 1.0], sampling_rate=0.1, direction="remove", weights=[0.5, 0.5 - 9e-10])
    exact = hs.sampled_delta(0.1, 1.0, sampling_rate=0.1, direction="remove")
    assert float(light) == pytest.approx(float(exact), rel=1e-14)
