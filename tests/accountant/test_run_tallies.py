"""The three tallies: who is charged for what, by hand with single accountants."""

import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.accountant import InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant.run_tallies import Counts, Tallies

NOISE, RATES = np.array([2.0, 2.0, 1.5, 1.5]), np.array([0.5, 0.5, 0.5, 1.0])


COUNTS = Counts(3, 2, 1)


def tallies(counts=COUNTS, **changes):
    given = {"noise": NOISE, "rates": RATES, "bounded": True, "delta": 1e-5, "failure": 1e-3, "engine": "rdp"}
    return Tallies(counts=counts, adjacency="add-remove", **(given | changes))


def worst_case(chains=1):
    accountant = WorstCaseAccountant(engine="rdp")
    for z, q in zip(NOISE, RATES, strict=True):
        accountant.step(noise_multiplier=z, sampling_rate=q, steps=chains)
    return accountant


@pytest.mark.parametrize("chains", [1, 3])
def test_steps_are_charged_to_everybody_before_they_are_run_and_for_every_chain(chains):
    kept = tallies(Counts(0, 0, 0), chains=chains)
    kept.charge_worst_case(0, 3)
    assert kept.worst_case.steps == 3 * chains
    kept.charge_worst_case(3, 4)
    assert kept.guarantees(0.5)[0].epsilon == worst_case(chains).epsilon(1e-5)
    with pytest.raises(InputError, match="total_steps"):
        kept.charge_worst_case(3, 4)


def by_hand(kept, rows):
    """The watched record's accountant, step by step."""
    accountant = InstanceAccountant(records=1, orders=kept.watched.orders, weights=kept.watched.weights, cap=1.0)
    for step, distance in rows:
        accountant.step([distance], noise_std=NOISE[step], sampling_rate=RATES[step])
    return accountant


def test_witnesses_are_charged_in_their_order_for_every_step_of_every_chain():
    kept = tallies(chains=2)
    distances = np.random.default_rng(0).uniform(size=(2, 4, 6))
    kept.on_steps(0, 4, distances)
    assert (kept.watched.steps, kept.population.steps, kept.charged) == (8, 8, 4)
    assert {name: side.records for name, side in kept.population.witnesses.items()} == {"absent": 3, "present": 2}
    expected = by_hand(kept, [(step, distances[chain, step, 5]) for step in range(4) for chain in range(2)])
    order = float(kept.watched.orders[2])
    assert kept.watched.cost(order) == expected.cost(order)
    inside = kept.population.witnesses["present"].cost(order)
    alone = by_hand(kept, [(step, distances[chain, step, 4]) for step in range(4) for chain in range(2)])
    assert inside[1] == pytest.approx(float(alone.cost(order)[0]), rel=1e-12)


def test_one_row_stands_for_all_steps():
    row, each = tallies(), tallies()
    distances = np.linspace(0.1, 1, 6)
    row.on_steps(0, 2, distances[None, None])
    each.on_steps(0, 2, distances[None, None].repeat(2, axis=1))
    order = float(row.watched.orders[2])
    assert row.watched.cost(order) == pytest.approx(each.watched.cost(order), rel=1e-12)
    assert row.charged == each.charged == 2


def test_a_copy_is_not_reached_by_later_charges():
    kept = tallies()
    kept.charge_worst_case(0, 2)
    kept.on_steps(0, 2, np.full((1, 2, 6), 0.5))
    copied, known = kept.copy(), kept.guarantees(0.5)
    kept.charge_worst_case(2, 4)
    kept.on_steps(2, 4, np.full((1, 2, 6), 0.9))
    assert copied.guarantees(0.5) == known
    assert [one.epsilon for one in kept.guarantees(0.5)] > [one.epsilon for one in known]
    copied.charge_worst_case(2, 4)  # and the other way round
    copied.on_steps(2, 4, np.full((1, 2, 6), 0.9))
    assert copied.guarantees(0.5) == kept.guarantees(0.5)


def test_without_noise_nobody_is_promised_anything():
    silent = tallies(noise=np.array([2.0, 0.0, 1.0, 1.0]))
    assert silent.counts == Counts(0, 0, 0)
    silent.charge_worst_case(0, 4)
    assert [one.epsilon for one in silent.guarantees(0.5)] == [np.inf]
    assert silent.so_far(0.5) == (np.inf, None, None)


def test_a_state_of_another_version_is_refused():
    kept = tallies()
    with pytest.raises(InputError, match="version"):
        kept.restore({**kept.state(), "version": 2})
