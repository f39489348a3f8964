"""Orders chosen before the run: far enough, near enough, from public quantities only (H12)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import convert
from bayesdp.compose import ex_post, orders
from bayesdp.divergence import sgm
from bayesdp.errors import InputError

PLANS = [
    (2, 0.0183, 820),
    (1, 0.0091, 875),
    (4.03, 0.0731, 273),
    (0.469, 128 / 60000, 4690),
    (1, 64 / 60000, 10000),
    (10, 1, 100),
    (0.3, 0.01, 10),
]


def dense():
    return np.unique(np.concatenate([1 + np.geomspace(0.05, 3, 40), np.round(np.geomspace(4, 4096, 90))]))


def test_default_orders():
    grid = orders.default_orders()
    assert 24 <= grid.size <= 34
    assert np.all(np.diff(grid) > 0)
    assert grid[0] < 1.5
    assert grid[-1] == 4096
    assert np.all(grid[grid > 4] == np.round(grid[grid > 4]))
    assert np.max((grid[1:] - 1) / (grid[:-1] - 1)) <= 2


@pytest.mark.parametrize("shift", [1.0, 0.7, 0.1])
def test_default_orders_hold_the_optimum_of_the_sweep(shift):
    """I-2 at q = 64/60000, T = 10000: the best orders 13, 27 and about 401 lie inside the grid."""
    cost = 10_000 * sgm.cost(shift, orders.default_orders(), sampling_rate=64 / 60000)
    best = {1.0: 1.10646818056, 0.7: 0.543146467015, 0.1: 0.0518080572362}[shift]
    tails = ex_post.tail(cost, orders.default_orders(), 1e-5)
    assert tails.min() < 1.15 * best
    assert 0 < tails.argmin() < tails.size - 1


@pytest.mark.parametrize(("noise", "rate", "steps"), PLANS)
def test_planned_orders_are_near_the_best(noise, rate, steps):
    grid, weights = orders.planned(noise, rate, steps, 1e-5)
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights > 0)
    assert 6 <= grid.size <= 15
    for fraction, loss in ((1.0, 1.3), (0.5, 1.5), (0.1, 1.65)):
        mixed = ex_post.epsilon(steps * sgm.cost(fraction / noise, grid, sampling_rate=rate), grid, 1e-5, weights)
        costs = steps * sgm.cost(fraction / noise, dense(), sampling_rate=rate)
        assert mixed <= loss * convert.epsilon(costs, dense(), 1e-5)
    quiet = ex_post.epsilon(steps * sgm.cost(0.1 / noise, grid, sampling_rate=rate), grid, 1e-5, weights)
    uniform = orders.default_orders()
    assert quiet < ex_post.epsilon(steps * sgm.cost(0.1 / noise, uniform, sampling_rate=rate), uniform, 1e-5)


def test_the_first_order_is_the_best_of_the_clip_norm_and_the_last_of_a_fiftieth_of_it():
    grid, weights = orders.planned(2, 0.0183, 820, 1e-5)
    for fraction, place in ((1.0, 0), (0.02, -1)):
        tails = ex_post.tail(820 * sgm.cost(fraction / 2, dense(), sampling_rate=0.0183), dense(), 1e-5)
        assert grid[place] == pytest.approx(dense()[tails.argmin()], rel=0.15)
    assert weights[0] > weights[1]


def test_phases_add_up():
    whole = orders.planned(2.0, 0.01, 1000, 1e-5)
    parts = orders.planned([2.0, 2.0], 0.01, [400, 600], 1e-5)
    assert whole[0].tolist() == parts[0].tolist()
    louder = orders.planned([4.0, 2.0], 0.01, [400, 600], 1e-5)
    assert louder[0][1] >= whole[0][1]


@pytest.mark.parametrize(("noise", "rate"), [(1e-200, 1.0), (1e-200, 0.01), (1e6, 1.0), (1e6, 1e-4), (1.0, 0.0)])
def test_extreme_plans_give_usable_orders(noise, rate):
    grid, weights = orders.planned(noise, rate, 10, 1e-5)
    assert np.all(grid > 1)
    assert np.all(grid <= orders.LARGEST)
    assert np.all(np.diff(grid) > 0)
    assert weights.sum() == pytest.approx(1)


@given(st.floats(1e-6, 1e4), st.floats(1e-12, 0.5))
def test_closed_form_of_the_gaussian(rho, delta):
    order, epsilon = orders.gaussian_best_order(rho, delta)
    near = 1 + (order - 1) * np.array([0.5, 0.99, 1.0, 1.01, 2.0])
    tails = ex_post.tail((near - 1) * near * rho / 2, near, delta)
    assert tails.argmin() == 2
    assert tails[2] == pytest.approx(epsilon, rel=1e-9)
    assert orders.gaussian_best_order(0.0, delta) == (math.inf, 0.0)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: orders.planned(0, 0.1, 10, 1e-5), "noise_multiplier"),
        (lambda: orders.planned(1, 1.1, 10, 1e-5), "sampling_rate"),
        (lambda: orders.planned(1, 0.1, 0, 1e-5), "steps"),
        (lambda: orders.planned(1, 0.1, 1.5, 1e-5), "steps"),
        (lambda: orders.planned(1, 0.1, 10, 0), "delta"),
        (lambda: orders.planned([1, 2], 0.1, [1, 2, 3], 1e-5), "matching shapes"),
        (lambda: orders.gaussian_best_order(-1, 1e-5), "rho"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()
