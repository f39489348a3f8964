"""Hölder (C7) and product (C6) over a population: I-4, and the counter-examples of ERR 1 and ERR 2."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesdp.compose.averages import log_mean_exp
from bayesdp.compose.holder import holder
from bayesdp.compose.product import product
from bayesdp.errors import InputError


def same_record(records, steps):
    """Each record costs the same in every step."""
    return np.tile(np.asarray(records, dtype=float)[None, :, None], (steps, 1, 1))


def truth(costs):
    """What is bounded: log E_x exp(Σ_t cost_t(x)) for costs that do not depend on the past."""
    return log_mean_exp(costs.sum(axis=0))


@pytest.mark.parametrize(
    ("records", "steps", "true", "claimed"),
    [
        ([0, 1], 2, 1.43378083048303, 1.24022901391656),
        ([0, 1], 10, 9.30689821833927, 6.20114506958278),
        ([0, 1], 100, 99.3068528194401, 62.0114506958278),
        ([1] + [0] * 999, 10, 3.13660081189578, 0.017168072711331),
    ],
)
def test_same_record_in_every_step(records, steps, true, claimed):
    """I-4 and ERR 1: Hölder is exact, the product is far below the truth."""
    costs = same_record(records, steps)
    assert truth(costs)[0] == pytest.approx(true, rel=1e-13)
    assert holder(costs)[0] == pytest.approx(true, rel=1e-13)
    assert product(costs)[0] == pytest.approx(claimed, rel=1e-13)
    assert product(costs)[0] < true


def test_outlier_of_erratum_1():
    costs = same_record([1] + [0] * 999, 100)
    assert truth(costs)[0] == pytest.approx(93.09, abs=5e-3)
    assert product(costs)[0] == pytest.approx(0.17, abs=5e-3)


def test_anti_correlated_steps():
    costs = np.array([[[0.0], [1.0]], [[1.0], [0.0]]])
    assert truth(costs)[0] == pytest.approx(1)
    assert product(costs)[0] == pytest.approx(1.2402, abs=5e-5)
    assert holder(costs)[0] == pytest.approx(1.4338, abs=5e-5)


def test_holder_is_unsound_when_costs_depend_on_the_past():
    """ERR 2, λ = 1: the first outcome is more likely to be the expensive one under the tilted law."""
    p, q = np.array([0.9, 0.1]), np.array([0.999, 0.001])
    second = np.array([0.0, 3.0])
    true = float(np.sum(p * (p / q) * np.exp(second)))
    first = math.log(float(np.sum(p * p / q)))
    outcomes = np.array([[[first]] * 10, [[second[1]]] + [[second[0]]] * 9])  # outcome 1 has probability 1/10
    claimed = math.exp(holder(outcomes)[0])
    assert true == pytest.approx(201.67, abs=5e-3)
    assert claimed == pytest.approx(69.43, abs=5e-3)
    assert claimed < true


populations = arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3)), elements=st.floats(0, 30)
)


@given(populations, st.data())
def test_holder_lies_between_the_truth_and_the_worst_case_for_any_weights(costs, data):
    raw = np.array(data.draw(st.lists(st.floats(0.05, 1), min_size=len(costs), max_size=len(costs))))
    for weights in (None, raw / raw.sum()):
        bound = holder(costs, weights=weights)
        assert np.all(bound >= truth(costs) - 1e-9)
        assert np.all(bound <= costs.max(axis=1).sum(axis=0) + 1e-9)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=6), st.integers(1, 20))
def test_exact_for_identical_steps_and_all_agree_for_constant_costs(records, steps):
    costs = same_record(records, steps)
    assert holder(costs) == pytest.approx(truth(costs), rel=1e-9, abs=1e-9)
    constant = same_record([records[0]] * 3, steps)
    assert product(constant) == pytest.approx(np.array([steps * records[0]]), rel=1e-9, abs=1e-9)
    assert holder(constant) == pytest.approx(np.array([steps * records[0]]), rel=1e-9, abs=1e-9)


def test_weights_give_more_room_to_the_step_that_varies():
    costs = np.zeros((2, 100, 1))
    costs[0, 0] = 5.0
    assert holder(costs, weights=[0.999, 0.001])[0] < holder(costs)[0]
    assert holder(costs, weights=[0.999, 0.001])[0] >= truth(costs)[0]


def test_huge_and_infinite_costs():
    costs = same_record([0, 1e300], 3)
    costs[0, 0, 0] = np.inf
    assert holder(costs).tolist() == product(costs).tolist() == [np.inf]
    assert holder(same_record([0, 1e5], 7))[0] == pytest.approx(7e5)
    assert log_mean_exp(np.array([-np.inf, 0.0])) == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: holder(np.ones((2, 2))), "costs"),
        (lambda: holder(-np.ones((2, 2, 1))), "costs"),
        (lambda: product(np.full((2, 2, 1), np.nan)), "costs"),
        (lambda: product(np.ones((2, 2))), "costs"),
        (lambda: holder(np.ones((2, 2, 1)), weights=[0.5, 0.6]), "sum to 1"),
        (lambda: holder(np.ones((2, 2, 1)), weights=[1.0]), "per step"),
        (lambda: holder(np.ones((2, 2, 1)), weights=[1.0, 0.0]), "weights"),
    ],
)
def test_bad_input(call, word):
    with pytest.raises(InputError, match=word):
        call()


def test_product_says_that_it_is_unsound():
    assert product.__doc__.startswith("Unsound")
