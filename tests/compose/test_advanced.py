"""Advanced composition: S2's numbers (I-13), its unsound calibration (ERR 13b), the sound one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from bayesdp.compose import additive, advanced
from bayesdp.divergence.hockey_stick import gaussian_delta, gaussian_epsilon
from bayesdp.errors import InputError

S2 = {"sampling_rates": 0.05, "counts": 1000, "delta": 5e-4, "slack": 4e-5}


@pytest.mark.parametrize(
    ("sigma", "theorem", "code"),
    [
        (2, 58.4842477328, 58.8337968801),
        (4, 15.0852783009, 15.2130386637),
        (10, 4.26579248928, 4.30841449444),
    ],
)
def test_s2_numbers(sigma, theorem, code):
    assert 2 * advanced.gaussian_run(2 * sigma, **S2, calibration="classical") == pytest.approx(theorem, rel=1e-11)
    # The public code has ln(1.25/δ') where D6 has ln(1/δ'): the same as a slack of δ'/1.25 in D6 alone.
    step = math.sqrt(2 * math.log(1.25 / (4.6e-4 / 50))) / (2 * sigma)
    step, _ = advanced.amplify(step, 0.0, 0.05)
    assert 2 * advanced.advanced(step, 0.0, 1000, 4e-5 / 1.25)[0] == pytest.approx(code, rel=1e-11)


def test_exact_calibration_is_tighter_where_the_printed_one_holds():
    exact = [2 * advanced.gaussian_run(2 * sigma, **S2) for sigma in (2, 4, 10)]
    printed = [2 * advanced.gaussian_run(2 * sigma, **S2, calibration="classical") for sigma in (2, 4, 10)]
    assert all(a < b for a, b in zip(exact, printed, strict=True))


def test_printed_calibration_is_too_small_for_large_epsilon():
    """ERR 13b: one unsampled step whose printed ε_0 is 20 really has a larger one."""
    step_delta = 1e-5
    noise = math.sqrt(2 * math.log(1.25 / step_delta)) / 20
    run = {"sampling_rates": 1, "counts": 1, "delta": 2e-5, "slack": 1e-5}
    assert advanced.gaussian_run(noise, **run, calibration="classical") == pytest.approx(20)
    assert float(gaussian_delta(20.0, 1 / noise)) == pytest.approx(1.527e-3, rel=1e-3)
    exact = advanced.gaussian_run(noise, **run)
    assert exact > 21
    assert float(gaussian_delta(exact, 1 / noise)) == pytest.approx(step_delta, rel=1e-6)


def test_default_slack_is_half_and_deltas_are_equal_over_steps():
    mixed = advanced.gaussian_run([1.0, 2.0], [0.1, 0.02], [5, 10], 1e-5)
    step_delta = 0.5e-5 / (5 * 0.1 + 10 * 0.02)
    steps = [
        advanced.amplify(float(gaussian_epsilon(step_delta, 1 / z)), step_delta, q) for z, q in ((1, 0.1), (2, 0.02))
    ]
    epsilons, deltas = zip(*steps, strict=True)
    epsilon, delta = advanced.advanced(epsilons, deltas, [5, 10], 0.5e-5)
    assert mixed == pytest.approx(epsilon, rel=1e-12)
    assert delta == pytest.approx(1e-5)


def test_shift_scales_like_noise():
    assert advanced.gaussian_run(4, 0.1, 10, 1e-5, shift=2) == pytest.approx(advanced.gaussian_run(2, 0.1, 10, 1e-5))


@given(st.floats(1e-6, 20), st.floats(1e-9, 1), st.integers(1, 10**6), st.floats(1e-12, 0.5))
def test_against_high_precision(epsilon, rate, count, slack):
    with mp.workdps(50):
        amplified = mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(epsilon)))
        advanced_value = mp.sqrt(2 * count * mp.log(1 / mp.mpf(slack))) * amplified + count * amplified * mp.expm1(
            amplified
        )
        want = min(advanced_value, count * amplified)
    step, delta = advanced.amplify(epsilon, 1e-9, rate)
    assert step == pytest.approx(float(amplified), rel=1e-12, abs=1e-300)
    assert delta == rate * 1e-9
    got, total_delta = advanced.advanced(step, delta, count, slack)
    assert got == pytest.approx(float(want), rel=1e-11, abs=1e-300)
    assert total_delta == pytest.approx(min(1, count * delta + slack))
    assert got <= additive.basic([step * count], [0.0])[0]


@given(st.floats(0, 2000), st.floats(0, 1))
def test_amplification_never_raises_epsilon(epsilon, rate):
    amplified, _ = advanced.amplify(epsilon, 0.0, rate)
    assert 0 <= amplified <= epsilon * (1 + 1e-12)


def test_extremes():
    assert advanced.amplify(math.inf, 0.5, 0.1) == (math.inf, 0.05)
    assert advanced.amplify(math.inf, 0.5, 0.0) == (0.0, 0.0)
    assert advanced.amplify(1e4, 0.0, 1e-3)[0] == pytest.approx(1e4 + math.log(1e-3))
    assert advanced.advanced([math.inf, 1.0], 0.0, [0, 1], 1e-5)[0] == 1.0
    assert advanced.advanced(math.inf, 0.0, 1, 1e-5)[0] == math.inf
    assert advanced.advanced(1e4, 0.0, 3, 1e-5) == (3e4, 1e-5)
    assert advanced.gaussian_run(1.0, 0.0, 100, 1e-5) == 0.0
    assert advanced.gaussian_run(1.0, 0.5, 0, 1e-5) == 0.0
    assert advanced.gaussian_run(1.0, 1e-9, 1, 1e-5) >= 0.0  # δ_it would exceed 1
    eps, delta = advanced.amplify(np.array([1.0, 2.0]), np.array([0.0, 0.1]), np.array([0.5, 0.5]))
    assert eps.shape == delta.shape == (2,)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: advanced.amplify(-1.0, 0.0, 0.5), "epsilon"),
        (lambda: advanced.amplify(1.0, 0.0, 1.5), "sampling_rate"),
        (lambda: advanced.advanced([1.0], [0.0], [1.5], 1e-5), "counts"),
        (lambda: advanced.advanced([1.0], [0.0], [-1], 1e-5), "counts"),
        (lambda: advanced.advanced([1.0], [0.0], [1], 0.0), "slack"),
        (lambda: advanced.advanced([1.0, 2.0], [0.0] * 3, 1, 1e-5), "matching shapes"),
        (lambda: advanced.gaussian_run(0.0, 0.1, 1, 1e-5), "noise_multipliers"),
        (lambda: advanced.gaussian_run(1.0, 0.1, 1, 1.0), "delta"),
        (lambda: advanced.gaussian_run(1.0, 0.1, 1, 1e-5, slack=1e-5), "slack"),
        (lambda: advanced.gaussian_run(1.0, 0.1, 1, 1e-5, calibration="printed"), "calibration"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()
