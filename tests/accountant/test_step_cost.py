"""From distances to costs: exact for few, never below for many, raised for low precision, both sides of a swap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.accountant.step_cost import EXACT_RECORDS, FAR, FLOAT32_SLACK, HALF_SLACK, StepCost
from bayesdp.divergence import replace_one, sgm
from bayesdp.errors import InputError

ORDERS = np.array([1.5, 2, 4, 9, 33])


def costing(adjacency="add-remove", direction="both", cap=None, orders=ORDERS):
    return StepCost(orders, adjacency=adjacency, direction=direction, cap=cap)


def padded(distances):
    """The same distances among so many that the table answers."""
    return np.concatenate([np.asarray(distances, dtype=float), np.linspace(0, 1, EXACT_RECORDS)])


@pytest.mark.parametrize(("direction", "as_in"), [("both", "remove"), ("remove", "remove"), ("add", "add")])
def test_few_records_are_costed_exactly(direction, as_in):
    d = np.array([0.0, 0.1, 0.7, 3.0])
    want = sgm.cost(d / 0.8, ORDERS, sampling_rate=0.05, direction=as_in)
    np.testing.assert_array_equal(costing(direction=direction)(d, 0.8, 0.05), want)


@given(
    st.lists(st.floats(0, 30), min_size=1, max_size=6),
    st.floats(0.3, 5),
    st.sampled_from([0.0, 1e-3, 0.02, 0.5, 1.0]),
)
def test_many_records_are_costed_within_a_millionth_and_never_below(distances, noise, rate):
    exact = costing()(np.array(distances), noise, rate)
    table = costing()(padded(distances), noise, rate)[: len(distances)]
    assert (table >= exact * (1 - 1e-12)).all()
    assert (table <= exact * (1 + 1.1e-6)).all()


@pytest.mark.parametrize(
    ("adjacency", "direction"), [("add-remove", "add"), ("replace-one", "both"), ("replace-one", "add")]
)
def test_rounding_up_is_never_below_and_at_most_a_thousandth_of_shift_away(adjacency, direction):
    make = costing(adjacency, direction, cap=2.0, orders=np.array([2.0, 9.0]))
    d = np.array([0.0, 1e-3, 0.31, 0.99, 1.9])
    exact, near, many = (make(x, 1.3, 0.1) for x in (d, d * 1.002 + 1e-9, padded(d)))
    assert (many[: len(d)] >= exact).all()
    assert (many[: len(d)] <= near * (1 + 1e-9)).all()


def test_chunks_give_the_same_as_the_whole():
    d = np.random.default_rng(0).random(3 * EXACT_RECORDS)
    whole = costing()(d, 1.0, 0.01)
    parts = [costing()(part, 1.0, 0.01) for part in np.array_split(d, 2)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_replace_one_takes_the_larger_of_the_two_that_may_have_been_in_the_run():
    """The pair of H10 is not symmetric: a record that moves nothing still takes the place of one that does."""
    d, other = np.array([0.0, 0.4, 1.0]), np.ones(3)
    present = replace_one.cost(d, other, ORDERS, sampling_rate=0.01)
    absent = replace_one.cost(other, d, ORDERS, sampling_rate=0.01)
    both, remove, add = (costing("replace-one", s, cap=1.0)(d, 1.0, 0.01) for s in ("both", "remove", "add"))
    for got, want in ((remove, present), (add, absent), (both, np.maximum(present, absent))):
        assert (got >= want).all()
        np.testing.assert_allclose(got, want, rtol=2e-9)
    assert absent[0, -1] > 1000 * present[0, -1]
    np.testing.assert_allclose(absent[0], sgm.cost(1.0, ORDERS, sampling_rate=0.01), rtol=1e-8)


@pytest.mark.parametrize(
    ("value", "slack"),
    [
        (np.array([0.3, 0.5]), 0.0),
        ([0.3, 0.5], 0.0),
        ([1, 2], 0.0),
        (np.array([0.3, 0.5], dtype=np.float32), FLOAT32_SLACK),
        ([np.float32(0.3), np.float32(0.5)], FLOAT32_SLACK),
        (np.array([0.3, 0.5], dtype=np.float16), HALF_SLACK),
    ],
)
def test_low_precision_is_raised(value, slack):
    got = costing().distances("distances", value)
    np.testing.assert_allclose(got, np.asarray(value, dtype=float) * (1 + slack), rtol=1e-15)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=4), st.sampled_from([np.float32, np.float16]))
def test_a_norm_that_was_rounded_down_is_not_costed_below_the_true_one(norms, kind):
    true = np.minimum(norms, 6e4)
    true = np.maximum(true, 1e-4)  # 16 bits know nothing below
    assert (costing().distances("distances", true.astype(kind)) >= true).all()


def test_the_cap_limits_and_refuses():
    make = costing(cap=1.0)
    np.testing.assert_array_equal(make.distances("d", np.array([0.5, 1.0 + 5e-6])), [0.5, 1.0])
    np.testing.assert_array_equal(make.distances("d", np.array([1.0], dtype=np.float32)), [1.0])
    with pytest.raises(InputError, match=r"Expected d to be at most cap=1, got d=1\.1\. Clip before accounting"):
        make.distances("d", [0.2, 1.1])
    np.testing.assert_array_equal(make.worst(0.5, 0.1), sgm.cost(2.0, ORDERS, sampling_rate=0.1))
    assert costing().worst(0.5, 0.1) is None


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("records", [1, EXACT_RECORDS + 1])
@pytest.mark.parametrize("shift", [FAR * 1.0001, 1e6, 1e200, 1e308])
def test_noise_that_hides_nothing_costs_an_upper_bound_or_infinity_at_once(adjacency, records, shift):
    orders = np.array([1.25, 2.0, 1024.0])
    make = costing(adjacency, cap=1e308, orders=orders)
    cost = make(np.full(records, shift), 1.0, 0.01)
    assert not np.isnan(cost).any()
    least = (orders - 1) * (orders / 2 * FAR**2 * 0.99)  # well below the cost at FAR
    assert (cost >= least).all()
    assert make(np.full(records, shift), 1.0, 0.0).max() == 0


def test_the_bound_beyond_far_is_above_the_exact_cost_and_close():
    orders = np.array([2.0, 9.0, 64.0])
    for rate in (0.5, 1e-3):
        exact = sgm.cost(FAR * 1.001, orders, sampling_rate=rate)
        bound = costing(orders=orders)(np.array([FAR * 1.001]), 1.0, rate)[0]
        assert (bound >= exact).all()
        np.testing.assert_allclose(bound, exact, rtol=1e-4)


def test_an_unknown_other_that_noise_does_not_hide_is_not_forgotten():
    cost = costing("replace-one", cap=1e4)(np.array([0.1]), 1.0, 0.01)
    assert (cost >= sgm.cost(1e3, ORDERS, sampling_rate=0.01)).all()


def test_known_batches_are_averaged_outside_the_logarithm():
    d, weights = np.array([[0.2, 1.0, 2.0], [0.0, 0.0, 0.0]]), np.array([0.5, 0.3, 0.2])
    orders = np.array([1.5, 2, 9])
    moments = np.exp(sgm.cost(d, orders, sampling_rate=0.1))
    want = np.log(np.einsum("rbo,b->ro", moments, weights))
    np.testing.assert_allclose(costing(orders=orders).averaged(d, 1.0, 0.1, weights), want, rtol=1e-9, atol=1e-14)
    # A batch that never happens may be as far away as it likes.
    never = costing().averaged(np.array([[0.2, 1e300]]), 1.0, 0.1, np.array([1.0, 0.0]))
    np.testing.assert_allclose(never, sgm.cost([0.2], ORDERS, sampling_rate=0.1), rtol=1e-12)


def test_sampled_batches_are_bounded_from_above_and_by_the_worst_case():
    d = np.random.default_rng(1).random((3, 200))
    make = costing(cap=1.0)
    plug_in = make.bounded(d, 1.0, 0.1, "plug-in", 1e-3)
    for method in ("betting", "bernstein", "kl", "hoeffding", "student-t"):
        bound = make.bounded(d, 1.0, 0.1, method, 1e-3)
        assert (bound >= plug_in).all()
        assert (bound <= make.worst(1.0, 0.1)).all()
    with pytest.raises(InputError, match=r"Expected cap to be given for sampled batches"):
        costing().bounded(d, 1.0, 0.1, "betting", 1e-3)


def test_bad_construction():
    with pytest.raises(InputError, match="cap"):
        costing("replace-one")
    with pytest.raises(InputError, match="Expected direction"):
        costing(direction="sideways")
