"""Two-sided geometric noise: the law, exactly, and what it promises."""

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from scipy.stats import chisquare

from bayesdp.errors import InputError
from bayesdp.mechanism.discrete_laplace import _kept, discrete_laplace


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2), Fraction(5)])
def test_draws_follow_the_law(scale):
    draw = random.Random(1).randrange
    drawn = Counter(discrete_laplace(scale, draw) for _ in range(6000))
    a = math.exp(-1 / scale)
    reach = max(abs(k) for k in drawn)
    expected = {k: 6000 * (1 - a) / (1 + a) * a ** abs(k) for k in range(-reach, reach + 1)}
    often = [k for k, mean in expected.items() if mean >= 10]
    rare = 6000 - sum(expected[k] for k in often)
    seen = [drawn[k] for k in often] + [6000 - sum(drawn[k] for k in often)]
    assert chisquare(seen, [expected[k] for k in often] + [rare]).pvalue > 1e-4
    assert min(drawn) < 0 < max(drawn)


def test_a_coin_of_chance_e_to_the_minus_x_is_exact():
    # All outcomes of the uniform draws for x = 1/2, weighted: coins of chance 1/2, 1/4, 1/6, … until one fails.
    total, x = Fraction(0), Fraction(1, 2)
    for tosses in range(1, 12):
        chance = Fraction(1)
        for k in range(1, tosses):
            chance *= x / k
        chance *= 1 - x / tosses
        script = iter([0] * (tosses - 1) + [x.denominator * tosses - 1])
        if _kept(x, lambda n, script=script: next(script)):
            total += chance
    assert float(total) == pytest.approx(math.exp(-0.5), rel=1e-9)


def test_neighbouring_counts_have_laws_within_the_factor():
    scale = Fraction(2) / Fraction(1, 2)  # a count that moves by 2, for ε = 1/2
    law = {k: math.exp(-abs(k) / scale) for k in range(-60, 61)}
    for k, shift in product(range(-50, 51), (-2, -1, 1, 2)):
        assert law[k] <= math.exp(0.5) * law[k - shift] * (1 + 1e-12)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1)])
def test_bad_scales_are_refused(scale):
    with pytest.raises(InputError, match="scale"):
        discrete_laplace(scale)
