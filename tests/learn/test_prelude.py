"""What is released before the first step is counted in all three promises, against dp-accounting and by hand (H22)."""

import dataclasses

import dp_accounting
import numpy as np
import optax
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import bayesdp as bd
from bayesdp import InputError
from bayesdp.accountant.run_tallies import Counts, Tallies
from bayesdp.divergence.hockey_stick import gaussian_epsilon
from bayesdp.learn.loop.filter import Filter
from bayesdp.learn.prelude import with_prelude

PRELUDE, DELTA, EXTRA = 12.0, 9.9e-6, 1e-7
PLAN = bd.SGD(sampling_rate=0.1, steps=60, optimizer=optax.sgd(0.1), delta=DELTA, prelude=PRELUDE, prelude_delta=EXTRA)


def composed(accountant, plan):
    """Both parts by dp-accounting alone."""
    sampled = dp_accounting.PoissonSampledDpEvent(
        plan.sampling_rate, dp_accounting.GaussianDpEvent(plan.noise_multiplier)
    )
    accountant.compose(dp_accounting.GaussianDpEvent(PRELUDE))
    accountant.compose(sampled, plan.steps)
    return float(accountant.get_epsilon(DELTA))


def test_noise_is_calibrated_to_both_together():
    plan = PLAN.calibrate(1.0)
    assert 0.995 < composed(PLDAccountant(), plan) <= 1.0 + 1e-6
    alone = dataclasses.replace(PLAN, prelude=None, prelude_delta=0.0).calibrate(1.0)
    assert composed(PLDAccountant(), dataclasses.replace(plan, noise_multiplier=alone.noise_multiplier)) > 1.005


def test_a_budget_pays_for_it_first():
    plan = dataclasses.replace(PLAN, noise_multiplier=2.0, epsilon_budget=1.0, engine="rdp")
    without = dataclasses.replace(plan, prelude=None, prelude_delta=0.0)
    assert plan.affordable_steps() < without.affordable_steps()


def tallies(plan, **more):
    common = {"counts": Counts(300, 300, 2), "bounded": True, "failure": 1e-6, "adjacency": "add-remove"}
    return Tallies(
        **{**common, "noise": plan.noise, "rates": plan.rates, "delta": plan.delta, "engine": plan.engine}
        | {"prelude": plan.prelude}
        | more
    )


def test_nobody_pays_less_than_the_prelude_and_everybody_that_and_the_steps():
    plan = dataclasses.replace(PLAN, noise_multiplier=3.0, engine="rdp")
    own = tallies(plan)
    own.charge_worst_case(0, plan.steps)
    own.on_steps(0, plan.steps, np.zeros((1, 1, 602)))  # nobody moves any step
    dp, people, one = own.guarantees(0.9)
    assert dp.epsilon == pytest.approx(composed(RdpAccountant(), plan), rel=0.02)
    exact = gaussian_epsilon(DELTA, 1 / PRELUDE)
    # A mixture over orders is not the exact hockey stick, but near it.
    for promise in (people, one):
        assert exact <= promise.epsilon < 1.6 * exact
    assert own.worst_case.steps == plan.steps + 1
    # Whoever does move steps pays for both.
    loud = tallies(plan)
    loud.on_steps(0, plan.steps, np.ones((1, 1, 602)))
    assert loud.guarantees(0.9)[2].epsilon > 2 * one.epsilon


def test_states_are_restored_with_it():
    plan = dataclasses.replace(PLAN, noise_multiplier=3.0, engine="rdp")
    own = tallies(plan)
    own.charge_worst_case(0, plan.steps)
    own.on_steps(0, plan.steps, np.full((1, 1, 602), 0.3))
    again = tallies(plan)
    again.restore(own.state())
    assert again.guarantees(0.9) == own.guarantees(0.9)


def test_without_clipping_single_records_are_charged_all_the_same():
    plan = dataclasses.replace(PLAN, noise_multiplier=3.0, engine="rdp")
    own = tallies(plan, bounded=False)
    own.on_steps(0, plan.steps, np.zeros((1, 1, 602)))
    dp, _, one = own.guarantees(0.9)
    assert np.isinf(dp.epsilon)
    assert one.epsilon >= gaussian_epsilon(DELTA, 1 / PRELUDE)


def test_levels_are_paid_for_in_delta_and_in_what_an_attacker_can_do():
    accountant = bd.WorstCaseAccountant()
    accountant.step(noise_multiplier=2.0)
    plain = accountant.guarantee(1e-5)
    assert with_prelude(plain, None, 0.0) is plain
    paid = with_prelude(plain, 2.0, 0.01)
    assert (paid.epsilon, paid.delta) == (plain.epsilon, 1e-5 + 0.01)
    assert paid.attacker.advantage == pytest.approx(plain.attacker.advantage + 0.01)
    at = plain.attacker.false_positive_rates[5]
    assert paid.attacker.true_positive_rate(at) == pytest.approx(plain.attacker.true_positive_rate(at) + 0.01)
    assert paid.delta_split["levels"] == 0.01
    assert "charged to everybody in full" in paid.assumptions[-1]


def test_a_run_says_both_and_is_read_back(tmp_path):
    plan = dataclasses.replace(PLAN, noise_multiplier=3.0, steps=4, engine="rdp")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)).astype(np.float32)

    def loss(params, record):
        return ((record[0] @ params - record[1]) ** 2).sum()

    run = plan.fit(loss, np.zeros(2, np.float32), (x, x[:, 0]), holdout=(x[:40], x[:40, 0]), members=40, seed=0)
    for promise in run.guarantees:
        assert promise.delta == DELTA + EXTRA
        assert "(H22)" in " ".join(promise.assumptions)
    assert run.curve().delta == DELTA + EXTRA
    assert bd.Run.load(run.save(tmp_path / "run")).guarantees == run.guarantees
    assert run.to_report().settings.other["noise multiplier of the preparation"] == PRELUDE


def test_plans_that_do_not_count_it_refuse_it():
    with pytest.raises(InputError, match="prelude_delta"):
        dataclasses.replace(PLAN, prelude=None)
    with pytest.raises(InputError, match="prelude"):
        dataclasses.replace(PLAN, prelude=0.0)
    with pytest.raises(InputError, match="left out for a sampler"):
        bd.SGLD(sampling_rate=0.1, steps=5, step_size=1e-3, prelude=2.0)
    with pytest.raises(InputError, match="without a prelude"):
        bd.Study(PLAN.calibrate(1.0))
    with pytest.raises(InputError, match="epsilon with"):
        PLAN.calibrate(advantage=0.1)


def test_a_filter_charges_it_first():
    plan = dataclasses.replace(PLAN, noise_multiplier=4.0, filter=Filter(2.0))
    budgets = plan.filter.accountant(10, plan)
    own = tallies(plan, budgets=budgets, counts=Counts(0, 0, 0))
    assert own.guarantees(0.9)[0].epsilon <= 2.0 + 1e-9
    spent = budgets.cost(float(budgets.orders[0]))
    assert (spent > 0).all()
    small = dataclasses.replace(PLAN, noise_multiplier=40.0, prelude=0.2, filter=Filter(1.0))
    with pytest.raises(InputError, match="to pay for the preparation"):
        tallies(small, budgets=small.filter.accountant(10, small), counts=Counts(0, 0, 0))
