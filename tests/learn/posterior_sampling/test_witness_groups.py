"""Whose cost and whose pairs are whose: groups in their order, and the most exposed copy of a watched record."""

import jax
import numpy as np

from bayesdp.accountant.gaussian_release import both_ways, two_sided_cost
from bayesdp.accountant.release_account import ORDERS
from bayesdp.learn.posterior_sampling.release import coupled_release
from bayesdp.learn.posterior_sampling.witness_groups import WitnessGroups

DATA = np.array([0.5, 1.0, 1.5, 1.0, 2.0])


def neighbours(groups):
    """Made-up posteriors of the run and of all neighbours, each different."""
    rng, count = np.random.default_rng(0), len(groups.witnesses.place)
    means, spreads = 0.1 * rng.normal(size=(1 + count, 2)), np.exp(0.1 * rng.normal(size=(1 + count, 2)))
    return means, spreads


def groups_of():
    with jax.enable_x64(True):
        return WitnessGroups.of(DATA, np.array([0.1, 0.2, 0.3]), np.array([4, 0]), np.array([7.0, 1.0]))


def test_a_record_has_the_pairs_that_its_cost_is_the_largest_of():
    groups = groups_of()
    means, spreads = neighbours(groups)
    each = two_sided_cost(means[0], spreads[0], means[1:], spreads[1:], ORDERS)
    costs, pairs = groups.costs(each), groups.pairs(both_ways(means[0], spreads[0], means[1:], spreads[1:]))
    assert {name: len(part) for name, part in costs.items()} == {"absent": 3, "present": 2, "watched": 2}
    assert set(pairs) == set(costs)
    # two directions for each; the second watched record also for the two rows of the data that equal it
    assert {name: np.bincount(part.record).tolist() for name, part in pairs.items()} == {
        "absent": [2, 2, 2],
        "present": [2, 2],
        "watched": [2, 6],
    }
    alone = both_ways(means[0], spreads[0], means[1:], spreads[1:]).epsilon(3, 1e-5, each, ORDERS)
    found = {name: pairs[name].epsilon(3, 1e-5, costs[name], ORDERS) for name in costs}
    np.testing.assert_allclose(found["absent"], alone[:3])
    np.testing.assert_allclose(found["present"], alone[3:5])
    np.testing.assert_allclose(found["watched"], [alone[5], max(alone[6:])], rtol=1e-4)


def test_the_release_uses_them_in_the_weak_form_only():
    groups = groups_of()
    means, spreads = neighbours(groups)
    plan = {"planned": 3, "sampling": "none", "adjacency": "add-remove", "coverage": 0.1, "failure": 0.9}
    weak = coupled_release(means, spreads, groups, strength="weak", **plan)
    strong = coupled_release(means, spreads, groups, strength="strong", **plan)
    assert strong.watched.pairs is None
    for release in (weak, strong):
        release.watched.step(3)
    assert (weak.watched.epsilon(1e-5) < strong.watched.epsilon(1e-5)).all()
