"""`dpvi-abalone` and `dpvi-adult` (J10, J11) on made-up records and a few steps: what is compared, at which ε."""

import pytest
from pictures import drawn
from s2_records import REFERENCE, made_up

from bayesdp.experiments.common.style import pick
from bayesdp.experiments.dpvi import fits, logistic


@pytest.fixture(scope="module")
def problem():
    return logistic.Problem(
        load=made_up,
        sampling_rate=0.1,
        steps=40,
        clip=5.0,
        sigmas=(3.0,),
        passes=4,
        bound=5.0,
        repeats=2,
        epsilons=(1.0,),
        claimed=(10.0,),
        reference=REFERENCE,
    )


@pytest.fixture(scope="module")
def rows(problem):
    return logistic.compute(problem)


def test_everybody_is_there_and_can_be_drawn(rows):
    assert [row["curve"] for row in pick(rows, way="exact")] == [
        *("coded", "printed", "DP-SGLD"),
        *("plain", "natural", "aligned", "noise-aware"),
    ]
    assert [row["curve"] for row in pick(rows, way="paper")] == [
        "DPVI, moments",
        "DPVI, advanced",
        "DPVI, exact",
        "DP-SGLD",
    ]
    assert len(drawn("dpvi-abalone", rows).axes) == 3


def test_runs_are_the_same_and_only_the_account_differs(rows):
    moments, advanced, exact = (pick(rows, curve=f"DPVI, {how}")[0] for how in ("moments", "advanced", "exact"))
    assert exact["epsilon"] < moments["epsilon"] < advanced["epsilon"]
    assert moments["accuracy"] == advanced["accuracy"] == exact["accuracy"]


def test_differences_are_from_the_right_rows(rows):
    free, coded, aligned = (pick(rows, curve=name)[0] for name in ("non-private", "coded", "aligned"))
    assert free["gap_accuracy"] == free["gap_accuracy_se"] == 0
    assert free["ahead_accuracy"] == ""
    assert coded["ahead_log_likelihood"] == 0
    for score in fits.SCORES:
        assert aligned[f"gap_{score}"] == pytest.approx(aligned[score] - free[score])
        assert aligned[f"ahead_{score}"] == pytest.approx(aligned[score] - coded[score])
    assert free["accuracy"] > 0.75


def test_dp_sgld_is_given_what_really_costs_as_much():
    epsilon = 0.3
    for problem in (logistic.ABALONE, logistic.ADULT):
        plan = problem.sgld_exactly(epsilon)
        assert 0.99 * epsilon < plan.guarantee().epsilon <= epsilon
        assert plan.epsilon > epsilon
