"""Doing it K times and publishing the best: against dp-accounting, and against sums over K written out."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

from bayesdp import InputError, WorstCaseAccountant
from bayesdp.accountant import rdp
from bayesdp.ledger import Selection

ORDERS = np.array([2.0, 3.0, 5.0, 8.0, 16.0, 32.0])
STEPS = rdp.Run(2.0, 0.1, 50)


def own(selection):
    account = WorstCaseAccountant(engine="rdp")
    account.step(noise_multiplier=2.0, sampling_rate=0.1, steps=50)
    return selection.cost(rdp.cost((STEPS,), "add-remove", ORDERS), ORDERS, account.delta) / (ORDERS - 1)


def theirs(mean, shape):
    event = dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(2.0)), 50)
    account = RdpAccountant(ORDERS, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    account.compose(dp_event.RepeatAndSelectDpEvent(event, mean, shape))
    return np.array(account._rdp)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0])
def test_it_is_what_dp_accounting_says(shape):
    selection = Selection(shape=shape, gamma=0.05)
    np.testing.assert_allclose(own(selection), theirs(selection.expected, shape), rtol=1e-5)


def test_poisson_is_what_dp_accounting_says_with_our_own_delta():
    # Theirs turns Rényi costs at these orders into δ; ours asks an accountant that searches all orders: never more.
    ours, other = own(Selection("poisson", mean=10.0)), theirs(10.0, np.inf)
    assert (ours <= other * (1 + 1e-9)).all()
    assert (ours >= rdp.cost((STEPS,), "add-remove", ORDERS) / (ORDERS - 1)).all()


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 2.5])
def test_the_law_of_k_is_the_one_that_is_charged_for(shape):
    selection, rng = Selection(shape=shape, gamma=0.2), np.random.default_rng(0)
    drawn = np.array([selection.draw(rng) for _ in range(20_000)])
    assert drawn.min() == 1
    assert drawn.mean() == pytest.approx(selection.expected, abs=4 * drawn.std() / np.sqrt(len(drawn)))
    if shape == 1:
        assert (drawn == 1).mean() == pytest.approx(0.2, abs=0.012)  # geometric


def test_once_costs_once_and_more_costs_more():
    alone = rdp.cost((STEPS,), "add-remove", ORDERS) / (ORDERS - 1)
    few, many = own(Selection(gamma=0.5)), own(Selection(gamma=0.01))
    assert (alone < few).all()
    assert (few < many).all()


@pytest.mark.parametrize("bad", [{"law": "uniform"}, {"shape": -1}, {"gamma": 0}, {"gamma": 1}, {"mean": 0}])
def test_bad_input(bad):
    with pytest.raises(InputError):
        Selection(**bad)
