"""Plain sums (B11, C20) and where basic composition of Bayesian DP stops holding (ERR 5)."""

import math

import numpy as np
import pytest

from bayesdp.compose import additive
from bayesdp.errors import InputError


def test_total_adds_each_order_along_any_axis():
    costs = np.array([[1.0, 2.0], [0.5, np.inf], [0.25, 4.0]])
    assert additive.total(costs).tolist() == [1.75, np.inf]
    assert additive.total(costs, axis=1).tolist() == [3.0, np.inf, 4.25]
    assert additive.total(costs, axis=-1).tolist() == [3.0, np.inf, 4.25]


def test_basic_adds_epsilons_and_deltas():
    assert additive.basic([0.5] * 4, [1e-5] * 4) == (2.0, pytest.approx(4e-5))
    assert additive.basic(1.0, 0.6) == (1.0, 0.6)
    assert additive.basic([1.0, 1.0], [0.6, 0.6]) == (2.0, 1.0)


def test_basic_fails_for_members_when_steps_adapt():
    """ERR 5: x' uniform on N values. Step 1 prints a value, x' a little too often (ε = 1, δ = 0); step 2
    reveals whether a record equal to the printed value is present (ε = 0, δ = 1/N for x' ~ μ, any print).
    """
    population = 1000
    extra = (math.e - 1) / (population - 1)
    says_own = extra + (1 - extra) / population
    loss_of_own = math.log(says_own * population)
    epsilon, delta = additive.basic([loss_of_own, 0.0], [0.0, 1 / population])
    assert epsilon == pytest.approx(1, abs=1e-9)
    outsiders, members = 1 / population, says_own
    assert outsiders <= delta
    assert members > 2.7 * delta
    assert members <= math.exp(epsilon) * delta * (1 + 1e-9)  # the change of measure that ERR 5 asks for


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: additive.total([[1.0, -1.0]]), "costs"),
        (lambda: additive.total([[1.0, math.nan]]), "costs"),
        (lambda: additive.total([]), "costs"),
        (lambda: additive.total(3.0), "costs"),
        (lambda: additive.total([1.0, 2.0], axis=1), "axis"),
        (lambda: additive.basic([-1.0], [0.0]), "epsilons"),
        (lambda: additive.basic([1.0], [2.0]), "deltas"),
        (lambda: additive.basic([1.0, 1.0], [0.1]), "deltas"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()
