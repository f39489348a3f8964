"""What charges come to together: the plan of all steps where plans were fixed, a martingale where they were not."""

import math

import numpy as np
import pytest

import bayesdp as bd
from bayesdp.accountant import rdp
from bayesdp.guarantee import Guarantee
from bayesdp.ledger import Charge, Selection, Total
from bayesdp.ledger.total import ORDERS

DELTA = 1e-5
A = Charge(run="a", steps=((1.5, 0.05, 100),), source="people")
B = Charge(run="b", steps=((3.0, 0.2, 40), (1.5, 0.05, 20)), source="people")


def total(*charges, measured=None, watched=None):
    return Total(charges, measured or {}, watched or {})


def composed(*charges):
    account = bd.WorstCaseAccountant()
    for one in charges:
        for z, q, n in one.steps:
            account.step(noise_multiplier=z, sampling_rate=q, steps=n)
    return account.epsilon(DELTA)


def test_plans_fixed_beforehand_are_one_plan():
    found = total(A, B).dp(DELTA, adaptive=False)
    assert found.epsilon == composed(A, B)
    assert composed(A) < found.epsilon < composed(A) + composed(B)


def test_plans_that_follow_results_cost_a_mixture_over_fixed_orders():
    """The same number by hand, (α−1) D_α of both at the orders of all ledgers; and never below the fixed plan."""
    account = bd.InstanceAccountant(records=1, orders=ORDERS)
    for one in (A, B):
        account.step(cost=rdp.cost(one.history, "add-remove", ORDERS)[None])
    found = total(A, B).dp(DELTA).epsilon
    assert found == pytest.approx(float(account.epsilon(DELTA)[0]), rel=1e-12)
    assert composed(A, B) <= found < composed(A) + composed(B) + 1


def test_a_later_plan_chosen_by_the_result_keeps_the_adaptive_bound():
    """Exact, by enumeration: the second noise depends on the first result, and the loss is summed over both."""
    rng, n = np.random.default_rng(0), 200_000
    z = {False: 4.0, True: 1.5}
    first = rng.normal(1 / 3.0, 1, n)  # the output over its noise, record present; z = 3
    loss = first / 3.0 - 1 / 18
    later = np.where(first > 0.5, z[True], z[False])
    loss += rng.normal(1 / later, 1, n) / later - 1 / (2 * later**2)
    spent = {
        one: total(Charge(run="a", steps=((3.0, 1, 1),)), Charge(run="b", steps=((z[one], 1, 1),))).dp(1e-2).epsilon
        for one in z
    }
    most = np.where(first > 0.5, spent[True], spent[False])
    assert np.maximum(0, 1 - np.exp(most - loss)).mean() < 1e-2


def test_an_epsilon_beside_steps_adds_to_both():
    beside = Charge(run="c", epsilon=0.25, delta=4e-6)
    for adaptive in (True, False):
        expected = 0.25 + total(A).dp(DELTA - 4e-6, adaptive=adaptive).epsilon
        assert total(A, beside).dp(DELTA, adaptive=adaptive).epsilon == pytest.approx(expected)
        assert math.isinf(total(A, beside).dp(3e-6, adaptive=adaptive).epsilon)
        assert math.isinf(total(A, Charge(run="d", epsilon=math.inf)).dp(DELTA, adaptive=adaptive).epsilon)


def test_a_selection_costs_more_than_one_run_and_less_than_all():
    chosen = Charge(run="s", steps=A.steps, selection=Selection(gamma=0.1))
    ten = total(*(Charge(run=str(i), steps=A.steps) for i in range(10)))
    for adaptive in (True, False):
        found = total(chosen).dp(DELTA, adaptive=adaptive).epsilon
        assert total(A).dp(DELTA, adaptive=adaptive).epsilon < found < ten.dp(DELTA, adaptive=adaptive).epsilon


def test_nothing_spent_is_nothing():
    assert total().dp(DELTA).epsilon == total().dp(DELTA, adaptive=False).epsilon == 0


def people(epsilon, coverage=0.9, dp=2.0):
    return Guarantee(
        notion="bdp", epsilon=epsilon, delta=DELTA, coverage=coverage, failure=1e-6, ex_post=True, dp_epsilon=dp
    )


def record(epsilon):
    return Guarantee(notion="per-instance", epsilon=epsilon, delta=DELTA, ex_post=True, dp_epsilon=2.0)


class TestTheOtherNotions:
    measured = {"a": [people(0.5), record(0.2)], "b": [people(0.3, 0.95), record(0.1)]}  # noqa: RUF012
    watched = {"a": "x", "b": "x"}  # noqa: RUF012

    def test_sums_leave_out_whoever_is_outside_of_one(self):
        dp, bdp, one = total(A, B, measured=self.measured, watched=self.watched).guarantees(DELTA)
        assert (dp.notion, bdp.notion, one.notion) == ("dp", "bdp", "per-instance")
        assert bdp.epsilon == pytest.approx(0.8)
        assert bdp.coverage == pytest.approx(0.85)
        assert (bdp.delta, bdp.failure) == (pytest.approx(2e-5), pytest.approx(2e-6))
        assert one.epsilon == pytest.approx(0.3)
        assert bdp.sensitive
        assert one.sensitive

    def test_where_the_dp_value_wins_everybody_is_covered_by_it(self):
        measured = {"a": [people(5.0, dp=2.0)], "b": [people(0.3, 0.95)]}
        bdp = total(A, B, measured=measured).guarantees(DELTA)[1]
        assert bdp.epsilon == pytest.approx(2.3)
        assert bdp.coverage == pytest.approx(0.95)

    @pytest.mark.parametrize(
        ("charges", "watched", "left"),
        [
            ((A, B), {"a": "x", "b": "y"}, ["dp", "bdp"]),  # other records
            ((A, Charge(run="b", steps=B.steps, source="others")), watched, ["dp"]),  # other people
            ((A, B, Charge(run="c", steps=A.steps, source="people")), watched, ["dp"]),  # one is not done
            ((A, Charge(run="b", steps=B.steps, source="people", selection=Selection())), watched, ["dp"]),
        ],
        ids=["watched", "source", "unfinished", "selected"],
    )
    def test_where_they_are_not_the_same_there_is_dp(self, charges, watched, left):
        found = total(*charges, measured=self.measured, watched=watched).guarantees(DELTA)
        assert [one.notion for one in found] == left


def test_drawing_noise_on_a_lattice_takes_its_share_of_delta_and_more_where_there_are_very_many_draws():
    steps = ((2.0, 0.1, 10),)
    exact, some, many = (
        total(Charge(run="a", steps=steps, draws=n)).dp(DELTA, adaptive=False) for n in (0, 10**6, 10**18)
    )
    assert some.epsilon == total(Charge(run="a", steps=steps)).dp((1 - 1e-4) * DELTA, adaptive=False).epsilon
    assert exact.epsilon < some.epsilon < many.epsilon
    assert total(Charge(run="a", steps=steps, draws=10**24)).dp(DELTA).epsilon == math.inf
    values = Charge(run="a", steps=steps, draws=5).to_dict()
    assert Charge.from_dict(values).draws == 5
    del values["draws"]  # as lines of before
    assert Charge.from_dict(values).draws == 0
