"""Summed costs from a lattice: never below the exact sum, and hardly above it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp import InputError
from bayesdp.divergence import sgm
from bayesdp.divergence.lattice import RATIO, SMALLEST, CostLattice

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
    assert np.allclose(found, true, rtol=3e-4, atol=1e-300)
    assert (found[3] == 0).all()


@given(st.lists(st.floats(0, 5), min_size=1, max_size=8), st.sampled_from([0.01, 0.5]))
def test_no_single_shift_is_costed_below_the_truth(shifts, rate):
    squared = np.array(shifts)[None]
    found = CostLattice(ORDERS, sampling_rate=rate)(squared)
    assert (found >= sgm.cost(np.sqrt(squared[0]), ORDERS, sampling_rate=rate)).all()


def test_shifts_on_and_beside_the_lattice_are_right():
    points = SMALLEST * RATIO ** np.arange(0, 5500, 7)
    beside = np.concatenate([points, np.nextafter(points, 0), np.nextafter(points, 9)])[None]
    found = CostLattice(ORDERS, sampling_rate=0.02)(beside)
    true = sgm.cost(np.sqrt(beside[0]), ORDERS, sampling_rate=0.02)
    assert (found >= true).all()
    assert np.allclose(found, true, rtol=1e-5)


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
