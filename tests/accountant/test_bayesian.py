"""The Bayesian accountant: test vectors, reductions, coverage by simulation, labels, refusals, state."""

from __future__ import annotations

import copy
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import bayesdp as bd
from bayesdp import convert
from bayesdp.accountant.worst_case import PlanDP
from bayesdp.compose.orders import planned
from bayesdp.divergence import sgm
from bayesdp.errors import InputError
from bayesdp.estimate import quantile

DELTA = 1e-5
EIGHT = [0.10, 0.25, 0.40, 0.55, 0.70, 0.85, 1.00, 0.30]

SETTINGS = {
    "holdout": {"orders": [1.5, 2.0, 9.0], "failure": 0.01},
    "holdout, cap": {"orders": [1.5, 2.0, 9.0], "failure": 0.01, "cap": 1.0},
    "holdout, planned": {"failure": 0.01, **dict(zip(("orders", "weights"), planned(1, 0.1, 6, DELTA), strict=True))},
    "holdout, replace": {"orders": [3.0], "failure": 0.01, "cap": 1.0, "adjacency": "replace-one"},
    "holder": {"composition": "holder", "total_steps": 6, "cap": 1.0, "orders": [2.0, 9.0], "failure": 1e-9},
    "holder, paper": {
        "composition": "holder",
        "total_steps": 6,
        "estimator": "student-t",
        "orders": [2, 9],
        "failure": 1e-15,
    },
    "product": {"composition": "product", "estimator": "student-t", "orders": [2, 9], "failure": 1e-15},
    "product, weak": {
        "composition": "product",
        "estimator": "plug-in",
        "orders": [2.5, 9],
        "failure": 1e-9,
        "strength": "weak",
    },
}
WITNESSES, STEPS = 80, 6
settings = pytest.mark.parametrize("setting", SETTINGS)


def make(setting, **more):
    return bd.BayesianAccountant(**{**SETTINGS[setting], **more})


def advance(accountant, first=0, last=STEPS, sides=("absent", "present"), witnesses=WITNESSES):
    for t in range(first, last):
        for i, side in enumerate(sides):
            d = np.random.default_rng([t, i]).random(witnesses)
            accountant.step(d, noise_std=1.0 + t % 2, sampling_rate=0.1, orientation=side)
    return accountant


def arrays(state):
    if isinstance(state, dict):
        return sum(map(arrays, state.values()))
    return state.size if isinstance(state, np.ndarray) else 0


# --- the papers' compositions -----------------------------------------------------------------------------------


def test_spec_i3_holder_total():
    ba = bd.BayesianAccountant(
        composition="holder", estimator="student-t", orders=[9], total_steps=100, failure=1e-15, cap=None
    )
    for _ in range(100):
        ba.step(EIGHT, noise_std=1, sampling_rate=0.01)
    assert ba.cost(9) == pytest.approx(4.68083068118943, rel=1e-13)
    assert ba.steps == 100
    with pytest.raises(InputError, match="Expected at most total_steps=100 steps, got 1 more after 100"):
        ba.step(EIGHT, noise_std=1, sampling_rate=0.01)


@pytest.mark.parametrize(
    ("composition", "estimator", "total"),
    [("holder", "plug-in", 0.424544770956993), ("product", "plug-in", 0.294538046277977)],
)
def test_spec_i3_plain_means(composition, estimator, total):
    ba = bd.BayesianAccountant(composition=composition, estimator=estimator, orders=[9], total_steps=100)
    ba.step(EIGHT, noise_std=1, sampling_rate=0.01, steps=100)
    assert ba.cost(9) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(("gamma", "c_hat"), [(1e-3, 0.0110496044356372), (1e-5, 0.0199786106546506)])
def test_spec_i3_student_t_and_its_cap(gamma, c_hat):
    plain = bd.BayesianAccountant(composition="product", estimator="student-t", orders=[9], failure=gamma)
    capped = bd.BayesianAccountant(composition="product", estimator="student-t", orders=[9], failure=gamma, cap=1.0)
    for ba in (plain, capped):
        ba.step(EIGHT, noise_std=1, sampling_rate=0.01)
    assert plain.cost(9) == pytest.approx(c_hat, rel=1e-12)
    assert capped.cost(9) == pytest.approx(min(c_hat, 0.0142532963470641), rel=1e-12)


def test_spec_i4_the_same_person_at_every_step():
    truth = {"product": 62.0114506958278, "holder": 99.3068528194401}
    for composition, total in truth.items():
        ba = bd.BayesianAccountant(composition=composition, estimator="plug-in", orders=[2], total_steps=100)
        for _ in range(100):
            ba.step(cost=[[0.0], [1.0]])
        assert ba.cost(2) == pytest.approx(total, rel=1e-12)
    assert any(
        "UNSOUND" in word
        for word in bd.BayesianAccountant(composition="product", estimator="plug-in").guarantee(0.1).assumptions
    )


@given(
    st.sampled_from(["holder", "product"]),
    st.sampled_from(["plug-in", "student-t"]),
    st.floats(0.05, 2),
    st.sampled_from([0.01, 0.2, 1.0]),
    st.integers(1, 50),
)
def test_with_constant_distances_both_are_the_moments_accountant(composition, estimator, z, rate, steps):
    orders = np.array([2.0, 5.0, 12.0])
    ba = bd.BayesianAccountant(
        composition=composition, estimator=estimator, orders=orders, total_steps=50, failure=1e-12
    )
    for _ in range(2):
        ba.step([0.7] * 5, noise_std=0.7 / z, sampling_rate=rate, steps=steps if steps < 25 else 25)
    done = ba.steps
    ma = bd.WorstCaseAccountant(engine="moments", orders=orders)
    ma.step(noise_multiplier=1 / z, sampling_rate=rate, steps=done)
    for order in orders:
        assert ba.cost(order) == pytest.approx(ma.cost(order), rel=1e-9, abs=1e-15)
    lost = 50 * 3 * 1e-12  # every planned estimate at every order
    promise = ba.guarantee(DELTA)
    assert promise.epsilon == pytest.approx(ma.epsilon(DELTA - lost), rel=1e-9)
    assert promise.delta_split == pytest.approx({"loss": DELTA - lost, "estimates": lost})
    assert (promise.coverage, promise.strength, promise.ex_post) == (None, "strong", False)


def test_distribution_free_estimators_stay_between_the_mean_and_the_worst_case():
    d = np.random.default_rng(0).random(200)
    costs = {}
    for estimator in ("plug-in", "betting", "bernstein", "kl", "hoeffding", "student-t"):
        ba = bd.BayesianAccountant(composition="product", estimator=estimator, orders=[3], cap=1.0)
        ba.step(d, noise_std=1.0, sampling_rate=0.2)
        costs[estimator] = ba.cost(3)
    assert min(costs, key=costs.get) == "plug-in"
    assert max(costs.values()) <= sgm.cost(1.0, 3.0, sampling_rate=0.2)
    assert costs["plug-in"] < costs["betting"] < costs["hoeffding"]


def test_many_records_go_through_the_table_and_below_the_cap():
    ba = bd.BayesianAccountant(composition="product", estimator="betting", orders=[3, 8], cap=1.0)
    ba.step(np.ones(1000), noise_std=1.0, sampling_rate=0.2)
    assert ba.cost(3) == sgm.cost(1.0, 3.0, sampling_rate=0.2)


def test_markov_reading_per_person():
    """C3: with a coverage the joint statement is taken at δ (1 - coverage)."""
    ba = bd.BayesianAccountant(composition="holder", estimator="plug-in", orders=[2, 8], total_steps=10, failure=1e-14)
    ba.step(EIGHT, noise_std=1.0, sampling_rate=0.1, steps=10)
    promise = ba.guarantee(DELTA, coverage=0.999)
    costs = [ba.cost(2), ba.cost(8)]
    want = convert.epsilon(costs, [2, 8], DELTA * (1 - 0.999) - 10 * 2 * 1e-14, "strong")
    assert promise.epsilon == pytest.approx(want, rel=1e-9)
    assert (promise.coverage, promise.delta) == (0.999, DELTA)
    assert promise.epsilon > ba.guarantee(DELTA).epsilon
    assert any("C3" in word for word in promise.assumptions)


def test_markov_reading_holds_for_a_known_population():
    """People of two kinds, 2 % expensive: the share with Pr[L >= ε] >= δ must be at most 1 - coverage."""
    delta, coverage, steps = 0.05, 0.9, 20
    costs = np.repeat([[0.01], [1.0]], [98, 2], axis=0)  # order 2: (α-1)D = r², Gaussian without sampling
    ba = bd.BayesianAccountant(
        composition="holder", estimator="plug-in", orders=[2.0], total_steps=steps, failure=1e-12
    )
    for _ in range(steps):
        ba.step(cost=costs)
    epsilon = ba.guarantee(delta, coverage).epsilon
    squared = steps * costs[:, 0]
    exceeding = stats.norm.sf((epsilon - squared / 2) / np.sqrt(squared))
    assert (exceeding >= delta).mean() <= 1 - coverage
    assert exceeding.mean() <= delta * (1 - coverage)


@pytest.mark.parametrize("coverage", [None, 0.99])
def test_a_failure_probability_that_eats_delta_is_refused_with_one_that_would_do(coverage):
    ba = bd.BayesianAccountant(composition="holder", cap=1.0, orders=[2, 3, 4, 5], total_steps=1000)
    ba.step(EIGHT, noise_std=1.0)
    with pytest.raises(InputError, match=r"Expected failure to be below .*got failure=1e-06.*C12") as caught:
        ba.guarantee(DELTA, coverage)
    told = float(str(caught.value).split("below ")[1].split(",")[0])
    better = bd.BayesianAccountant(
        composition="holder", cap=1.0, orders=[2, 3, 4, 5], total_steps=1000, failure=told * 0.99
    )
    better.step(EIGHT, noise_std=1.0)
    assert better.guarantee(DELTA, coverage).epsilon > 0


@pytest.mark.parametrize("composition", ["holdout", "product"])
def test_half_a_run_of_one_side_does_not_speak_for_the_other(composition):
    ba = bd.BayesianAccountant(
        composition=composition, estimator=None if composition == "holdout" else "plug-in", failure=0.01
    )
    advance(ba)
    advance(ba, last=1, sides=("absent",))
    for query in (lambda: ba.guarantee(0.1), lambda: ba.guarantee(0.1, 0.5)):
        with pytest.raises(InputError, match=r"as many steps of outsiders as of members, got \{'absent': 7, 'pr"):
            query()


# --- the holdout ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("sides", [("absent",), ("present",), ("absent", "present")])
def test_a_point_is_an_order_statistic_of_the_instance_accountant(coverage, sides):
    ba = advance(make("holdout"), sides=sides)
    largest = 0.0
    for i, _ in enumerate(sides):
        ia = bd.InstanceAccountant(records=WITNESSES, orders=[1.5, 2.0, 9.0])
        for t in range(STEPS):
            ia.step(np.random.default_rng([t, i]).random(WITNESSES), noise_std=1.0 + t % 2, sampling_rate=0.1)
        rank = next(r for r in range(1, 81) if quantile.covered(r, WITNESSES, 0.01 / len(sides)) >= coverage)
        largest = max(largest, np.sort(ia.epsilon(DELTA))[rank - 1])
    promise = ba.guarantee(DELTA, coverage)
    assert promise.epsilon == largest
    assert promise.orientation == (sides[0] if len(sides) == 1 else "both")
    assert (promise.coverage, promise.failure) == (coverage, 0.01)
    assert promise.strength == "weak"
    assert promise.ex_post


def test_the_answer_is_the_larger_side_and_one_side_says_so():
    both, outside = make("holdout"), make("holdout")
    for d, side in ((0.1, "absent"), (0.9, "present")):
        both.step([d] * WITNESSES, noise_std=1.0, orientation=side)
    outside.step([0.1] * WITNESSES, noise_std=1.0)
    assert both.guarantee(DELTA).epsilon > outside.guarantee(DELTA).epsilon
    assert outside.guarantee(DELTA).orientation == "absent"
    assert any("nothing is said about members" in word for word in outside.guarantee(DELTA).assumptions)
    assert not any("nothing is said" in word for word in both.guarantee(DELTA).assumptions)
    assert "outside the training data only" in str(outside.guarantee(DELTA))


def test_the_two_step_counter_example_of_h5_is_caught_by_the_members():
    """First gradient a unit vector x', second norm 1 if <w1, x'> > 2.33: 1 % of outsiders pay, 9.2 % of members."""
    people, rng = 6000, np.random.default_rng(0)
    # Everybody has an axis of their own, so <w1, x'> is one coordinate, moved by 1 for those in the data.
    first = {"absent": rng.normal(size=people), "present": 1 + rng.normal(size=people)}
    ba = bd.BayesianAccountant(orders=[2.0, 3.0, 5.0], failure=1e-3)
    for distances in ({side: np.ones(people) for side in first}, {side: 1.0 * (w > 2.33) for side, w in first.items()}):
        for side, d in distances.items():
            ba.step(d, noise_std=1.0, orientation=side)
    paid = {side: np.mean(ba.cost(2.0, side) > 1.5) for side in first}
    assert paid["absent"] == pytest.approx(0.0099, abs=0.004)
    assert paid["present"] == pytest.approx(0.0918, abs=0.012)

    only = bd.BayesianAccountant(orders=[2.0, 3.0, 5.0], failure=1e-3)
    only.step(np.ones(people), noise_std=1.0)
    only.step(1.0 * (first["absent"] > 2.33), noise_std=1.0)
    cheap, dear = only.guarantee(0.01, coverage=0.95), ba.guarantee(0.01, coverage=0.95)
    assert cheap.orientation == "absent"
    one_step, two_steps = (bd.InstanceAccountant(records=1, orders=[2.0, 3.0, 5.0]) for _ in range(2))
    one_step.step([1.0], noise_std=1.0)
    two_steps.step([1.0], noise_std=1.0, steps=2)
    assert cheap.epsilon == pytest.approx(one_step.epsilon(0.01)[0])
    assert (dear.orientation, dear.epsilon) == ("both", pytest.approx(two_steps.epsilon(0.01)[0]))


def test_few_witnesses_are_told_what_they_support_or_get_the_dp_value():
    plain, capped = make("holdout"), make("holdout, cap")
    for ba in (plain, capped):
        ba.step(np.linspace(0.01, 0.2, WITNESSES), noise_std=1.0, sampling_rate=0.1, steps=6)
    most = 0.01 ** (1 / WITNESSES)
    with pytest.raises(InputError, match=r'coverage to be at most 0\.944\d*, which 80 witnesses "absent"') as e:
        plain.guarantee(DELTA, coverage=0.99)
    told = float(str(e.value).split("at most ")[1].split(",")[0])
    assert most - 1e-4 < told <= most
    assert plain.guarantee(DELTA, coverage=told).epsilon > 0
    dp = bd.WorstCaseAccountant(engine="pld")
    dp.step(noise_multiplier=1.0, sampling_rate=0.1, steps=6)
    promise = capped.guarantee(DELTA, coverage=0.99)
    assert promise.epsilon == dp.epsilon(0.75 * DELTA)
    assert promise.no_better
    supported = capped.guarantee(DELTA, coverage=0.9)
    assert not supported.no_better
    for one in (promise, supported):
        assert (one.strength, one.ex_post, one.dp_epsilon) == ("weak", True, dp.epsilon(DELTA))
        assert one.delta_split == {"ex-post": DELTA / 4, "dp": 0.75 * DELTA}
    strong = make("holdout, cap", strength="strong")
    strong.step(np.linspace(0.01, 0.2, WITNESSES), noise_std=1.0, sampling_rate=0.1, steps=6)
    assert strong.guarantee(DELTA, coverage=0.9).strength == "strong"
    with pytest.raises(InputError, match="coverage to be at most"):  # a DP ε bounds no tail of the loss
        strong.guarantee(DELTA, coverage=0.99)


def test_witnesses_without_a_finite_value():
    ba = bd.BayesianAccountant(orders=[2.0], failure=0.1)
    costs = np.where(np.arange(100) < 95, 0.5, math.inf)[:, None]
    ba.step(cost=costs)
    assert ba.guarantee(0.1, coverage=0.8).epsilon == pytest.approx(convert.epsilon([0.5], [2.0], 0.1))
    assert ba.guarantee(0.1, coverage=0.97).epsilon == math.inf
    share, epsilon = ba.curve(0.1)
    assert epsilon[-1] == math.inf
    assert share[-1] < 1


def test_members_who_are_all_there_are_are_counted():
    """H16: the share of this data set is the empirical one, and costs no failure probability."""
    sampled, counted = make("holdout"), make("holdout", members_counted=True)
    for ba in (sampled, counted):
        advance(ba, sides=("present",))
    own = np.sort(counted.witnesses["present"].epsilon(DELTA))
    for coverage in (0.5, 0.9, 0.975, 0.99):
        promise = counted.guarantee(DELTA, coverage)
        assert promise.epsilon == own[math.ceil(coverage * WITNESSES - 1e-9) - 1]
        assert promise.failure == 0
        assert "counted, not estimated (H16)" in " ".join(promise.assumptions)
    assert counted.guarantee(DELTA, 0.9).epsilon < sampled.guarantee(DELTA, 0.9).epsilon
    curve = counted.curve(DELTA)
    assert (curve.failure, curve.at(0.9)) == (0, counted.guarantee(DELTA, 0.9).epsilon)
    np.testing.assert_allclose(curve.coverage, np.arange(1, WITNESSES + 1) / WITNESSES)
    assert bd.BayesianAccountant.from_state(counted.state()).guarantee(DELTA) == counted.guarantee(DELTA)


def test_outsiders_beside_counted_members_have_the_whole_failure_probability():
    ba = advance(make("holdout", members_counted=True))
    outside = np.sort(ba.witnesses["absent"].epsilon(DELTA))[quantile.rank_for(0.8, WITNESSES, 0.01) - 1]
    inside = np.sort(ba.witnesses["present"].epsilon(DELTA))[math.ceil(0.8 * WITNESSES) - 1]
    promise = ba.guarantee(DELTA, 0.8)
    assert (promise.epsilon, promise.failure) == (max(outside, inside), 0.01)
    with pytest.raises(InputError, match="members_counted"):
        make("product", members_counted=True)


# --- the curve --------------------------------------------------------------------------------------------------


def test_a_curve_ascends_and_is_no_better_than_the_point():
    for ba in (advance(make("holdout")), advance(make("holdout, cap"), sides=("present",))):
        curve = ba.curve(DELTA)
        share, epsilon = curve
        assert (np.diff(share) > 0).all()
        assert (np.diff(epsilon) >= 0).all()
        for coverage in (0.2, 0.5, 0.7):
            assert curve.at(coverage) >= ba.guarantee(DELTA, coverage).epsilon
        assert curve.at(0.99999) == curve.limit
        assert (epsilon <= curve.limit).all()
    with pytest.raises(InputError, match="at least one step"):
        make("holdout").curve(DELTA)
    with pytest.raises(InputError, match="holdout"):
        advance(make("holder")).curve(DELTA)


def populations(rng, law, size):
    """Costs at order 2 of `size` people: continuous, heavy-tailed, or two values."""
    if law == "two-point":
        return np.where(rng.random(size) < 0.3, 2.0, 0.1)
    return rng.exponential(size=size) if law == "exponential" else rng.pareto(1.0, size=size)


def share_at_or_below(law, cost):
    if law == "two-point":
        return np.where(cost >= 2.0, 1.0, np.where(cost >= 0.1, 0.7, 0.0))
    return -np.expm1(-cost) if law == "exponential" else 1 - 1 / (1 + cost)


@pytest.mark.parametrize("law", ["exponential", "pareto", "two-point"])
def test_the_curve_is_valid_when_the_coverage_is_picked_after_looking(law):
    """Worst rank of every repetition: the simultaneous curve is wrong at most as often as it says."""
    failure, delta, people, repeats = 0.2, 0.1, 40, 1500
    rng, wrong, pointwise = np.random.default_rng(0), 0, 0
    fixed = quantile.covered(np.arange(1, people + 1), people, failure)
    for _ in range(repeats):
        ba = bd.BayesianAccountant(orders=[2.0], failure=failure, strength="strong")
        costs = populations(rng, law, people)
        ba.step(cost=costs[:, None])
        share, epsilon = ba.curve(delta)
        truth = share_at_or_below(law, epsilon - math.log(1 / delta) + 1e-12)
        wrong += bool((truth < share).any())
        pointwise += bool((share_at_or_below(law, np.sort(costs)) < fixed).any())
    assert stats.binom.sf(wrong - 1, repeats, failure) > 1e-6
    if law != "two-point":  # the control: points fixed beforehand, picked afterwards, are wrong far more often (H12)
        assert stats.binom.sf(pointwise - 1, repeats, failure) < 1e-6


@pytest.mark.parametrize("sides", [("absent",), ("absent", "present")])
@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_a_coverage_fixed_beforehand_is_right_as_often_as_it_says(coverage, sides):
    failure, delta, people, repeats = 0.2, 0.1, 40, 1000
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(repeats):
        ba = bd.BayesianAccountant(orders=[2.0], failure=failure, strength="strong")
        for side in sides:
            ba.step(cost=populations(rng, "exponential", people)[:, None], orientation=side)
        cost = ba.guarantee(delta, coverage).epsilon - math.log(1 / delta)
        # Both sides follow the same law here, and the larger of the two order statistics is told.
        wrong += share_at_or_below("exponential", cost) < coverage
    assert stats.binom.sf(wrong - 1, repeats, failure) > 1e-6
    assert wrong > 0 or len(sides) == 2


# --- labels (M14) -------------------------------------------------------------------------------------------------


@settings
def test_every_promise_says_what_it_rests_on(setting):
    promise = advance(make(setting)).guarantee(DELTA, 0.5 if "holdout" in setting else None)
    assert promise.notion == "bdp"
    assert promise.sensitive
    assert promise.adjacency == SETTINGS[setting].get("adjacency", "add-remove")
    assert promise.sampling == "poisson"
    assert promise.orientation == "both"
    assert sum(promise.delta_split.values()) == pytest.approx(DELTA)
    assert promise.ex_post is setting.startswith("holdout")
    text = " ".join(promise.assumptions)
    named = ("H3", "H5", "H12") if setting.startswith("holdout") else ("C7", "ERR 2")
    assert all(item in text for item in named)
    assert ("UNSOUND" in text) == setting.startswith("product")
    assert ("heuristic" in text) == (SETTINGS[setting].get("estimator") == "student-t")
    doubtful = [one for one in promise.assumptions if re.search("unsound|heuristic|an estimate", one.lower())]
    assert promise.caveats == tuple(doubtful)
    estimated = {"student-t": "heuristic", "plug-in": "estimate"}.get(SETTINGS[setting].get("estimator"), "proved")
    assert promise.standing == ("unsound" if setting.startswith("product") else estimated)
    assert promise.strength == ("weak" if "weak" in setting or setting.startswith("holdout") else "strong")
    assert bd.Guarantee.from_dict(promise.to_dict()) == promise
    with pytest.raises(TypeError, match="Bayesian"):
        float(promise)


def test_without_sampling_the_label_says_none():
    ba = make("holdout")
    ba.step([0.1] * WITNESSES, noise_std=1.0)
    assert ba.guarantee(DELTA).sampling == "none"
    ba.step([0.1] * WITNESSES, noise_std=1.0, sampling_rate=0.5)
    assert ba.guarantee(DELTA).sampling == "poisson"


# --- queries and refusals change nothing --------------------------------------------------------------------------


@settings
def test_queries_change_nothing(equal, setting):
    for ba in (make(setting), advance(make(setting))):
        before = copy.deepcopy(ba.state())
        answers = [ba.guarantee(DELTA, 0.5) for _ in range(2)]
        assert answers[0] == answers[1]
        ba.guarantee(0.01), ba.steps
        for side in ("absent", "present"):
            found = ba.cost(ba.orders[0], side)
            if isinstance(found, np.ndarray):
                found[:] = 9
        if "holdout" in setting and ba.steps:
            ba.curve(DELTA).epsilon[:] = 0
        for bad in (0.0, 1.0, -1, math.nan, "x", None):
            with pytest.raises(InputError, match="Expected delta"):
                ba.guarantee(bad)
        for bad in (0.0, 1.0, math.nan):
            with pytest.raises(InputError, match="Expected coverage"):
                ba.guarantee(DELTA, bad)
        for bad in (1.0, 77.0):
            with pytest.raises(InputError, match="Expected order"):
                ba.cost(bad)
        with pytest.raises(InputError, match="Expected orientation"):
            ba.cost(ba.orders[0], "sideways")
        assert equal(ba.state(), before)


GOOD = {"distances": [0.1] * WITNESSES, "noise_std": 1.0, "sampling_rate": 0.5}


@settings
@pytest.mark.parametrize(
    ("step", "match"),
    [
        ({"distances": [0.1] * 79 + [-0.2]}, r"Expected distances .*>= 0, got distances\[79\]=-0\.2"),
        ({"distances": [0.1] * 79 + [math.nan]}, r"got distances\[79\]=nan"),
        ({"distances": [0.1] * 79 + [math.inf]}, r"got distances\[79\]=inf"),
        ({"distances": [[0.1]] * 80}, r"Expected distances with 1 dimension\(s\), got shape \(80, 1\)"),
        ({"distances": [[0.1], [0.1, 0.2]]}, "Expected distances"),
        ({"distances": 0.1}, r"Expected distances with 1 dimension\(s\), got shape \(\)"),
        ({"distances": []}, r"Expected distances with at least one entry"),
        ({"distances": "abc"}, "Expected distances"),
        ({"distances": None}, "Expected either distances or cost, got none"),
        ({"sampling_rate": 1.5}, r"Expected sampling_rate .*got sampling_rate=1\.5"),
        ({"sampling_rate": -0.5}, "Expected sampling_rate"),
        ({"noise_std": 0}, r"Expected noise_std .*got noise_std=0"),
        ({"noise_std": -2}, "Expected noise_std"),
        ({"noise_std": None}, "Expected noise_std"),
        ({"orientation": "inside"}, "Expected orientation to be one of 'absent', 'present', got orientation='inside'"),
        ({"steps": 0}, "Expected steps"),
        ({"steps": 7}, "Expected at most total_steps=6 steps"),
        ({"cost": np.ones((80, 2))}, "Expected either distances or cost, got both"),
        ({"distances": None, "cost": np.ones(80)}, None),
        ({"distances": None, "cost": np.ones((80, 3, 1))}, None),
        ({"distances": None, "cost": np.ones((80, 99))}, None),
        ({"distances": None, "cost": np.full((80, 2), np.nan)}, None),
    ],
)
def test_a_refused_step_leaves_no_trace(equal, setting, step, match):
    for ba in (make(setting, total_steps=6), advance(make(setting, total_steps=6), last=2)):
        before = ba.state()
        with pytest.raises(InputError, match=match or r"Expected (cost|distances, got cost)"):
            ba.step(**{**GOOD, **step})
        assert equal(ba.state(), before)


@settings
def test_another_number_of_witnesses_is_refused(equal, setting):
    ba = advance(make(setting, total_steps=6), last=2)
    before = ba.state()
    with pytest.raises(InputError, match="distances with one entry for each of the 80 records, got 79"):
        ba.step([0.1] * 79, noise_std=1.0)
    if "cap" in SETTINGS[setting]:
        with pytest.raises(InputError, match=r"Expected distances to be at most cap=1, got distances=1\.5"):
            ba.step([1.5] * 80, noise_std=1.0)
    assert equal(ba.state(), before)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"composition": "magic"}, "Expected composition to be one of 'holdout', 'holder', 'product'"),
        ({"estimator": "betting"}, "Expected estimator to be left out"),
        ({"composition": "product", "estimator": "guess"}, "Expected estimator to be one of"),
        ({"composition": "holder", "cap": 1.0}, "Expected total_steps to be given"),
        ({"composition": "holder", "total_steps": 5}, r"Expected cap to be given for estimator='betting'"),
        ({"composition": "product", "estimator": "kl"}, "Expected cap"),
        ({"composition": "product", "cap": 1.0, "weights": [1.0], "orders": [2]}, "Expected weights to be left out"),
        ({"orders": [1.0]}, "Expected orders"),
        ({"orders": [0.5, 2]}, "Expected orders"),
        ({"orders": [2, 3], "weights": [0.2, 0.2]}, "sum to 1"),
        ({"total_steps": 0}, "Expected total_steps"),
        ({"failure": 0}, "Expected failure"),
        ({"failure": 1.0}, "Expected failure"),
        ({"cap": -1}, "Expected cap"),
        ({"cap": math.nan}, "Expected cap"),
        ({"strength": "magic"}, "Expected strength"),
        ({"adjacency": "edit"}, "Expected adjacency"),
        ({"adjacency": "replace-one"}, "Expected cap"),
    ],
)
def test_bad_arguments(arguments, match):
    with pytest.raises(InputError, match=match):
        bd.BayesianAccountant(**arguments)


# --- state ------------------------------------------------------------------------------------------------------


@settings
@pytest.mark.parametrize("witnesses", [WITNESSES, 500])
def test_a_saved_run_goes_on_as_if_it_had_not_been_interrupted(equal, tmp_path, setting, witnesses):
    if witnesses > WITNESSES and "replace" in setting:
        witnesses = 260
    whole = advance(make(setting), witnesses=witnesses)
    half = advance(make(setting), last=3, witnesses=witnesses)
    half.save(tmp_path / "half.json")
    resumed = bd.BayesianAccountant.load(tmp_path / "half.json")
    assert equal(resumed.state(), half.state())
    advance(resumed, first=3, witnesses=witnesses)
    assert equal(resumed.state(), whole.state())
    assert resumed.guarantee(DELTA, 0.5) == whole.guarantee(DELTA, 0.5)
    if "holdout" in setting:
        np.testing.assert_array_equal(resumed.curve(DELTA).epsilon, whole.curve(DELTA).epsilon)
    with pytest.raises(InputError):  # the plan survives too
        bd.BayesianAccountant.from_state(advance(make(setting, total_steps=6)).state()).step(**GOOD)


@settings
def test_memory_does_not_grow_with_steps(setting):
    assert arrays(advance(make(setting), last=1).state()) == arrays(advance(make(setting)).state())


def test_a_state_is_a_copy():
    ba = advance(make("holdout"), last=1)
    kept, before = ba.state(), copy.deepcopy(ba.state())
    advance(ba, last=1)
    for side in ("absent", "present"):
        sums = (state["sides"][side]["tally"]["sums"]["0"] for state in (kept, before))
        np.testing.assert_array_equal(*sums)


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("holdout", ("kind",), "bayesdp/instance"),
        ("holdout", ("version",), 0),
        ("holdout", ("sides",), [1]),
        ("holdout", ("sides", "inside"), {}),
        ("holdout", ("sides", "absent"), {}),
        ("holdout", ("sides", "absent", "version"), 3),
        ("holdout", ("config", "failure"), 2.0),
        ("holdout", ("config", "surprise"), 2.0),
        ("holdout", ("config", "composition"), "product"),
        ("product", ("sides", "absent", "total"), np.array([-1.0, 0.0])),
        ("product", ("sides", "absent", "total"), np.ones(5)),
        ("product", ("sides", "absent", "steps"), -1),
        ("product", ("sides", "absent", "kind"), "bayesdp/instance"),
        ("holder", ("config", "total_steps"), None),
    ],
)
def test_a_state_that_does_not_fit_is_refused(setting, path, value):
    state = copy.deepcopy(advance(make(setting), last=2).state())
    bd.BayesianAccountant.from_state(state)
    at = state
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(InputError):
        bd.BayesianAccountant.from_state(state)


def test_a_truncated_or_tampered_file_is_refused(tmp_path):
    path = tmp_path / "a.json"
    advance(make("holdout"), last=1, witnesses=500).save(path)
    for file in (path, tmp_path / "a.npz"):
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        with pytest.raises(InputError):
            bd.BayesianAccountant.load(path)
        file.write_bytes(whole)
    bd.BayesianAccountant.load(path)
    (tmp_path / "a.npz").unlink()
    with pytest.raises(InputError, match=r"a\.npz"):
        bd.BayesianAccountant.load(path)


# --- I-5d --------------------------------------------------------------------------------------------------


def logistic_run(seed, accountant, steps=500, rate=0.05, people=2000, holdout=50, dim=5):
    """DP logistic regression in NumPy: clipped sum of gradients, unit noise, the norms of `holdout` outsiders."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=dim)
    x = rng.normal(size=(people + holdout, dim))
    y = rng.random(people + holdout) < 1 / (1 + np.exp(-x @ truth))
    norms, theta = np.linalg.norm(x, axis=1), np.zeros(dim)
    for _ in range(steps):
        residual = 1 / (1 + np.exp(-x @ theta)) - y
        size = np.abs(residual) * norms
        accountant.step(np.minimum(size[people:], 1.0), noise_std=1.0, sampling_rate=rate)
        batch = np.flatnonzero(rng.random(people) < rate)
        clipped = x[batch] * (residual[batch] / np.maximum(1, size[batch]))[:, None]
        theta -= 0.1 / (rate * people) * (clipped.sum(axis=0) + rng.normal(size=dim))
    return np.mean((x[:people] @ theta > 0) == y[:people])


def test_spec_i5d_logistic_regression():
    """Data-independent 8.432, always clipped points 10.5 before the minimum, the median person near 5."""
    whole = np.arange(2.0, 33.0)
    ia = bd.InstanceAccountant(records=50, orders=whole, strength="strong")
    assert logistic_run(0, ia) > 0.65
    assert np.median(ia.epsilon(DELTA)) == pytest.approx(4.97, abs=1.0)
    clipped = bd.InstanceAccountant(records=1, orders=whole, strength="strong")
    clipped.step([1.0], noise_std=1.0, sampling_rate=0.05, steps=500)
    assert clipped.epsilon(DELTA)[0] == pytest.approx(10.5, abs=0.1)
    rdp = bd.WorstCaseAccountant(engine="rdp", orders=whole)
    rdp.step(noise_multiplier=1.0, sampling_rate=0.05, steps=500)
    assert rdp.epsilon(DELTA) == pytest.approx(8.432, abs=5e-4)
    capped = bd.InstanceAccountant(records=1, orders=whole, cap=1.0)
    capped.step([1.0], noise_std=1.0, sampling_rate=0.05, steps=500)
    assert capped.epsilon(DELTA)[0] < 8.432


def test_witnesses_answer_for_themselves():
    """The holdout's own accountants: the ε of each witness, of which the guarantee is an order statistic."""
    rng = np.random.default_rng(3)
    accountant = bd.BayesianAccountant(cap=1.0)
    for side in ("absent", "present"):
        accountant.step(rng.random(400), noise_std=1.0, sampling_rate=0.1, orientation=side, steps=20)
    epsilons = {side: one.epsilon(1e-5) for side, one in accountant.witnesses.items()}
    assert set(epsilons) == {"absent", "present"}
    assert accountant.guarantee(1e-5, coverage=0.5).epsilon in np.concatenate(list(epsilons.values()))
    with pytest.raises(TypeError):
        accountant.witnesses["absent"] = None
    assert not bd.BayesianAccountant(composition="product", cap=1.0).witnesses


def test_a_plans_dp_that_is_known_is_used_as_it_is():
    """The accountants of one run may share its DP value instead of each composing it anew."""
    accountant = bd.BayesianAccountant(cap=1.0)
    accountant.step(np.full(400, 1.0), noise_std=2.0, sampling_rate=0.1, steps=50)
    dp = bd.WorstCaseAccountant()
    dp.step(noise_multiplier=2.0, sampling_rate=0.1, steps=50)
    known = PlanDP.of(dp, 1e-5)
    assert accountant.guarantee(1e-5, dp=known) == accountant.guarantee(1e-5)
    assert accountant.curve(1e-5, dp=known).limit == accountant.curve(1e-5).limit == known.at_share
    assert accountant.curve(1e-5).dp == known.epsilon
    assert accountant.witnesses["absent"].guarantee(1e-5, dp=known).epsilon <= known.at_share
