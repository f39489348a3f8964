"""Summed costs from a lattice: never below the exact sum, and hardly above it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError
from bayesdp.divergence import sgm
from bayesdp.divergence.lattice import NARROWEST, SMALLEST, TOLERANCE, CostLattice

ORDERS = np.array([1.5, 2.0, 8.0, 33.0])


def exact(squared, rate):
    return sgm.cost(np.sqrt(squared), ORDERS, sampling_rate=rate).sum(axis=0)


@pytest.mark.parametrize("rate", [128 / 60_000, 0.1, 1.0])
def test_sums_are_the_exact_ones_from_above(rate):
    rng = np.random.default_rng(0)
    squared = np.minimum(rng.weibull(0.5, (40, 25)), 1.0) * np.geomspace(1e-12, 2, 25)
    squared[:, 3] = 0
    found = CostLattice(ORDERS, sampling_rate=rate)(squared)
    true = exact(squared, rate)
    assert (found >= true).all()
    assert np.allclose(found, true, rtol=1.1 * TOLERANCE, atol=1e-300)
    assert (found[3] == 0).all()


@given(st.lists(st.floats(0, 5), min_size=1, max_size=8), st.sampled_from([0.01, 0.5]))
def test_no_single_shift_is_costed_below_the_truth(shifts, rate):
    squared = np.array(shifts)[None]
    found = CostLattice(ORDERS, sampling_rate=rate)(squared)
    assert (found >= sgm.cost(np.sqrt(squared[0]), ORDERS, sampling_rate=rate)).all()


def test_shifts_on_and_beside_the_lattice_are_right():
    lattice = CostLattice(ORDERS, sampling_rate=0.02)
    lattice(np.array([[3.0]]))
    points = lattice._points[2:-1]
    points = np.concatenate([points[::7], 2.0 ** np.arange(-30, 2), [SMALLEST]])  # and where the digits change
    beside = np.concatenate([points, np.nextafter(points, 0), np.nextafter(points, 9), [0.0, 1e-300, 5e-324]])[None]
    found = lattice(beside)
    true = sgm.cost(np.sqrt(beside[0]), ORDERS, sampling_rate=0.02)
    assert (found >= true).all()
    assert np.allclose(found, true, rtol=1.1 * TOLERANCE)


@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.5])
def test_where_costs_explode_they_are_as_near(rate):
    """Large orders bend sharply at u of about 2 log(1/q)/α: chords of one width would be too high there."""
    orders = np.array([16.0, 64.0, 256.0, 1024.0])
    squared = np.geomspace(1e-4, 2, 4_001)[None]
    found = CostLattice(orders, sampling_rate=rate)(squared)
    true = sgm.cost(np.sqrt(squared[0]), orders, sampling_rate=rate)
    assert (found >= true).all()
    too_wide = (orders * np.log(1 / rate) * NARROWEST) ** 2 / 8  # above the tolerance for the largest orders only
    assert (found <= true * (1 + 1.1 * (TOLERANCE + 1.3 * too_wide))).all()
    assert (found[:, 0] <= true[:, 0] * (1 + 1.1 * TOLERANCE)).all()


def test_a_later_call_may_reach_farther_and_records_may_be_many():
    lattice = CostLattice([2.0], sampling_rate=0.05)
    few = lattice(np.full((3, 2), 0.01))
    many = lattice(np.concatenate([np.full((3, 200_000), 0.01), np.full((3, 1), 30.0)], axis=1))
    assert np.allclose(many[:2], few, rtol=1e-9)
    assert np.allclose(many[-1], 3 * sgm.cost([np.sqrt(30)], [2.0], sampling_rate=0.05)[0], rtol=1e-3)


@pytest.mark.parametrize("bad", [[[-1.0]], [[np.nan]], [[np.inf]], [1.0], [[]]])
def test_bad_shifts_are_refused(bad):
    with pytest.raises(InputError, match="squared_shifts"):
        CostLattice([2.0], sampling_rate=0.1)(bad)
