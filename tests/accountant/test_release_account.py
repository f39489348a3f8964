"""The account: every sample is charged, more are refused; everybody has a finite ε only inside of a public box."""

import math

import numpy as np
import pytest

from bayesdp.accountant.gaussian_release import Softening
from bayesdp.accountant.release_account import ORDERS, ReleaseAccount, affordable, worst_epsilon
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.divergence import gaussian
from bayesdp.errors import InputError

DELTA = 1e-3


def account(samples=10, outsiders=None, watched=None, worst=None):
    def book(shifts):
        return RepeatedRelease(gaussian.cost(np.asarray(shifts), ORDERS), ORDERS, planned=samples)

    return ReleaseAccount(
        samples=samples,
        delta=DELTA,
        worst=np.full(len(ORDERS), math.inf) if worst is None else worst,
        population=None
        if outsiders is None
        else RepeatedWitnesses({"absent": book(outsiders)}, coverage=0.5, failure=0.01),
        watched=None if watched is None else book(watched),
    )


def test_samples_cost_the_same_however_they_are_asked_for():
    shifts = np.linspace(0.01, 0.1, 40)
    one, many = account(outsiders=shifts, watched=shifts[:2]), account(outsiders=shifts, watched=shifts[:2])
    one.charge(6)
    for count in (1, 2, 3):
        many.charge(count)
    assert [g.epsilon for g in one.guarantees()] == [g.epsilon for g in many.guarantees()]
    assert [g.notion for g in one.guarantees()] == ["dp", "bdp", "per-instance"]
    assert (one.drawn, one.remaining) == (6, 4)


def test_more_than_was_agreed_is_refused_and_leaves_no_trace():
    shifts = np.linspace(0.01, 0.1, 40)
    book = account(samples=3, outsiders=shifts, watched=shifts)
    book.charge(2)
    before = [g.epsilon for g in book.guarantees()]
    for count in (2, 0, -1, 1.5, "3"):
        with pytest.raises(InputError, match="Expected n "):
            book.charge(count)
    assert [g.epsilon for g in book.guarantees()] == before
    assert book.remaining == 1
    book.charge(1)
    with pytest.raises(InputError, match="to be at most 0: the account was opened for 3 samples"):
        book.charge(1)


def test_nothing_drawn_costs_nothing_and_nothing_is_promised_to_everybody_after():
    book = account(outsiders=np.full(40, 0.1))
    assert [g.epsilon for g in book.guarantees()] == [0, 0, 0]
    book.charge(1)
    dp, bdp, instance = book.guarantees()
    assert math.isinf(dp.epsilon)
    assert "nothing is promised to everybody" in dp.assumptions[0]
    assert 0 < bdp.epsilon < 1
    assert any("stay secret" in one for one in bdp.assumptions)
    assert any("known to the attacker" in one for one in bdp.assumptions)
    assert instance.epsilon == book.instance.epsilon(DELTA).max()
    assert book.whose == "each of 40 outsiders, named beforehand; the largest is shown"
    assert account(watched=[0.1]).whose == "the watched record"
    assert account(watched=[0.1, 0.2]).whose == "each of 2 watched records, named beforehand; the largest is shown"
    assert account().whose == ""
    assert any("H19" in one for one in instance.assumptions)
    assert book.curve().at(0.5) >= bdp.epsilon
    assert account().curve() is None


def test_the_public_box_gives_everybody_a_finite_epsilon_and_a_budget():
    worst = Softening(extra_std=2.0, radius=0.5, scales=(0.1, 0.3)).worst_cost(3, ORDERS)
    book = account(worst=worst)
    book.charge(4)
    (dp,) = book.guarantees()
    assert dp.epsilon == worst_epsilon(worst, 4, DELTA) < 5
    assert (dp.notion, dp.ex_post, dp.sensitive) == ("dp", False, False)
    # Beside a finite DP ε a number that is no smaller says so.
    beside = account(worst=worst, outsiders=np.full(40, 9.0), watched=[0.01])
    beside.charge(4)
    _, bdp, instance = beside.guarantees()
    assert (bdp.no_better, instance.no_better) == (True, False)
    assert bdp.dp_epsilon == instance.dp_epsilon == beside.curve().dp == dp.epsilon
    budget = worst_epsilon(worst, 7, DELTA)
    assert affordable(worst, 10, DELTA, budget) == 7
    assert affordable(worst, 10, DELTA, 100.0) == affordable(worst, 10, DELTA, None) == 10
    with pytest.raises(InputError, match="the DP ε of one sample"):
        affordable(worst, 10, DELTA, 0.01)
    with pytest.raises(InputError, match="Expected radius and scales"):
        affordable(np.full(len(ORDERS), math.inf), 10, DELTA, 1.0)
