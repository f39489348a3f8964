"""Noisy max: closed forms, and the data-dependent bound against exact divergences of outcome laws on small cases."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp, ndtr

from bayesdp.divergence import noisy_max
from bayesdp.errors import InputError

ORDERS = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0])
NODES = np.linspace(-12, 12, 4001)
WEIGHTS = np.exp(-(NODES**2) / 2) / math.sqrt(2 * math.pi) * (NODES[1] - NODES[0])


def outcome_law(counts, sigma):
    """Pr[argmax_j (n_j + σ Z_j) = j] for every j, by quadrature over the noise of j."""
    gaps = (counts[:, None] - counts[None, :]) / sigma
    law = []
    for j in range(len(counts)):
        others = log_ndtr(NODES[:, None] + gaps[j][None, np.arange(len(counts)) != j]).sum(axis=1)
        law.append(float(WEIGHTS @ np.exp(others)))
    return np.array(law)


def worst_neighbour(counts, sigma, order):
    """The largest (α−1)D_α of the outcome law against that of any neighbour: one vote moved."""
    law = np.log(outcome_law(counts, sigma))
    worst = 0.0
    for a, b in itertools.permutations(range(len(counts)), 2):
        if counts[a] >= 1:
            moved = counts.copy()
            moved[a] -= 1
            moved[b] += 1
            other = np.log(outcome_law(moved, sigma))
            worst = max(worst, float(logsumexp(order * law + (1 - order) * other)))
    return worst


CASES = [
    ([30.0, 5.0, 2.0], 3.0),
    ([30.0, 5.0], 6.0),
    ([20.0, 19.0, 1.0], 4.0),
    ([100.0, 0.0, 0.0, 0.0], 10.0),
    ([60.0, 10.0, 10.0], 8.0),
    ([12.0, 12.0], 2.0),
    ([50.0, 20.0, 5.0], 10.0),
]


@pytest.mark.parametrize(("counts", "sigma"), CASES)
def test_the_bound_for_these_votes_is_above_every_neighbour(counts, sigma):
    counts = np.array(counts)
    law = outcome_law(counts, sigma)
    assert law.sum() == pytest.approx(1, abs=1e-10)
    assert math.exp(noisy_max.log_other_label(counts[None], sigma)[0]) >= 1 - law.max() - 1e-12
    bound = noisy_max.label_cost_at(counts[None], sigma, ORDERS)[0]
    usual = noisy_max.label_cost(sigma, ORDERS)
    for order, at, independent in zip(ORDERS, bound, usual, strict=True):
        exact = worst_neighbour(counts, sigma, order)
        assert exact <= at + 1e-10
        assert at <= independent


def test_agreement_makes_it_cheaper_and_more_of_it_cheaper_still():
    votes = np.array([[50.0, 50.0], [70.0, 30.0], [85.0, 15.0], [100.0, 0.0], [250.0, 0.0]])
    cost = noisy_max.label_cost_at(votes, 10.0, np.array([5.0]))[:, 0]
    assert (np.diff(cost) <= 0).all()
    assert cost[0] == noisy_max.label_cost(10.0, 5.0)
    assert cost[3] < cost[0] / 20
    assert cost[4] < 1e-20


def test_far_out_where_nothing_but_logs_is_left():
    votes = np.array([[5000.0, 0.0, 0.0]])
    assert noisy_max.log_other_label(votes, 20.0)[0] < -15000
    cost = noisy_max.label_cost_at(votes, 20.0, ORDERS)
    assert np.isfinite(cost).all()
    assert (cost >= 0).all()
    assert (cost < 1e-300).all()


@pytest.mark.parametrize(("most", "threshold", "sigma"), [(30, 25, 4.0), (30, 60, 8.0), (10, 10, 3.0), (90, 60, 10.0)])
def test_the_check_is_exact(most, threshold, sigma):
    votes = np.array([[most, 3.0, 2.0]])
    found = noisy_max.check_cost_at(votes, threshold, sigma, ORDERS)[0]
    p = ndtr((most - threshold) / sigma)
    for order, cost in zip(ORDERS, found, strict=True):
        exact = []
        for near in (most - 1, most + 1):
            r = ndtr((near - threshold) / sigma)
            exact.append(math.log(p**order * r ** (1 - order) + (1 - p) ** order * (1 - r) ** (1 - order)))
        assert cost == pytest.approx(max(exact), rel=1e-9, abs=1e-14)
        assert cost <= noisy_max.check_cost(sigma, order)


def test_without_looking_at_votes_it_is_the_gaussian():
    np.testing.assert_allclose(noisy_max.label_cost(3.0, ORDERS), ORDERS * (ORDERS - 1) / 9, rtol=1e-14)
    np.testing.assert_allclose(noisy_max.check_cost(3.0, ORDERS), ORDERS * (ORDERS - 1) / 18, rtol=1e-14)


def test_many_queries_are_many_single_ones():
    votes = np.array([counts + [0.0] * (4 - len(counts)) for counts, _ in CASES])
    together = noisy_max.label_cost_at(votes, 5.0, ORDERS)
    apart = [noisy_max.label_cost_at(one[None], 5.0, ORDERS)[0] for one in votes]
    np.testing.assert_array_equal(together, apart)


def test_bad_input_is_refused():
    for votes in ([1.0, 2.0], [[-1.0, 2.0]], [[3.0]]):
        with pytest.raises(InputError, match="Expected votes "):
            noisy_max.label_cost_at(votes, 1.0, 2.0)
    with pytest.raises(InputError, match="Expected noise_std "):
        noisy_max.label_cost(0, 2.0)
    with pytest.raises(InputError, match="Expected orders "):
        noisy_max.check_cost_at([[1.0, 2.0]], 1.0, 1.0, 1.0)
