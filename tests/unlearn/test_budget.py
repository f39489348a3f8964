"""β from an (ε, δ) and from an attacker's success: what it then means."""

import math

import pytest
from scipy.special import ndtr

from bayesdp import convert
from bayesdp.errors import InputError
from bayesdp.unlearn import budget, variation
from bayesdp.unlearn.source import GaussianBudget, WorstCase


@pytest.mark.parametrize(("epsilon", "delta", "order"), [(1.0, 1e-5, 20.0), (12.0, 1e-5, 2.0), (0.1, 1e-3, 200.0)])
def test_an_epsilon_is_its_conversion_turned_round(epsilon, delta, order):
    beta = budget.from_epsilon(epsilon, delta, order)
    assert float(convert.epsilon([(order - 1) * beta], [order], delta)) == pytest.approx(epsilon)


def test_the_best_order_leaves_the_most_room():
    plan = WorstCase(((4.0, 0.1, 100),))
    best = budget.best_order(1.0, 1e-5, plan.divergence)
    room = budget.from_epsilon(1.0, 1e-5, best) / plan.divergence(best)
    for order in (8.0, 16.0, 64.0):
        try:
            other = budget.from_epsilon(1.0, 1e-5, order) / plan.divergence(order)
        except InputError:
            continue
        assert other <= room * (1 + 1e-9)
    with pytest.raises(InputError, match="epsilon"):
        budget.best_order(1e-6, 1e-5, plan.divergence)


@pytest.mark.parametrize("success", [0.501, 0.55, 0.75, 0.99])
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_a_success_is_kept_to_and_used_up(success, order):
    beta = budget.from_success(success, order)
    assert (1 + variation.from_divergence(beta, order)) / 2 <= success
    assert (1 + variation.from_divergence(1.001 * beta, order)) / 2 > success
    # Gaussians at that divergence: the best test is right less often.
    assert ndtr(math.sqrt(2 * beta / order) / 2) <= success


def test_bad_input():
    for bad in (0.5, 1.0, 0.2):
        with pytest.raises(InputError, match="success"):
            budget.from_success(bad)
    with pytest.raises(InputError, match=r"to be above 10\.1 at order 2"):
        budget.from_epsilon(1.0, 1e-5, 2.0)
    assert GaussianBudget(0.3).variation(2) == pytest.approx(2 * ndtr(0.3) - 1)
    assert variation.from_divergence(math.inf, 2.0) == 1
