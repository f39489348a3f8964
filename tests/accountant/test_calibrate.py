"""Calibration: I-13's noise levels, and promises that are never overshot."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bayesdp.accountant.calibrate import calibrate_noise, noise_for, rate_for, steps_for
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import InputError


def spent(z, q, steps, delta, engine, adjacency="add-remove"):
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency)
    accountant.step(noise_multiplier=z, sampling_rate=q, steps=steps)
    return accountant.epsilon(delta)


@pytest.mark.parametrize(
    ("epsilon", "q", "steps", "engine", "noise"),
    [
        (1, 128 / 10000, 390, "rdp", 1.3462),
        (3, 128 / 10000, 390, "rdp", 0.8337),
        (3, 256 / 60000, 1171, "rdp", 0.7023),
        (1, 167 / 3341, 1000, "rdp", 6.4927),
        (1, 195 / 39073, 2003, "rdp", 1.1966),
        (2.18, 1024 / 60000, 1160, "rdp", 1.396),
        (2.18, 1024 / 60000, 1160, "moments", 1.567),
    ],
)
def test_printed_noise(epsilon, q, steps, engine, noise):
    found = noise_for(epsilon, 1e-5, sampling_rate=q, steps=steps, engine=engine)
    assert found == pytest.approx(noise, rel=4e-4)
    assert spent(found, q, steps, 1e-5, engine) <= epsilon
    assert spent(found * (1 - 3e-4), q, steps, 1e-5, engine) > epsilon


@given(
    st.floats(0.05, 50),
    st.floats(1e-8, 1e-2),
    st.floats(1e-4, 1),
    st.integers(1, 2000),
    st.sampled_from(["rdp", "moments", "advanced"]),
    st.sampled_from(["add-remove", "replace-one"]),
)
@settings(max_examples=6)
def test_never_overshoots(epsilon, delta, q, steps, engine, adjacency):
    kind = {"engine": engine, "adjacency": adjacency}
    z = noise_for(epsilon, delta, sampling_rate=q, steps=steps, **kind)
    assert spent(z, q, steps, delta, **kind) <= epsilon
    if z > 1.1e-3:
        assert spent(z / 1.001, q, steps, delta, **kind) > epsilon * (1 - 1e-6)
    most = steps_for(epsilon, delta, noise_multiplier=z, sampling_rate=q, **kind)
    assert most >= steps
    assert spent(z, q, most, delta, **kind) <= epsilon
    rate = rate_for(epsilon, delta, noise_multiplier=z, steps=steps, **kind)
    assert q * (1 - 2e-4) <= rate <= 1
    assert spent(z, rate, steps, delta, **kind) <= epsilon


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_pld(adjacency):
    kind = {"engine": "pld", "adjacency": adjacency}
    z = noise_for(1.0, 1e-5, sampling_rate=0.02, steps=2000, adjacency=adjacency)
    assert spent(z, 0.02, 2000, 1e-5, **kind) <= 1.0 < spent(z * 0.9997, 0.02, 2000, 1e-5, **kind)
    assert z < noise_for(1.0, 1e-5, sampling_rate=0.02, steps=2000, engine="rdp", adjacency=adjacency)
    steps = steps_for(1.0, 1e-5, noise_multiplier=z, sampling_rate=0.02, adjacency=adjacency)
    assert spent(z, 0.02, steps, 1e-5, **kind) <= 1.0 < spent(z, 0.02, steps + 1, 1e-5, **kind)
    rate = rate_for(1.0, 1e-5, noise_multiplier=z, steps=2000, adjacency=adjacency)
    assert spent(z, rate, 2000, 1e-5, **kind) <= 1.0 < spent(z, rate * 1.0003, 2000, 1e-5, **kind)


def test_a_schedule_is_scaled_as_a_whole():
    def make(scale):
        accountant = WorstCaseAccountant(engine="rdp")
        for z in (1.0, 2.0, 4.0):
            accountant.step(noise_multiplier=scale * z, sampling_rate=0.05, steps=50)
        return accountant

    scale = calibrate_noise(make, 1.0, 1e-5)
    assert make(scale).epsilon(1e-5) <= 1.0 < make(scale * 0.9997).epsilon(1e-5)
    assert calibrate_noise(make, 1.0, 1e-5, start=100.0) == pytest.approx(scale, rel=2e-4)
    assert calibrate_noise(make, 1.0, 1e-5, start=0.01) == pytest.approx(scale, rel=2e-4)


def test_ends_of_the_range():
    assert rate_for(20.0, 1e-5, noise_multiplier=10.0, steps=3, engine="rdp") == 1.0
    assert noise_for(1.0, 1e-5, sampling_rate=0.0, steps=10, engine="rdp") == 1e-3
    assert steps_for(0.5, 1e-5, noise_multiplier=1e9, sampling_rate=1e-9, engine="rdp") == 2**50


def test_out_of_reach_says_what_is_within():
    with pytest.raises(InputError, match=r"epsilon=1e-06 at delta=1e-05.* is spent"):
        noise_for(1e-6, 1e-5, sampling_rate=0.1, steps=10, engine="moments")
    with pytest.raises(InputError, match=r"epsilon=0.1 at delta=1e-05.*\(1\) .* is spent"):
        steps_for(0.1, 1e-5, noise_multiplier=0.5, sampling_rate=0.5, engine="rdp")
    with pytest.raises(InputError, match=r"epsilon=0\.001"):
        rate_for(1e-3, 1e-5, noise_multiplier=0.5, steps=5, engine="moments")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"sampling_rate": 2}, "sampling_rate"),
        ({"steps": 0}, "steps"),
        ({"engine": "magic"}, "engine"),
        ({"adjacency": "magic"}, "adjacency"),
    ],
)
def test_bad_input(change, word):
    arguments = {"epsilon": 1.0, "delta": 1e-5, "sampling_rate": 0.1, "steps": 10, "engine": "rdp", **change}
    with pytest.raises(InputError, match=word):
        noise_for(**arguments)


def test_more_bad_input():
    with pytest.raises(InputError, match="sampling_rate"):
        steps_for(1.0, 1e-5, noise_multiplier=1.0, sampling_rate=0)
    with pytest.raises(InputError, match="noise_multiplier"):
        rate_for(1.0, 1e-5, noise_multiplier=0, steps=5)
    with pytest.raises(InputError, match="start"):
        calibrate_noise(lambda z: WorstCaseAccountant(), 1.0, 1e-5, start=0)


def advantage(z, q, steps, **kind):
    accountant = WorstCaseAccountant(**kind)
    accountant.step(noise_multiplier=z, sampling_rate=q, steps=steps)
    return accountant.attacker().advantage


@given(
    st.floats(0.01, 0.95),
    st.floats(1e-3, 1),
    st.integers(1, 500),
    st.sampled_from(["add-remove", "replace-one"]),
)
@settings(max_examples=2)
def test_a_risk_is_never_overshot(most, q, steps, adjacency):
    z = noise_for(advantage=most, sampling_rate=q, steps=steps, adjacency=adjacency)
    assert advantage(z, q, steps, adjacency=adjacency) <= most
    if z > 1.1e-3:
        assert advantage(z / 1.001, q, steps, adjacency=adjacency) > most * (1 - 1e-4)


def test_a_gaussian_risk_has_a_closed_form():
    """Φ(μ/2) = 0.55 and μ = √T/z."""
    exact = 3 / (2 * norm.ppf(0.55))
    found = noise_for(attacker=0.55, sampling_rate=1.0, steps=9)
    assert exact <= found <= exact * 1.0002
    assert found == pytest.approx(noise_for(advantage=0.1, sampling_rate=1.0, steps=9), rel=1e-9)
    assert steps_for(attacker=0.55, noise_multiplier=found, sampling_rate=1.0) == 9
    assert rate_for(attacker=0.55, noise_multiplier=found, steps=9) == 1.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({}, "epsilon"),
        ({"epsilon": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 1e-5, "attacker": 0.6}, "attacker"),
        ({"attacker": 0.6, "advantage": 0.2}, "advantage"),
        ({"attacker": 0.5}, "attacker"),
        ({"attacker": 1.0}, "attacker"),
        ({"advantage": 0.0}, "advantage"),
        ({"advantage": 1.0}, "advantage"),
    ],
)
def test_a_promise_is_one_of_three(wrong, named):
    with pytest.raises(InputError, match=named):
        noise_for(**wrong, sampling_rate=0.1, steps=10)
