"""The cost table: an upper bound within 1e-6 of the exact cost, everywhere; and the theorem it rests on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.divergence import sgm
from bayesdp.divergence.table import TOLERANCE, CostTable, RoundedUp, _knots
from bayesdp.errors import InputError

ORDERS = np.array([1.05, 1.25, 1.5, 2, 2.5, 3, 5, 8, 17, 64, 256, 1024])


@pytest.mark.parametrize("rate", [1e-5, 0.01, 0.3, 0.97])
def test_lookup_is_above_exact_and_within_a_millionth(rate):
    rng = np.random.default_rng(7)
    squared = np.concatenate([10 ** rng.uniform(-12, 1.2, 300), [1e-30, 4.0, 16.0]])
    table, exact = (
        CostTable(ORDERS, sampling_rate=rate),
        sgm.cost(np.sqrt(squared), ORDERS, sampling_rate=rate),
    )
    ratio = table(squared) / exact
    assert ratio.min() >= 1
    assert ratio.max() <= 1 + TOLERANCE


def test_lookup_holds_at_the_middle_of_every_cell():
    """The certificate bounds a cell by its middle; here the middles and thirds themselves are checked."""
    for order in (1.5, 4.0, 32.0):
        u, _ = _knots(order, 0.02, 0)
        u = u[u <= 4]
        for share in (1 / 3, 0.5, 0.9):
            at = u[:-1] + share * np.diff(u)
            ratio = CostTable([order], sampling_rate=0.02)(at) / sgm.cost(np.sqrt(at), [order], sampling_rate=0.02)
            assert ratio.min() >= 1
            assert ratio.max() <= 1 + TOLERANCE


def test_far_shifts_need_no_more_knots():
    orders = np.array([2, 8, 1024])
    table, squared = CostTable(orders, sampling_rate=0.01), np.array([1e2, 1e6, 1e12])
    ratio = table(squared) / sgm.cost(np.sqrt(squared), orders, sampling_rate=0.01)
    assert ratio.min() >= 1
    assert ratio.max() <= 1 + TOLERANCE


def test_levels_extend_each_other():
    """A table first used for small shifts gives the same small costs after it has grown."""
    small = np.geomspace(1e-3, 4, 200)
    before = CostTable([1.5, 3], sampling_rate=0.005)(small)
    after = CostTable([1.5, 3], sampling_rate=0.005)(np.append(small, 60.0))
    np.testing.assert_array_equal(before, after[:-1])
    exact = sgm.cost([math.sqrt(60)], [1.5, 3], sampling_rate=0.005)[0]
    assert (after[-1] >= exact).all()
    assert (after[-1] <= exact * (1 + TOLERANCE)).all()


@given(
    st.floats(-6, -0.005).map(lambda e: 10**e),
    st.floats(-1.5, 1.2).map(lambda e: 1 + 10**e),
    st.floats(-6, 1.5).map(lambda e: 10**e),
    st.floats(1.001, 30),
    st.floats(0, 1),
)
def test_theorem_cost_is_convex_in_squared_shift_for_every_real_order(rate, order, u, factor, t):
    ends = np.array([u, u * factor])
    middle = t * ends[0] + (1 - t) * ends[1]
    f = sgm.cost(np.sqrt(np.append(ends, middle)), [order], sampling_rate=rate)[:, 0]
    assert f[2] <= (t * f[0] + (1 - t) * f[1]) * (1 + 1e-10)


def test_add_direction_is_not_convex_so_it_has_no_chords():
    """Why `RoundedUp` exists: the theorem's sign fails for the add direction."""
    u = np.linspace(0.05, 60, 400)
    f = sgm.cost(np.sqrt(u), [9], sampling_rate=0.3, direction="add")[:, 0]
    assert (np.diff(f, 2) < 0).any()


def test_rounding_up_is_above_and_close_and_costs_each_point_once():
    calls = []

    def exact(shift):
        calls.append(len(shift))
        return sgm.cost(shift, [2, 9], sampling_rate=0.1, direction="add")

    table, shift = RoundedUp(exact), np.concatenate([[0.0], np.linspace(0.01, 3, 5000)])
    got, truth = table(shift), sgm.cost(shift, [2, 9], sampling_rate=0.1, direction="add")
    assert (got >= truth).all()
    assert (got[1:] <= truth[1:] * 1.01).all()
    table(shift)
    assert len(calls) == 1


def test_rates_zero_and_one():
    np.testing.assert_array_equal(CostTable([2, 3], sampling_rate=0)(np.array([5.0])), [[0, 0]])
    np.testing.assert_allclose(CostTable([2, 3], sampling_rate=1)(np.array([5.0])), [[5, 15]], rtol=1e-10)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="orders"):
        CostTable([0.5], sampling_rate=0.1)
    with pytest.raises(InputError, match="sampling_rate"):
        CostTable([2], sampling_rate=-0.1)


def test_beyond_its_last_knot_the_table_says_infinity():
    """It used to repeat the cost of a squared shift of 1e30."""
    far = CostTable([1.5, 2], sampling_rate=0.1)(np.array([1e29, 1e31, np.inf]))
    assert np.isfinite(far[0]).all()
    assert (far[1:] == np.inf).all()
    assert (CostTable([2], sampling_rate=0)(np.array([1e31])) == 0).all()
