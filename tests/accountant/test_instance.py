"""The instance accountant: reductions to what is known, labels, refusals that leave no trace, state."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesdp as bd
from bayesdp import convert
from bayesdp.accountant.worst_case import PlanDP
from bayesdp.compose import ex_post, expected, one_holder, orders
from bayesdp.divergence import hockey_stick, sgm
from bayesdp.errors import InputError
from bayesdp.estimate import upper_mean

DELTA = 1e-5
FEW = [1.5, 2.0, 4.0, 9.0]

SETTINGS = {
    "ex-post": {"orders": FEW},
    "ex-post, cap": {"orders": FEW, "cap": 1.0},
    "ex-post, strong": {"orders": FEW, "cap": 1.0, "strength": "strong"},
    "ex-post, planned": dict(zip(("orders", "weights"), orders.planned(1.0, 0.1, 6, DELTA), strict=True)),
    "ex-post, add": {"orders": FEW, "direction": "add"},
    "ex-post, replace": {"orders": [2.0], "cap": 1.0, "adjacency": "replace-one"},
    "expected, plug-in": {"composition": "expected", "orders": FEW, "estimator": "plug-in"},
    "expected, betting": {"composition": "expected", "orders": FEW, "cap": 1.0},
    "one-holder, plug-in": {"composition": "one-holder", "orders": FEW, "estimator": "plug-in"},
    "one-holder, betting": {"composition": "one-holder", "orders": FEW, "cap": 1.0},
    "filter": {"composition": "filter", "orders": [4.0], "budget": 0.3},
    "gdp-filter": {"composition": "gdp-filter", "budget": 1.2},
}
RECORDS, STEPS = 3, 6
settings = pytest.mark.parametrize("setting", SETTINGS)


def make(setting, records=RECORDS, **more):
    return bd.InstanceAccountant(records=records, **{**SETTINGS[setting], **more})


def is_filter(setting):
    return "filter" in setting


def advance(accountant, setting, first=0, last=STEPS):
    """Steps `first` … `last` of a fixed history, in two runs where there may be two."""
    rate = 1.0 if setting == "gdp-filter" else 0.1
    for t in range(first, last):
        for run in (0,) if is_filter(setting) else (0, 1):
            d = np.random.default_rng([t, run]).random(accountant.records)
            accountant.step(d, noise_std=1 + t % 2, sampling_rate=rate, run=run)
    return accountant


def arrays(state):
    if isinstance(state, dict):
        return sum(map(arrays, state.values()))
    return state.size if isinstance(state, np.ndarray) else 0


# --- reductions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2.0, 3.0, 9.0])
def test_at_the_clip_norm_one_order_gives_the_moments_accountant(order):
    ia = bd.InstanceAccountant(records=2, orders=[order], strength="strong")
    ia.step([1.0, 0.5], noise_std=1.1, sampling_rate=0.02, steps=300)
    ma = bd.WorstCaseAccountant(engine="moments", orders=[order])
    ma.step(noise_multiplier=1.1, sampling_rate=0.02, steps=300)
    assert ia.epsilon(DELTA)[0] == pytest.approx(ma.epsilon(DELTA), rel=1e-12)
    assert ia.epsilon(DELTA)[1] < ia.epsilon(DELTA)[0]
    assert ia.cost(order)[0] == pytest.approx(ma.cost(order), rel=1e-12)


@given(
    st.lists(st.floats(0, 3), min_size=1, max_size=4),
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.sampled_from([0.01, 0.3, 1.0]),
    st.floats(1e-9, 0.5),
)
def test_a_mixture_adds_at_most_the_price_of_its_weights_and_is_no_worse_than_the_union(norms, shares, rate, delta):
    weights = np.array(shares) / np.sum(shares)
    grid = np.array([1.5, 3.0, 8.0])
    ia = bd.InstanceAccountant(records=1, orders=grid, weights=weights, strength="strong")
    for norm in norms:
        ia.step([norm], noise_std=1.0, sampling_rate=rate)
    costs = np.array([ia.cost(order)[0] for order in grid])
    mixture, tails = ia.epsilon(delta)[0], ex_post.tail(costs, grid, delta)
    assert (mixture <= tails + np.log(1 / weights) / (grid - 1) + 1e-12).all()
    assert mixture >= tails.min() - 1e-9
    # The root of Σ w exp(λε - cost) = 1/δ, found by Newton, put into the equation.
    log_sum = np.logaddexp.reduce(np.log(weights) + (grid - 1) * mixture - costs)
    assert log_sum == pytest.approx(math.log(1 / delta), rel=1e-9)


@pytest.mark.parametrize("steps", [1, 5, 64])
def test_without_randomness_expected_composition_is_the_sum_at_the_inflated_orders(steps):
    distances = np.linspace(1, 0.1, steps)
    ia = bd.InstanceAccountant(records=1, composition="expected", estimator="plug-in", orders=FEW)
    for run in range(3):
        for d in distances:
            ia.step([d], noise_std=1.5, sampling_rate=0.1, run=run)
    divergences = []
    for order in FEW:
        inflated = expected.inflated_order(order, np.arange(steps)[::-1], 3.0 * steps)
        costs = [sgm.cost(d / 1.5, g, sampling_rate=0.1) / (g - 1) for d, g in zip(distances, inflated, strict=True)]
        divergences.append(sum(costs))
    want = convert.epsilon((np.array(FEW) - 1) * divergences, FEW, DELTA)
    assert ia.epsilon(DELTA)[0] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("orders", [[1.5, 4.0], [16.0, 40.0]])
@pytest.mark.parametrize("p", ["3n", 100.0])
def test_chords_of_a_long_run_are_above_the_exact_sum_and_close(orders, p):
    steps = 90
    distances = 0.3 + 0.7 * np.random.default_rng(0).random(steps)
    ia = bd.InstanceAccountant(records=1, composition="expected", estimator="plug-in", orders=orders, p=p)
    for t, d in enumerate(distances):
        ia.step([d], noise_std=2.0, sampling_rate=0.1 if t % 3 else 0.02)
    power, divergences = expected.exponent(steps, p), []
    for order in orders:
        inflated = expected.inflated_order(order, np.arange(steps)[::-1], power)
        terms = [
            sgm.cost(d / 2, g, sampling_rate=0.1 if t % 3 else 0.02) / (g - 1)
            for t, (d, g) in enumerate(zip(distances, inflated, strict=True))
        ]
        divergences.append(float(sum(terms)))
    want = convert.epsilon((np.array(orders) - 1) * divergences, orders, DELTA)
    got = ia.epsilon(DELTA)[0]
    assert want * (1 - 1e-12) <= got <= want * (1.01 if p == "3n" else 1.05)


def test_without_randomness_one_holder_is_the_sum_at_the_next_order_and_with_a_cap_the_sum():
    grid = np.array([2.0, 2.01, 3.0, 8.0])
    plug_in = bd.InstanceAccountant(records=1, composition="one-holder", estimator="plug-in", orders=grid)
    capped = bd.InstanceAccountant(records=1, composition="one-holder", orders=grid, cap=1.0)
    for run in range(2):
        for ia in (plug_in, capped):
            ia.step([1.0], noise_std=1.3, sampling_rate=0.1, steps=40, run=run)
    divergences = 40 * sgm.cost(1 / 1.3, grid, sampling_rate=0.1) / (grid - 1)
    at_next = (grid[:-1] - 1) * divergences[1:]
    assert plug_in.epsilon(DELTA)[0] == pytest.approx(convert.epsilon(at_next, grid[:-1], DELTA), rel=1e-12)
    plain = convert.epsilon((grid - 1) * divergences, grid, DELTA)
    assert capped.epsilon(DELTA)[0] == pytest.approx(plain, rel=1e-12)


@settings
def test_steps_at_once_are_steps_one_by_one(setting):
    one, many = make(setting), make(setting)
    if is_filter(setting):
        with pytest.raises(InputError, match="step by step"):
            many.step([0.2, 0.4, 0.9], noise_std=1.0, sampling_rate=1.0, steps=4)
        return
    for _ in range(4):
        one.step([0.2, 0.4, 0.9], noise_std=1.0, sampling_rate=0.1)
    many.step([0.2, 0.4, 0.9], noise_std=1.0, sampling_rate=0.1, steps=4)
    np.testing.assert_allclose(many.epsilon(DELTA), one.epsilon(DELTA), rtol=1e-12)
    assert many.steps == one.steps == 4


@pytest.mark.parametrize("composition", ["expected", "one-holder"])
def test_a_certified_average_is_above_the_plug_in_and_never_above_the_worst_case(composition):
    rng = np.random.default_rng(0)
    given = {"records": 2, "composition": composition, "orders": FEW, "cap": 1.0, "failure": 0.05}
    estimators = ("plug-in", "betting", "bernstein", "kl", "hoeffding")
    bounds = {name: bd.InstanceAccountant(**given, estimator=name) for name in estimators}
    for run in range(12):
        for _ in range(5):
            d = [0.3 * rng.random(), 1.0]
            for ia in bounds.values():
                ia.step(d, noise_std=1.0, sampling_rate=0.2, run=run)
    worst = bd.WorstCaseAccountant(engine="rdp", orders=FEW)
    worst.step(noise_multiplier=1.0, sampling_rate=0.2, steps=5)
    plug_in = bounds["plug-in"].epsilon(DELTA)
    for ia in bounds.values():
        epsilon = ia.epsilon(DELTA)
        assert (epsilon >= plug_in).all()
        assert (epsilon <= worst.epsilon(DELTA) * (1 + 1e-12)).all()
        assert epsilon[1] == pytest.approx(worst.epsilon(DELTA), rel=1e-12)
    assert bounds["betting"].guarantee(DELTA, record=0).failure == 0.05
    assert "estimate without confidence" in " ".join(bounds["plug-in"].guarantee(DELTA).assumptions)
    standings = {name: bound.guarantee(DELTA).standing for name, bound in bounds.items()}
    assert standings == {name: "estimate" if name == "plug-in" else "heuristic" for name in estimators}
    assert bounds["plug-in"].guarantee(DELTA).failure == 0


@pytest.mark.parametrize("composition", ["expected", "one-holder"])
def test_averages_of_one_data_set_are_proved_for_one_direction_only(composition):
    given = {"records": 1, "composition": composition, "orders": FEW, "cap": 1.0, "failure": 0.05}
    standings = {}
    for direction in ("both", "remove", "add"):
        ia = bd.InstanceAccountant(**given, direction=direction)
        for run in range(3):
            ia.step([0.3], noise_std=1.0, sampling_rate=0.2, run=run)
        standings[direction] = ia.guarantee(DELTA).standing
        caveats = " ".join(ia.guarantee(DELTA).caveats)
        assert ("taken to average alike" in caveats) == (direction == "both")
    assert standings == {"both": "heuristic", "remove": "proved", "add": "proved"}


def test_known_batches_of_any_rule_are_averaged_and_sampled_ones_bounded():
    """H1 on I-7's mean rule: never above the supremum, and a sample of batches certifies more than it needs."""
    weights, d = np.array([0.7, 0.2, 0.1]), np.array([[0.1, 0.5, 0.9]])
    exact = bd.InstanceAccountant(records=1, orders=[4.0])
    exact.step(d, noise_std=1.0, sampling_rate=0.3, batch_weights=weights)
    want = math.log(float(np.exp(sgm.cost(d[0], 4.0, sampling_rate=0.3)) @ weights))
    assert exact.cost(4.0)[0] == pytest.approx(want, rel=1e-12)
    assert exact.cost(4.0)[0] < sgm.cost(0.9, 4.0, sampling_rate=0.3)
    batches = np.random.default_rng(0).choice(d[0], p=weights, size=(1, 400))
    sampled = bd.InstanceAccountant(records=1, orders=[4.0], cap=1.0, total_steps=1, failure=1e-3)
    sampled.step(batches, noise_std=1.0, sampling_rate=0.3)
    assert want < sampled.cost(4.0)[0] < sgm.cost(1.0, 4.0, sampling_rate=0.3)
    assert sampled.guarantee(DELTA).failure == 1e-3
    assert exact.guarantee(DELTA).failure == 0


def bounds_with(failure):
    return lambda values, cap: upper_mean(values, method="kl", failure=failure, log_high=cap)


def test_the_failure_probability_is_shared_out_over_all_averages():
    """C12: K(K-1)/2 averages for one-Hölder, (n-1)K for expected composition, T·K for sampled batches."""
    failure, steps, runs = 0.01, 4, 30
    distances = np.random.default_rng(0).random((runs, steps)) * 0.5
    holder = bd.InstanceAccountant(
        records=1, composition="one-holder", orders=FEW, cap=1.0, failure=failure, estimator="kl"
    )
    chained = bd.InstanceAccountant(
        records=1, composition="expected", orders=FEW, cap=1.0, failure=failure, estimator="kl", p=20.0
    )
    for run, row in enumerate(distances):
        for d in row:
            holder.step([d], noise_std=1.0, sampling_rate=0.2, run=run)
            chained.step([d], noise_std=1.0, sampling_rate=0.2, run=run)
    grid = np.array(FEW)
    sums = sgm.cost(distances, grid, sampling_rate=0.2).sum(axis=1)
    worst = steps * sgm.cost(1.0, grid, sampling_rate=0.2)
    best = one_holder.best(sums, grid, log_mean=bounds_with(failure / 6), worst=worst)
    assert holder.epsilon(DELTA)[0] == pytest.approx(convert.epsilon(best * (grid - 1), grid, DELTA), rel=1e-12)

    bound = []
    for order, limit in zip(FEW, worst, strict=True):
        inflated = expected.inflated_order(order, np.arange(steps)[::-1], 20.0)
        costs = np.stack([sgm.cost(distances[:, t], g, sampling_rate=0.2) for t, g in enumerate(inflated)])
        cap = sgm.cost(1.0, inflated, sampling_rate=0.2)
        found = expected.expected(costs, order, 20.0, log_mean=bounds_with(failure / (3 * 4)), worst=cap)
        bound.append(min(float(found) * (order - 1), limit))
    assert chained.epsilon(DELTA)[0] == pytest.approx(convert.epsilon(bound, FEW, DELTA), rel=1e-12)

    sampled = bd.InstanceAccountant(records=1, orders=FEW, cap=1.0, total_steps=50, failure=failure, estimator="kl")
    batches = np.random.default_rng(1).random((1, 30))
    sampled.step(batches, noise_std=1.0, sampling_rate=0.2)
    want = upper_mean(
        sgm.cost(batches[0], grid, sampling_rate=0.2), method="kl", failure=failure / 200, log_high=worst / steps
    )
    np.testing.assert_allclose([sampled.cost(order)[0] for order in FEW], want, rtol=1e-12)


def test_many_records_at_the_cap_are_not_above_the_worst_case():
    """The table may be a millionth above what it stands for, a bound on an average may not."""
    ia = bd.InstanceAccountant(records=2100, composition="expected", orders=[4.0], cap=1.0)
    for run in range(2):
        ia.step(np.ones(2100), noise_std=1.0, sampling_rate=0.2, steps=2, run=run)
    plain = convert.epsilon([2 * sgm.cost(1.0, 4.0, sampling_rate=0.2)], [4.0], DELTA)
    np.testing.assert_allclose(ia.epsilon(DELTA), plain, rtol=1e-12)


def test_the_dp_value_of_several_runs_is_the_largest():
    ia = bd.InstanceAccountant(records=1, orders=[64.0], cap=1.0)
    ia.step([1.0], noise_std=1.0, run=0)
    ia.step([1.0], noise_std=3.0, run=1)
    values = [ia.epsilon(DELTA, run=run)[0] for run in (0, 1)]
    assert ia.epsilon(DELTA)[0] == max(values) > min(values)
    assert ia.guarantee(DELTA).strength == "weak"


def test_one_holder_takes_batches_that_are_all_there_are():
    ia = bd.InstanceAccountant(records=1, composition="one-holder", orders=FEW, cap=1.0)
    for run in range(3):
        ia.step([[0.1, 0.9]], noise_std=1.0, sampling_rate=0.3, run=run, batch_weights=[0.5, 0.5])
    assert 0 < ia.epsilon(DELTA)[0] < math.inf


def test_an_infinite_cost_of_one_run_is_an_infinite_average():
    ia = bd.InstanceAccountant(records=1, composition="one-holder", orders=[2.0, 3.0], estimator="plug-in")
    ia.step(cost=[[0.1, 0.2]], run=0)
    assert ia.epsilon(DELTA)[0] < math.inf
    ia.step(cost=[[0.1, math.inf]], run=1)
    assert ia.epsilon(DELTA)[0] == math.inf


def test_float32_norms_are_raised():
    low, high = bd.InstanceAccountant(records=1, orders=[2.0]), bd.InstanceAccountant(records=1, orders=[2.0])
    low.step(np.array([0.5], dtype=np.float32), noise_std=1.0)
    high.step([0.5 * (1 + 1e-5)], noise_std=1.0)
    assert low.cost(2.0)[0] == pytest.approx(high.cost(2.0)[0], rel=1e-12)


def test_several_runs_the_largest_counts_unless_one_is_named():
    ia = bd.InstanceAccountant(records=2, orders=FEW)
    ia.step([0.1, 0.9], noise_std=1.0, run=0)
    ia.step([0.8, 0.2], noise_std=1.0, run=7)
    np.testing.assert_array_equal(ia.epsilon(DELTA), np.maximum(ia.epsilon(DELTA, run=0), ia.epsilon(DELTA, run=7)))
    assert ia.epsilon(DELTA, run=0)[0] < ia.epsilon(DELTA, run=7)[0]
    for query in (lambda: ia.epsilon(DELTA, run=1), lambda: ia.cost(2.0), lambda: ia.guarantee(DELTA, run=3)):
        with pytest.raises(InputError, match=r"Expected run to be one of \[0, 7\]"):
            query()


def test_with_a_cap_everybodys_promise_is_one_more_test_function():
    """H14: nobody is told more than the DP ε at 3δ/4; who costs little pays for the mixture, at most M at δ/4."""
    ia = bd.InstanceAccountant(records=2, cap=1.0)
    ia.step([1.0, 0.02], noise_std=1.0, sampling_rate=0.05, steps=100)
    dp = bd.WorstCaseAccountant(engine="pld")
    dp.step(noise_multiplier=1.0, sampling_rate=0.05, steps=100)
    alone = bd.InstanceAccountant(records=2)
    alone.step([1.0, 0.02], noise_std=1.0, sampling_rate=0.05, steps=100)
    loud, quiet = ia.epsilon(DELTA)
    assert dp.epsilon(DELTA) < loud <= dp.epsilon(0.75 * DELTA) < 1.03 * dp.epsilon(DELTA)
    assert alone.epsilon(DELTA)[1] < quiet <= alone.epsilon(DELTA / 4)[1] < loud
    everybody, own = ia.guarantee(DELTA, record=0), ia.guarantee(DELTA, record=1)
    for promise in (everybody, own):
        assert (promise.strength, promise.ex_post, promise.dp_epsilon) == ("weak", True, dp.epsilon(DELTA))
        assert promise.delta_split == {"ex-post": DELTA / 4, "dp": 0.75 * DELTA}
        assert "one more test function (H14)" in " ".join(promise.assumptions)
    assert everybody.no_better
    assert not own.no_better
    assert "no better than for everybody: DP ε = " in str(everybody)
    assert ia.guarantee(DELTA).epsilon == loud


def test_the_strong_form_bounds_the_loss_and_has_no_minimum_with_dp():
    weak, strong = (bd.InstanceAccountant(records=2, cap=1.0, strength=form) for form in ("weak", "strong"))
    for ia in (weak, strong):
        ia.step([1.0, 0.02], noise_std=1.0, sampling_rate=0.05, steps=100)
    costs = np.stack([strong.cost(order) for order in strong.orders], axis=-1)
    np.testing.assert_allclose(
        strong.epsilon(DELTA), ex_post.epsilon(costs, strong.orders, DELTA, strength="strong"), rtol=1e-12
    )
    assert (strong.epsilon(DELTA) > weak.epsilon(DELTA)).all()
    promise = strong.guarantee(DELTA)
    assert (promise.strength, promise.delta_split) == ("strong", {"ex-post": DELTA})
    assert "all times" in " ".join(promise.assumptions)


def test_the_plans_own_dp_may_be_told_and_is_then_that_of_all_planned_steps():
    """Half of the run: the test function is that of the whole (H14)."""
    ia = bd.InstanceAccountant(records=1, cap=1.0)
    ia.step([1.0], noise_std=1.0, sampling_rate=0.05, steps=50)
    whole = bd.WorstCaseAccountant(engine="pld")
    whole.step(noise_multiplier=1.0, sampling_rate=0.05, steps=100)
    half, told = ia.epsilon_and_dp(DELTA)[0], ia.epsilon_and_dp(DELTA, dp=PlanDP.of(whole, DELTA))
    assert half[0] < told[0][0] <= told[1].at_share == whole.epsilon(0.75 * DELTA)


# --- filters --------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.sampled_from(["filter", "gdp-filter"]))
def test_a_filter_never_exceeds_its_budget_whatever_the_adversary(seed, setting):
    """Distances chosen from who is still in, aimed at the last bit of the budget."""
    rng, budget = np.random.default_rng(seed), SETTINGS[setting]["budget"]
    ia, rate = make(setting, records=4), 1.0 if setting == "gdp-filter" else 0.2
    spent, inside = np.zeros(4), np.ones(4, dtype=bool)
    for _ in range(12):
        if setting == "gdp-filter":
            d = np.sqrt(np.maximum(budget**2 - spent, 0)) * rng.choice([0.3, 0.7, 1.0, 1.0000001], 4)
            amount = d**2
        else:
            d = rng.choice([0.1, 0.5, 1.0, 2.0], 4) * np.where(inside, 1, 5)
            amount = sgm.cost(d, 4.0, sampling_rate=rate) / 3
        before = inside
        inside = ia.step(d, noise_std=1.0, sampling_rate=rate)
        assert not (inside & ~before).any()  # who is out stays out
        spent += np.where(inside, amount, 0)
    assert (spent <= (budget**2 if setting == "gdp-filter" else budget) * (1 + 1e-12)).all()
    scale = 1 if setting == "gdp-filter" else 3
    np.testing.assert_allclose(ia._tally.cost(0, None), spent * scale, rtol=1e-9, atol=1e-12)


def test_a_filter_is_ordinary_dp_at_its_budget_whatever_was_spent():
    renyi, gauss = make("filter"), make("gdp-filter")
    want = {
        renyi: convert.epsilon([3 * 0.3], [4.0], DELTA),
        gauss: hockey_stick.gaussian_epsilon(DELTA, 1.2),
    }
    for ia in (renyi, gauss):
        for _ in range(2):
            promise = ia.guarantee(DELTA)
            assert (promise.notion, promise.failure, promise.ex_post, promise.sensitive) == ("dp", 0, False, False)
            assert float(promise) == pytest.approx(float(want[ia]), rel=1e-12)
            assert "H4" in " ".join(promise.assumptions)
            ia.step([0.5, 0.1, 9.0], noise_std=1.0)


@pytest.mark.parametrize(
    ("setting", "step", "match"),
    [
        ("gdp-filter", {"sampling_rate": 0.5}, r"Expected sampling_rate to be 1 .*got sampling_rate=0\.5"),
        ("gdp-filter", {"sensitivities": None, "cost": np.ones((3, 1))}, "got cost, which does not go with"),
        ("filter", {"steps": 2}, "step by step in run 0, got run=0, steps=2"),
        ("filter", {"run": 1}, "step by step in run 0, got run=1"),
        ("filter", {"sensitivities": np.ones((3, 4))}, "Expected batch_weights to be given"),
    ],
)
def test_what_a_filter_refuses(equal, setting, step, match):
    ia = make(setting, total_steps=3, cap=2.0 if "cost" not in step else None)
    before = ia.state()
    with pytest.raises(InputError, match=match):
        ia.step(**{"sensitivities": [1.0] * 3, "noise_std": 1.0, **step})
    assert equal(ia.state(), before)


# --- labels (M14) -----------------------------------------------------------------------------------------------


@settings
def test_every_promise_says_what_it_rests_on(setting):
    promise = advance(make(setting), setting).guarantee(DELTA)
    assert promise.delta == DELTA
    assert promise.adjacency == SETTINGS[setting].get("adjacency", "add-remove")
    assert promise.sampling == ("none" if setting == "gdp-filter" else "poisson")
    assert promise.notion == ("dp" if is_filter(setting) else "per-instance")
    assert promise.ex_post is setting.startswith("ex-post")
    assert promise.strength == ("strong" if "strong" in setting else "weak")
    assert (promise.dp_epsilon is not None) == (promise.ex_post and "cap" in SETTINGS[setting])
    assert promise.orientation == ("absent" if SETTINGS[setting].get("direction") == "add" else "both")
    assert sum(promise.delta_split.values()) == pytest.approx(DELTA)
    assert promise.sensitive is not is_filter(setting)
    text = " ".join(promise.assumptions)
    assert any(item in text for item in ("H3", "H2", "H4", "E7"))
    assert bd.Guarantee.from_dict(promise.to_dict()) == promise
    if not is_filter(setting):
        with pytest.raises(TypeError, match="per-instance"):
            float(promise)


def test_runs_on_one_data_set_do_not_pretend_to_average_both_directions():
    both = make("expected, plug-in").guarantee(DELTA)
    one = make("expected, plug-in", direction="remove").guarantee(DELTA)
    assert "average one direction" in " ".join(both.assumptions)
    assert "average one direction" not in " ".join(one.assumptions)
    assert one.orientation == "present"


def test_costs_handed_in_keep_the_sampling_label():
    ia = bd.InstanceAccountant(records=1, orders=[2.0])
    ia.step(cost=[[0.1]], sampling_rate=0.2)
    assert ia.guarantee(DELTA).sampling == "poisson"


# --- queries and refusals change nothing --------------------------------------------------------------------------


@settings
def test_queries_change_nothing(equal, setting):
    for ia in (make(setting), advance(make(setting), setting)):
        before = copy.deepcopy(ia.state())
        answers = [ia.epsilon(DELTA) for _ in range(2)]
        np.testing.assert_array_equal(*answers)
        answers[0][:] = -1
        ia.guarantee(1e-3), ia.guarantee(0.5, record=1), ia.epsilon_and_dp(0.1), ia.steps
        if "expected" not in setting:
            ia.cost(ia.orders[0], run=None if is_filter(setting) or not ia.steps else 0)[:] = 7
        for nonsense in (0.0, 1.0, -1, 2, math.nan, "x", None):
            with pytest.raises(InputError, match="Expected delta"):
                ia.epsilon(nonsense)
        for bad in (-1, RECORDS, 0.5):
            with pytest.raises(InputError, match="Expected record"):
                ia.guarantee(DELTA, record=bad)
        assert equal(ia.state(), before)


def test_a_state_is_a_copy():
    ia = make("ex-post")
    ia.step([0.1] * 3, noise_std=1.0)
    kept, before = ia.state(), copy.deepcopy(ia.state())
    ia.step([0.1] * 3, noise_std=1.0)
    np.testing.assert_array_equal(kept["tally"]["sums"]["0"], before["tally"]["sums"]["0"])
    kept["tally"]["sums"]["0"][:] = 0
    assert (ia.cost(2.0) > 0).all()


BAD_STEPS = [
    ({"sensitivities": [0.1, -0.1, 0.2]}, r"Expected sensitivities .*>= 0, got sensitivities\[1\]=-0\.1"),
    ({"sensitivities": [0.1, math.nan, 0.2]}, r"got sensitivities\[1\]=nan"),
    ({"sensitivities": [0.1, math.inf, 0.2]}, r"got sensitivities\[1\]=inf"),
    ({"sensitivities": [0.1, 0.2]}, "one entry for each of the 3 records, got 2"),
    ({"sensitivities": [[[0.1]]] * 3}, r"dimension\(s\), got shape"),
    ({"sensitivities": 0.1}, r"dimension\(s\), got shape"),
    ({"sensitivities": ["a", "b", "c"]}, "Expected sensitivities"),
    ({"sensitivities": None}, "Expected either sensitivities or cost, got none"),
    ({"cost": np.ones((3, 4))}, "Expected either sensitivities or cost, got both"),
    ({"sampling_rate": -0.1}, r"Expected sampling_rate .*got sampling_rate=-0\.1"),
    ({"sampling_rate": 1.1}, r"Expected sampling_rate .*got sampling_rate=1\.1"),
    ({"sampling_rate": math.nan}, "Expected sampling_rate"),
    ({"noise_std": 0.0}, r"Expected noise_std .*> 0, got noise_std=0"),
    ({"noise_std": -1.0}, "Expected noise_std"),
    ({"noise_std": None}, "Expected noise_std"),
    ({"noise_std": math.inf}, "Expected noise_std"),
    ({"run": -1}, "Expected run"),
    ({"run": 0.5}, "Expected run"),
    ({"steps": 0}, "Expected steps"),
    ({"steps": 1.5}, "Expected steps"),
    ({"steps": 100}, "Expected at most total_steps=7 steps in a run, got 100 more after"),
    ({"batch_weights": [1.0]}, "Expected batch_weights to be left out"),
]


@settings
@pytest.mark.parametrize(("step", "match"), BAD_STEPS)
def test_a_refused_step_leaves_no_trace(equal, setting, step, match):
    good = {"sensitivities": [0.1, 0.2, 0.3], "noise_std": 1.0, "sampling_rate": 1.0}
    for ia in (make(setting, total_steps=7), advance(make(setting, total_steps=7), setting, last=2)):
        before = ia.state()
        with pytest.raises(InputError, match=match):
            ia.step(**{**good, **step})
        assert equal(ia.state(), before)


@pytest.mark.parametrize(
    ("setting", "step", "match"),
    [
        ("ex-post, cap", {"sensitivities": [0.1, 1.2, 0.3]}, r"to be at most cap=1, got sensitivities=1\.2"),
        ("ex-post, cap", {"sensitivities": None, "cost": np.ones((3, 4))}, "does not go with a cap"),
        ("ex-post, cap", {"noise_std": 1e-320, "sensitivities": [0.0] * 3}, None),
        ("ex-post", {"sensitivities": None, "cost": np.ones((3, 5))}, r"\(3 records, 4 orders\), got \(3, 5\)"),
        ("ex-post", {"sensitivities": None, "cost": np.ones(3)}, "Expected cost with 2 dimension"),
        ("ex-post", {"sensitivities": None, "cost": -np.ones((3, 4))}, r"got cost\[0, 0\]=-1"),
        ("ex-post", {"sensitivities": None, "cost": np.full((3, 4), np.nan)}, r"got cost\[0, 0\]=nan"),
        ("ex-post", {"sensitivities": np.ones((3, 2))}, "Expected total_steps to be given"),
        ("ex-post", {"sensitivities": np.ones((3, 2)), "batch_weights": [0.5, 0.6]}, "that sum to 1"),
        ("ex-post", {"sensitivities": np.ones((3, 2)), "batch_weights": [1.0]}, "to be 2 probabilities"),
        ("ex-post", {"sensitivities": np.ones((3, 2)), "batch_weights": [1.5, -0.5]}, "batch_weights"),
        ("ex-post, replace", {"sensitivities": np.ones((3, 2))}, "adjacency='replace-one', got shape"),
        ("one-holder, betting", {"sensitivities": np.ones((3, 2))}, "Expected batch_weights to be given"),
        ("expected, plug-in", {"sensitivities": np.ones((3, 2))}, "composition='expected'"),
        ("expected, plug-in", {"sensitivities": [2e3] * 3}, "at least a thousandth of the largest distance"),
        ("expected, plug-in", {"sensitivities": None, "cost": np.ones((3, 4))}, "does not go with composition"),
    ],
)
def test_more_refused_steps(equal, setting, step, match):
    ia = make(setting)
    before = ia.state()
    full = {"sensitivities": [0.1] * 3, "noise_std": 1.0, "sampling_rate": 0.5, **step}
    if match is None:  # allowed: noise next to nothing, and nothing to hide
        ia.step(**full)
        assert ia.cost(2.0).max() == 0
        return
    with pytest.raises(InputError, match=match):
        ia.step(**full)
    assert equal(ia.state(), before)


def test_noise_and_cap_whose_ratio_is_no_number_are_refused_before_anything_changes(equal):
    ia = bd.InstanceAccountant(records=1, cap=1e200)
    before = ia.state()
    with pytest.raises(InputError, match="Expected noise_std/cap"):
        ia.step([1.0], noise_std=1e-200)
    assert equal(ia.state(), before)


def test_runs_of_different_plans_or_lengths_are_refused(equal):
    for composition in ("expected", "one-holder"):
        ia = bd.InstanceAccountant(records=1, composition=composition, estimator="plug-in", orders=FEW)
        ia.step([0.5], noise_std=1.0, steps=3)
        ia.step([0.5], noise_std=1.0, steps=2, run=1)
        with pytest.raises(InputError, match=r"equally many steps, got \[2, 3\]"):
            ia.epsilon(DELTA)
        if composition == "expected":
            before = ia.state()
            with pytest.raises(InputError, match=r"same plan: step 3 has noise_std=1 .* got 2 and 1"):
                ia.step([0.5], noise_std=2.0, run=1)
            assert equal(ia.state(), before)
        else:
            ia.step([0.5], noise_std=2.0, run=1)
            with pytest.raises(InputError, match="the same plan"):
                ia.epsilon(DELTA)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"records": 0}, "Expected records"),
        ({"records": 2.5}, "Expected records"),
        ({"composition": "magic"}, "Expected composition to be one of"),
        ({"orders": [1.0]}, r"Expected orders .*> 1, got orders\[0\]=1"),
        ({"orders": [math.nan]}, "Expected orders"),
        ({"orders": []}, "Expected orders"),
        ({"total_steps": 0}, "Expected total_steps"),
        ({"cap": 0.0}, "Expected cap"),
        ({"cap": math.inf}, "Expected cap"),
        ({"failure": 0.0}, "Expected failure"),
        ({"estimator": "guess"}, "Expected estimator"),
        ({"adjacency": "edit"}, "Expected adjacency"),
        ({"adjacency": "replace-one"}, "Expected cap"),
        ({"adjacency": "replace-one", "cap": 1.0, "composition": "expected"}, "Expected adjacency"),
        ({"direction": "up"}, "Expected direction"),
        ({"p": 1.0}, "Expected p"),
        ({"p": "2n"}, "Expected p"),
        ({"weights": [0.5, 0.5]}, "Expected orders"),
        ({"orders": [3, 2], "weights": [0.5, 0.5]}, "ascending"),
        ({"orders": [2, 3], "weights": [0.5, 0.6]}, "sum to 1"),
        ({"orders": [2, 3], "weights": [1.0, 0.0]}, "Expected weights"),
        ({"orders": [2], "weights": [1.0], "composition": "one-holder", "cap": 1.0}, "Expected weights"),
        ({"budget": 1.0}, "Expected budget"),
        ({"composition": "filter", "budget": 1.0}, "to be one order"),
        ({"composition": "filter", "budget": 1.0, "orders": [2, 3]}, "to be one order"),
        ({"composition": "filter", "orders": [2]}, "Expected budget"),
        ({"composition": "filter", "orders": [2], "budget": -1.0}, "Expected budget"),
        ({"composition": "filter", "orders": [2], "budget": 1.0, "direction": "add"}, "Expected direction"),
        ({"composition": "expected"}, "Expected cap"),
        ({"composition": "one-holder", "estimator": "kl"}, "Expected cap"),
    ],
)
def test_bad_arguments(arguments, match):
    with pytest.raises(InputError, match=match):
        bd.InstanceAccountant(**{"records": 2, **arguments})


def test_orders_that_are_not_kept():
    with pytest.raises(InputError, match=r"Expected order to be one of .*got order=5"):
        make("ex-post").cost(5)
    with pytest.raises(InputError, match="Expected order"):
        make("ex-post").cost(1.0)
    with pytest.raises(InputError, match="no tally"):
        make("expected, plug-in").cost(2.0)


# --- state ------------------------------------------------------------------------------------------------------


@settings
@pytest.mark.parametrize("records", [RECORDS, 600])
def test_a_saved_run_goes_on_as_if_it_had_not_been_interrupted(equal, tmp_path, setting, records):
    """Bit for bit, with small arrays in the JSON and large ones in the NPZ file."""
    if records > RECORDS and ("replace" in setting or "expected, betting" in setting):
        records = 300
    whole = advance(make(setting, records=records), setting)
    half = advance(make(setting, records=records), setting, last=3)
    half.save(tmp_path / "half.json")
    resumed = bd.InstanceAccountant.load(tmp_path / "half.json")
    assert equal(resumed.state(), half.state())
    advance(resumed, setting, first=3)
    assert equal(resumed.state(), whole.state())
    np.testing.assert_array_equal(resumed.epsilon(DELTA), whole.epsilon(DELTA))
    assert resumed.guarantee(DELTA) == whole.guarantee(DELTA)
    again = bd.InstanceAccountant.from_state(whole.state())
    assert equal(again.state(), whole.state())


@settings
def test_a_fresh_accountant_survives(equal, tmp_path, setting):
    make(setting).save(tmp_path / "a.json")
    assert equal(bd.InstanceAccountant.load(tmp_path / "a.json").state(), make(setting).state())


@settings
def test_memory_does_not_grow_with_steps(setting):
    early, late = (arrays(advance(make(setting), setting, last=t).state()) for t in (1, STEPS))
    if "expected" in setting:
        assert late == early + (STEPS - 1) * (2 * RECORDS + 2)
    else:
        assert late == early


def test_infinite_costs_survive_and_say_so(tmp_path):
    ia = bd.InstanceAccountant(records=2, orders=FEW, strength="strong")
    ia.step(cost=[[1.0, math.inf, math.inf, math.inf], [math.inf] * 4])
    ia.save(tmp_path / "a.json")
    epsilon = bd.InstanceAccountant.load(tmp_path / "a.json").epsilon(DELTA)
    assert epsilon[0] == pytest.approx((1 + math.log(4 / DELTA)) / 0.5)
    assert epsilon[1] == math.inf
    assert "no guarantee" in str(ia.guarantee(DELTA))


def broken(state, *path, value):
    state = copy.deepcopy(state)
    at = state
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return state


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("ex-post", ("kind",), "bayesdp/bayesian"),
        ("ex-post", ("version",), 2),
        ("ex-post", ("tally",), KeyError),
        ("ex-post", ("extra",), 1),
        ("ex-post", ("config", "records"), 4),
        ("ex-post", ("config", "orders"), [0.5]),
        ("ex-post", ("config", "unknown"), 1),
        ("ex-post", ("config",), None),
        ("ex-post", ("steps", "0"), -1),
        ("ex-post", ("steps",), 3),
        ("ex-post", ("tally", "sums", "0"), np.full((3, 4), np.nan)),
        ("ex-post", ("tally", "sums", "0"), -np.ones((3, 4))),
        ("ex-post", ("tally", "sums"), KeyError),
        ("ex-post", ("tally", "dp", "0"), {"kind": "x"}),
        ("ex-post, cap", ("tally", "dp"), {}),
        ("ex-post, cap", ("tally", "dp", "0", "version"), 9),
        ("expected, plug-in", ("tally", "runs", "0"), np.ones((6, 2))),
        ("expected, plug-in", ("tally", "runs", "0"), -np.ones((6, 3))),
        ("expected, plug-in", ("tally", "runs", "0"), np.full((6, 3), np.nan)),
        ("expected, plug-in", ("tally", "settings"), np.ones((4, 2))),
        ("expected, plug-in", ("tally", "settings"), np.zeros((6, 2))),
        ("one-holder, betting", ("tally", "worst", "0"), np.ones(9)),
        ("one-holder, betting", ("tally", "plans"), {}),
        ("one-holder, betting", ("tally", "plans", "0"), [[1.0, 0.1, 0]]),
        ("filter", ("tally", "kind"), "gaussian-filter"),
        ("filter", ("tally", "budget"), 10.0),
        ("filter", ("tally", "order"), 2.0),
        ("filter", ("tally", "spent"), np.full(3, 1.0)),
        ("filter", ("tally", "spent"), np.zeros(2)),
        ("gdp-filter", ("tally", "mu"), 3.0),
        ("gdp-filter", ("tally", "active"), KeyError),
    ],
)
def test_a_state_that_does_not_fit_is_refused(setting, path, value):
    state = advance(make(setting), setting).state()
    bd.InstanceAccountant.from_state(state)
    with pytest.raises(InputError):
        bd.InstanceAccountant.from_state(broken(state, *path, value=value))


def test_another_accountants_file_is_refused(tmp_path):
    bd.BayesianAccountant().save(tmp_path / "b.json")
    wc = bd.WorstCaseAccountant()
    wc.save(tmp_path / "w.json")
    for name, kind in (("b", "bayesdp/bayesian"), ("w", "bayesdp/worst-case")):
        with pytest.raises(InputError, match=rf"kind of the state to be 'bayesdp/instance', got '{kind}'"):
            bd.InstanceAccountant.load(tmp_path / f"{name}.json")


@pytest.mark.parametrize("composition", ["ex-post", "one-holder", "expected"])
def test_replaying_stored_norms_is_charging_them_step_by_step(composition):
    norms = np.minimum(np.random.default_rng(2).weibull(0.6, (30, 50)), 1).astype(np.float32)
    options = {"composition": composition, "cap": 1.0, "orders": [2.0, 4.0, 9.0]}
    stepped, replayed = (bd.InstanceAccountant(records=50, **options) for _ in range(2))
    for run in range(2):
        for row in norms:
            stepped.step(row, noise_std=1.5, sampling_rate=0.05, run=run)
        replayed.replay(norms, noise_std=1.5, sampling_rate=0.05, run=run)
    assert replayed.steps == stepped.steps == 30
    assert np.allclose(replayed.epsilon(1e-5), stepped.epsilon(1e-5), rtol=1e-4)
    if composition != "expected":
        for order in stepped.orders:
            assert (replayed.cost(order, 0) >= stepped.cost(order, 0) * (1 - 2e-6)).all()


def test_replayed_shifts_beyond_the_lattice_are_charged_as_unsampled():
    norms = np.array([[0.5, 5e3], [0.1, 1.0]])
    accountant = bd.InstanceAccountant(records=2, orders=[3.0])
    accountant.replay(norms, noise_std=1.0, sampling_rate=0.1)
    assert accountant.cost(3.0)[1] == pytest.approx(3 * 5e3**2, rel=1e-6)


def test_bad_replays_charge_nothing():
    accountant = bd.InstanceAccountant(records=3, total_steps=2, cap=1.0)
    for bad in (np.ones((2, 4)), np.ones(3), np.ones((0, 3)), np.ones((3, 3)), np.full((2, 3), 1.5), -np.ones((2, 3))):
        with pytest.raises(InputError):
            accountant.replay(bad, noise_std=1.0, sampling_rate=0.1)
    assert accountant.steps == 0


def test_exposure_orders_records_that_tie_at_the_dp_value():
    accountant = bd.InstanceAccountant(records=4, cap=1.0)
    accountant.step(np.array([0.9, 1.0, 0.95, 0.01]), noise_std=2.0, sampling_rate=0.5, steps=40)
    epsilon, dp = accountant.epsilon_and_dp(1e-5)
    assert (epsilon[:3] >= dp.epsilon).all()
    assert (epsilon <= dp.at_share).all()
    exposure = accountant.exposure(1e-5)
    assert exposure.argsort()[::-1].tolist() == [1, 2, 0, 3]
    assert exposure[1] > dp.at_share
    assert (exposure == accountant.exposure(1e-5, run=0)).all()
    assert (bd.InstanceAccountant(records=2, cap=1.0).exposure(1e-5) == 0).all()
    # Filters have no number of a record's own: what everybody has is what there is.
    kept = bd.InstanceAccountant(records=2, composition="gdp-filter", budget=1.0, cap=1.0)
    assert (kept.exposure(1e-5) == kept.epsilon(1e-5)).all()


@pytest.mark.parametrize(("rate", "noise"), [(128 / 60_000, 1.0), (0.07, 4.0), (0.01, 0.7), (1.0, 20.0)])
@pytest.mark.parametrize("strength", ["weak", "strong"])
def test_a_replay_is_within_a_ten_thousandth_of_step_by_step(rate, noise, strength):
    """As the docstring promises, also where large orders decide: people of small norms."""
    rng, steps, records = np.random.default_rng(5), 60, 60
    norms = np.minimum(rng.weibull(0.6, (steps, records)) * np.geomspace(0.003, 2, records), 1)
    orders = np.unique(np.concatenate([1 + np.geomspace(0.5, 2000, 14)]))
    given = {"records": records, "orders": orders, "weights": np.full(14, 1 / 14), "strength": strength}
    replayed, stepped = (bd.InstanceAccountant(**given) for _ in range(2))
    replayed.replay(norms, noise_std=noise, sampling_rate=rate)
    for row in norms:
        stepped.step(row, noise_std=noise, sampling_rate=rate)
    above = replayed.epsilon(DELTA) / stepped.epsilon(DELTA) - 1
    assert (above <= 1e-4).all()
    assert (above >= -2e-6).all()  # step by step many records are looked up, a millionth above the truth
