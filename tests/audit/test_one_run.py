import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from bayesdp.audit.one_run import Guesses, guessed
from bayesdp.errors import InputError

RUNS = [(1000, 300, 260), (1000, 100, 99), (500, 500, 330), (2000, 40, 40)]
COUNTING = [1.5841403174587132, 3.002832256676205, 0.5042284600100849, 2.4958029408510543]
CURVE = [2.6350244881919895, 4.726715076744276, 1.0140632988342244, 3.358744533824196]
"""What JAX-Privacy's auditing (2.3.0.dev0) says of these runs at δ = 1e-5, 95 %: benchmarks/audit_jax_privacy.py."""


class Gaussian:
    def __init__(self, shift):
        self.shift = shift

    def false_alarms(self, power):
        return float(ndtr(ndtri(power) - self.shift))


@pytest.mark.parametrize(("run", "epsilon"), [*zip(RUNS, COUNTING, strict=True)])
def test_the_counting_form_is_jax_privacys(run, epsilon):
    assert Guesses(*run).epsilon(1e-5, 0.05) == pytest.approx(epsilon, abs=3e-6)


@pytest.mark.parametrize(("run", "epsilon"), [*zip(RUNS, CURVE, strict=True)])
def test_the_f_dp_form_is_jax_privacys(run, epsilon):
    from bayesdp.divergence.hockey_stick import gaussian_shift

    shift = float(gaussian_shift(epsilon, 1e-5))
    assert Guesses(*run).refute(Gaussian(shift * 0.999), 0.05)
    assert not Guesses(*run).refute(Gaussian(shift * 1.001), 0.05)


def test_the_p_value_holds_for_all_that_randomised_response_can_say():
    """Every outcome of 6 coins told truly with chance e^ε/(1 + e^ε): as many right guesses are as rare as is said."""
    epsilon = 1.1
    share = 1 / (1 + math.exp(-epsilon))
    rights = [sum(one) for one in itertools.product((0, 1), repeat=6)]
    chances = [share**right * (1 - share) ** (6 - right) for right in rights]
    for right in range(7):
        true = sum(chance for chance, one in zip(chances, rights, strict=True) if one >= right)
        assert Guesses(6, 6, right).p_value(epsilon, 0.0) == pytest.approx(true)
        assert Guesses(6, 6, right).p_value(epsilon, 0.01) >= true


def test_both_forms_refute_a_true_claim_no_more_often_than_they_say():
    rng, canaries, shift, failure = np.random.default_rng(2), 300, 1.0, 0.05
    from bayesdp.divergence.hockey_stick import gaussian_epsilon

    exact = float(gaussian_epsilon(1e-5, shift))
    counted = curved = near = 0
    for _ in range(200):
        coins = rng.random(canaries) < 0.5
        found = guessed(rng.normal(size=canaries) + shift * coins, coins, 100)
        counted += found.p_value(exact, 1e-5) <= failure
        curved += found.refute(Gaussian(shift), failure)
        near += found.refute(Gaussian(shift / 3), failure)
    assert counted <= 18
    assert curved <= 18
    assert near >= 150


def test_guesses_are_the_top_and_the_bottom():
    scores = np.array([0.1, 5.0, -3.0, 2.0, -1.0, 0.0])
    coins = np.array([1, 1, 0, 0, 0, 1], bool)
    assert guessed(scores, coins, 4) == Guesses(6, 4, 3)
    assert guessed(scores, coins, 1) == Guesses(6, 1, 1)
    assert guessed(scores, coins, 0).epsilon(1e-5, 0.05) == 0
    assert not guessed(scores, coins, 0).refute(Gaussian(0.0), 0.05)
    with pytest.raises(InputError):
        guessed(scores, coins[:3], 2)
