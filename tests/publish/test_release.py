"""What a release promises: ε from its plan, and with paid counts both together."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from release_samples import DELTA, PAID, release

from bayesdp.errors import InputError
from bayesdp.publish.release import Release, _worse


def test_it_comes_back_from_json():
    one = release(paid=PAID, facts={"filter": "none", "n": 3.0}, num_records=500)
    again = Release.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again == one
    assert again.report() == one.report()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_epsilon_follows_from_the_plan(adjacency):
    one = release(adjacency=adjacency)
    assert one.recomputed() == pytest.approx(one.dp.epsilon, rel=1e-12)
    twice = release(adjacency=adjacency, chains=2)
    assert twice.recomputed() > one.recomputed()


def test_a_schedule_is_accounted_step_by_step():
    levels = replace(release(), noise=((4.0, 2), (8.0, 4)))
    from bayesdp.accountant import WorstCaseAccountant

    own = WorstCaseAccountant(engine="rdp")
    for noise in [4.0, 4.0, 8.0, 8.0, 8.0, 8.0]:
        own.step(noise_multiplier=noise, sampling_rate=0.5)
    assert levels.recomputed() == pytest.approx(own.epsilon(DELTA))
    assert levels.report().settings.noise_multiplier == (4.0, 8.0)


def test_counts_over_test_records_cost_the_larger_or_the_sum():
    coming, exchanged = release(paid=PAID), release(paid=PAID, adjacency="replace-one")
    assert coming.guarantee.epsilon == coming.dp.epsilon > PAID.epsilon
    assert exchanged.guarantee.epsilon == pytest.approx(exchanged.dp.epsilon + PAID.epsilon)
    dear = replace(coming, paid=replace(PAID, epsilon=9.0))
    assert dear.guarantee.epsilon == 9.0
    assert any("(H25)" in one for one in coming.guarantee.assumptions)
    assert release().guarantee == release().dp


def test_an_attacker_has_the_better_of_the_two_sides():
    plain = release(engine="pld").dp.attacker
    small, large = _worse(plain, 0.001), _worse(plain, 3.0)
    assert small.advantage == plain.advantage
    assert large.advantage == pytest.approx(math.tanh(1.5))
    # Randomised response is the worst ε-DP test: its curve is the bound.
    rate = np.array(large.false_positive_rates)
    truth = np.minimum(np.exp(3) * rate, 1 - np.exp(-3) * (1 - rate))
    assert np.allclose(large.true_positive_rates, np.maximum(truth, plain.true_positive_rates))
    assert release(engine="pld", adjacency="replace-one", paid=PAID).guarantee.attacker is None


def test_the_public_report_holds_the_promise_to_everybody_and_nothing_else():
    report = release(paid=PAID).report()
    assert [one.notion for one in report.guarantees] == ["dp"]
    assert report.settings.records is None
    for name in ("curve", "history", "records", "groups", "norms", "progress", "posterior", "watched", "confusion"):
        assert getattr(report, name) is None, name
    assert not report.metrics
    assert release(num_records=500).report().settings.records == 500


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise": ()},
        {"noise": ((0.0, 6),)},
        {"noise": ((4.0, 5),)},
        {"rates": ((0.5,),)},
        {"chains": 0},
        {"engine": "guess"},
        {"num_records": 0},
        {"title": "\x00"},
    ],
)
def test_bad_fields_are_refused(wrong):
    with pytest.raises(InputError):
        replace(release(), **wrong)


def test_a_preparation_that_was_paid_for_counts_as_one_more_step():
    one, prepared = release(), release(prelude=10.0, prelude_delta=DELTA / 100)
    assert prepared.recomputed() > one.recomputed()
    from bayesdp.accountant import WorstCaseAccountant

    own = WorstCaseAccountant(engine="rdp")
    own.step(noise_multiplier=10.0)
    own.step(noise_multiplier=4.0, sampling_rate=0.5, steps=6)
    assert prepared.recomputed() == pytest.approx(own.epsilon(DELTA - DELTA / 100))
    assert Release.from_dict(json.loads(json.dumps(prepared.to_dict()))) == prepared
