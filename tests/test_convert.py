"""Conversions B10, attackers B12, groups B15: vectors I-1 and I-13, invariants M4 and M12."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import convert
from bayesdp.errors import InputError

ORDERS = np.concatenate([np.arange(1.1, 11, 0.1), np.arange(11, 600)])
EPSILONS = st.floats(0, 50)
DELTAS = st.floats(1e-12, 0.5)


def gaussian(mu, orders=ORDERS):
    return orders * (orders - 1) * mu**2 / 2


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


I_1 = {
    0.16: 0.539914884555566,
    0.5: 0.622459331201855,
    0.51: 0.624806474468429,
    0.62: 0.650218548573827,
    1: 0.731058578630005,
    2: 0.880797077977882,
    2.18: 0.898439072102363,
    5: 0.993307149075715,
    7.6: 0.99949979889292,
    8: 0.999664649869534,
    10: 0.999954602131298,
}


@pytest.mark.parametrize(("epsilon", "success"), I_1.items())
def test_attacker_success_vectors(epsilon, success):
    assert convert.attacker_success(epsilon) == pytest.approx(success, abs=6e-16, rel=2e-15)


def test_attacker_success_approximate_and_prior():
    assert convert.attacker_success(1, 1e-5) == pytest.approx(0.731061268044219, rel=2e-15)
    e = math.exp(1)
    assert convert.attacker_success(1, prior=0.2) == pytest.approx(0.2 * e / (0.2 * e + 0.8), rel=1e-14)
    assert convert.attacker_success(0, prior=0.3) == pytest.approx(0.3)
    assert convert.attacker_success(1e6) == 1.0
    assert convert.attacker_success(math.inf, 1e-5) == 1.0
    assert convert.attacker_success_gdp(0) == 0.5
    assert convert.attacker_success_gdp(1) == pytest.approx(0.6914624612740131, rel=1e-14)


@given(st.lists(st.floats(1e-3, 1), min_size=3, max_size=5), st.randoms(), EPSILONS, st.floats(0.01, 0.99))
def test_attacker_bounds_hold_for_any_pair(weights, random, epsilon, prior):
    """Random pairs at their own δ(ε): mean belief and the best guess both stay under the bound."""
    p = np.array(weights) / sum(weights)
    other = np.array([random.random() + 1e-3 for _ in weights])
    q = other / other.sum()
    delta = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    belief = float((p * prior * p / (prior * p + (1 - prior) * q)).sum())
    assert belief <= convert.attacker_success(epsilon, delta, prior) + 1e-12
    best_guess = float(np.maximum(p, q).sum()) / 2
    assert best_guess <= convert.attacker_success(epsilon, delta) + 1e-12
    assert 2 * best_guess - 1 <= convert.advantage(epsilon, delta) + 1e-12


def test_advantage():
    assert convert.advantage(0) == 0
    assert convert.advantage(1, 1e-5) == pytest.approx((math.e - 1 + 2e-5) / (math.e + 1), rel=1e-14)
    assert convert.advantage(1e6) == convert.advantage(0, 1) == 1.0


def test_group_vector_and_extremes():
    assert convert.group(1, 0.01, 2) == (2, pytest.approx(0.0371828182846, abs=5e-14))
    assert convert.group(0, 0.01, 3) == (0, pytest.approx(0.03))
    assert convert.group(0.5, 0, 4) == (2, 0)
    assert convert.group(1e6, 1e-300, 3) == (3e6, 1.0)
    assert convert.group(math.inf, 0.1, 2) == (math.inf, 1.0)
    assert convert.group(1.5, 0.25, 1) == (1.5, 0.25)


def test_group_is_attained_by_three_distributions():
    """I-13, M12: neighbours are (1, 0.01)-close and the ends of the chain are exactly B15 apart."""
    e, d = math.e, 0.01
    # Mass d appears at each link in a place of its own; the rest of the mass moves by the factor e.
    a = np.array([d + e * (d + e * 0.1), 0.0])
    b = np.array([d + e * 0.1, 0.0])
    c = np.array([0.1, 0.0])
    for one in (a, b, c):
        one[1] = 1 - one[0]
    assert hockey_stick(a, b, 1) == pytest.approx(d)
    assert hockey_stick(b, c, 1) == pytest.approx(d)
    assert hockey_stick(a, c, 2) == pytest.approx(convert.group(1, d, 2)[1], rel=1e-12)
    assert hockey_stick(a, c, 2) > 2 * d  # S1's (kε, kδ) fails (ERR 7)


@given(st.floats(0.01, 3), DELTAS, DELTAS)
def test_hockey_stick_below_tail_and_falling_in_delta(mu, one, two):
    low, high = sorted((one, two))
    for strength in convert.STRENGTHS:
        assert convert.epsilon(gaussian(mu), ORDERS, low, strength) >= convert.epsilon(
            gaussian(mu), ORDERS, high, strength
        )
    tail = convert.epsilon_per_order(gaussian(mu), ORDERS, low, "strong")
    assert (convert.epsilon_per_order(gaussian(mu), ORDERS, low) <= tail).all()


@given(st.floats(0.01, 3), st.floats(0, 20))
def test_delta_is_the_inverse_of_epsilon_and_bounds_the_gaussian(mu, epsilon):
    """B8 in 50 digits is never above the converted δ; converting back gives ε."""
    with mpmath.workdps(50):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))
    for strength in convert.STRENGTHS:
        delta = float(convert.delta(gaussian(mu), ORDERS, epsilon, strength))
        assert exact <= delta <= 1
        if 1e-200 < delta < 0.999:
            back = convert.epsilon(gaussian(mu), ORDERS, delta, strength)
            assert back == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("order", [1.01, 2.0, 8.5, 64.0])
def test_one_order_against_high_precision(order):
    cost, target = 0.7, 1e-5
    with mpmath.workdps(50):
        a = mpmath.mpf(order)
        tail = mpmath.mpf(cost) / (a - 1) + mpmath.log(1 / mpmath.mpf(target)) / (a - 1)
        hockey = tail + mpmath.log((a - 1) / a) - mpmath.log(a) / (a - 1)
    ours = convert.epsilon_per_order([cost], [order], target, "strong")
    assert ours == pytest.approx([float(tail)], rel=1e-13)
    assert convert.epsilon_per_order([cost], [order], target) == pytest.approx([float(hockey)], rel=1e-13)


def test_shapes_infinities_and_best_order():
    costs = np.stack([gaussian(0.5), np.full(ORDERS.size, np.inf), np.zeros(ORDERS.size)])
    answer = convert.epsilon(costs, ORDERS, 1e-5)
    assert answer.shape == (3,)
    assert answer[1] == np.inf
    assert answer[2] < answer[0]
    assert convert.delta(costs, ORDERS, 3.0)[1] == 1.0
    assert isinstance(convert.epsilon(costs[0], ORDERS, 1e-5), float)
    orders = convert.best_order(costs, ORDERS, delta=1e-5)
    assert convert.epsilon(costs[0, np.isin(ORDERS, orders[0])], orders[:1], 1e-5) == answer[0]
    mixed = costs[0].copy()
    mixed[::2] = np.inf  # an infinite order is left out, not poisonous
    assert np.isfinite(convert.epsilon(mixed, ORDERS, 1e-5))
    order = convert.best_order(costs[0], ORDERS, epsilon=2.0, strength="strong")
    assert order == ORDERS[np.argmin(gaussian(0.5) - (ORDERS - 1) * 2.0)]


def test_no_overflow():
    assert convert.delta([1e300], [1025.0], 1e6) == 1.0
    assert convert.delta([1.0], [1025.0], 1e6) == 5e-324
    assert convert.epsilon([1e300], [1.5], 1e-300) == pytest.approx(2e300)


BAD = [
    (lambda: convert.epsilon([1.0], [1.0], 1e-5), "orders"),
    (lambda: convert.epsilon([1.0, 2.0], [2.0], 1e-5), "costs"),
    (lambda: convert.epsilon(1.0, [2.0], 1e-5), "costs"),
    (lambda: convert.epsilon([-1.0], [2.0], 1e-5), "costs"),
    (lambda: convert.epsilon([math.nan], [2.0], 1e-5), "costs"),
    (lambda: convert.epsilon([1.0], [2.0], 0), "delta"),
    (lambda: convert.epsilon([1.0], [2.0], 1.5), "delta"),
    (lambda: convert.epsilon([1.0], [2.0], 1e-5, "chernoff"), "strength"),
    (lambda: convert.delta([1.0], [2.0], -1), "epsilon"),
    (lambda: convert.best_order([1.0], [2.0]), "exactly one"),
    (lambda: convert.best_order([1.0], [2.0], delta=0.1, epsilon=1.0), "exactly one"),
    (lambda: convert.attacker_success(-1), "epsilon"),
    (lambda: convert.attacker_success(math.nan), "epsilon"),
    (lambda: convert.attacker_success(1, 2), "delta"),
    (lambda: convert.attacker_success(1, prior=1), "prior"),
    (lambda: convert.attacker_success_gdp(-1), "mu"),
    (lambda: convert.advantage([1.0, 2.0]), "epsilon"),
    (lambda: convert.group(1, 0.1, 0), "k"),
    (lambda: convert.group(1, 0.1, 1.5), "k"),
]


@pytest.mark.parametrize(("call", "word"), BAD, ids=itertools.count())
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_a_tiny_delta_is_not_zero_and_infinities_do_not_cancel():
    assert convert.delta([0.1], [1024.0], 2.0) > 0
    assert convert.delta([math.inf], [1e300], 1e300) == 1.0
    assert convert.epsilon([1e300], [1 + 1e-12], 1e-5) == math.inf


def test_right_guesses_need_both_directions():
    """One direction alone: P = {1}, Q(1) = e^-ε has loss ε, belief e^ε/(1 + e^ε), yet more right guesses."""
    epsilon = 1.0
    p, q = np.array([1.0, 0.0]), np.array([math.exp(-epsilon), -math.expm1(-epsilon)])
    belief = float((p**2 / (p + q)).sum())
    assert belief == pytest.approx(convert.attacker_success(epsilon))
    guesses = 0.5 + 0.25 * float(np.abs(p - q).sum())
    assert guesses == pytest.approx(1 - math.exp(-epsilon) / 2)
    assert guesses > convert.attacker_success(epsilon)
