"""All records measured, now and then; filters on top of it. Oracles: the same run unlimited, and costs by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp import InputError
from bayesdp.accountant.run_tallies import Counts, Tallies
from bayesdp.divergence import sgm
from bayesdp.learn import SGD, Filter
from bayesdp.learn.loop.iterates import Iterates
from bayesdp.learn.loop.training import Training
from bayesdp.mechanism import Mean

DELTA = 1e-5


@pytest.fixture
def plan(plan):
    """One length and noise for all runs on digits, so that tables of costs are shared."""
    return dataclasses.replace(plan, steps=24, report_every=8, noise_multiplier=1.5)


def norms_by_hand(problem, params):
    """|clip(g)| of every record, by plain per-record gradients."""

    def one(x, y):
        return jax.grad(lambda p: problem.loss(p, (x, y)))(params)

    gradients = jax.vmap(one)(*problem.data)
    squares = sum(jnp.sum(leaf**2, axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(gradients))
    return np.minimum(np.sqrt(np.asarray(squares, np.float64)), 1)


def moved(first, second):
    return max(float(jnp.abs(a - b).max()) for a, b in zip(*map(jax.tree.leaves, (first, second)), strict=True))


def test_measuring_everyone_at_every_step_changes_nothing_and_agrees_with_watching_them(digits, plan):
    options = {"holdout": digits.holdout, "members": 50, "seed": 3}
    plain = plan.fit(digits.loss, digits.params, digits.data, watch=digits.data, **options)
    everyone = plan.fit(digits.loss, digits.params, digits.data, watch="everyone", **options)
    assert moved(plain.params, everyone.params) < 1e-5
    assert np.allclose(everyone.losses(), plain.losses(), rtol=1e-3)
    assert everyone.instance.records == len(digits.data[0])
    assert [snapshot.step for snapshot in everyone.snapshots] == [8, 16, 24]
    assert np.allclose(everyone.snapshots[-1].norms, plain.snapshots[-1].norms, rtol=1e-4)


def test_between_two_measurements_a_record_is_charged_and_clipped_at_the_last(digits, plan):
    seen = {}
    measured = dataclasses.replace(plan, measure_every=8, optimizer=optax.sgd(4.0))
    run = measured.fit(
        digits.loss, digits.params, digits.data, members=0, watch="everyone", seed=0,
        progress=lambda run: seen.update({run.steps: run.params}),
    )  # fmt: skip
    order = float(run.instance.orders[3])
    total = 0.0
    for params in [digits.params, seen[8], seen[16]]:
        shifts = norms_by_hand(digits, params) / 1.5
        total = total + 8 * sgm.cost(shifts, [order], sampling_rate=0.1)[:, 0]
    charged = run.instance.cost(order)
    assert np.allclose(charged, total, rtol=1e-4)
    assert (charged >= total).all()  # float32 is rounded up
    free = dataclasses.replace(measured, measure_every=None).fit(
        digits.loss, digits.params, digits.data, members=0, seed=0
    )  # fmt: skip
    assert moved(free.params, run.params) > 1e-4  # some gradients grew and were held back


def pull(count=8):
    """A loss whose gradients never change, for a step without sampling: every part can be told by hand."""
    x = np.random.default_rng(1).normal(size=(count, 3)).astype(np.float32)
    x *= (np.linspace(0.1, 1.2, count) / np.linalg.norm(x, axis=1))[:, None].astype(np.float32)
    return x, lambda params, example: jnp.dot(params, example)


@pytest.mark.parametrize("measure_every", [1, 4])
def test_a_gaussian_filter_leaves_each_record_out_when_its_own_budget_is_spent(measure_every):
    x, loss = pull()
    common = {"sampling_rate": 1.0, "steps": 30, "noise_multiplier": 5.0, "optimizer": optax.sgd(1.0), "delta": DELTA}
    plain = SGD(**common).fit(loss, jnp.zeros(3), x, members=0, seed=5)
    filtered = SGD(**common, measure_every=measure_every, filter=Filter(3.0, "gdp")).fit(
        loss, jnp.zeros(3), x, members=0, seed=5
    )  # fmt: skip
    budgets = filtered.tallies.budgets
    norms = np.minimum(np.linalg.norm(x, axis=1).astype(np.float64), 1)
    parts = np.minimum(30, np.floor(budgets.budget**2 * 25 / norms**2)).astype(int)
    assert parts.min() < 30 <= parts.max()
    clipped = x * (norms / np.linalg.norm(x, axis=1))[:, None]
    missing = ((30 - parts)[:, None] * clipped).sum(0) / len(x)
    assert np.allclose(filtered.params - plain.params, missing, atol=1e-4)
    [dp] = filtered.guarantees
    assert dp.notion == "dp"
    assert 3 - 1e-6 < dp.epsilon <= 3 < plain.guarantees[0].epsilon


def test_a_renyi_filter_is_ordinary_dp_and_nobody_spends_more_than_the_budget(digits, plan):
    long = dataclasses.replace(plan, filter=Filter(2.0), measure_every=4, optimizer=optax.sgd(6.0))
    run = long.fit(
        digits.loss, digits.params, digits.data, holdout=digits.holdout, members=100, watch="everyone", seed=0
    )
    budgets = run.tallies.budgets
    order = float(budgets.orders[0])
    spent = budgets.cost(order) / (order - 1)
    assert spent.max() <= budgets.budget
    assert budgets.records == len(digits.data[0]) + len(digits.holdout[0])
    inside = budgets.active[: len(digits.data[0])]
    assert 0 < inside.mean() < 1
    dp, alike, _ = run.guarantees
    assert 2 - 1e-6 < dp.epsilon <= 2
    assert any("budget" in line for line in dp.assumptions)
    half = float(budgets.epsilon(DELTA / 2)[0])
    assert alike.epsilon <= half
    assert run.losses().max() <= half
    assert run.snapshots[-1].dp <= 2
    # A record that is out costs nothing more: its own costs end with its budget.
    assert np.all(run.instance.cost(run.instance.orders[0])[~inside] > 0)


def test_a_filter_that_is_never_reached_gives_the_plans_own_value(plan):
    def promised(budgets):
        tallies = Tallies(
            counts=Counts(0, 0, 0), noise=plan.noise, rates=plan.rates, bounded=True, delta=DELTA,
            failure=1e-6, engine="rdp", adjacency="add-remove", budgets=budgets,
        )  # fmt: skip
        tallies.charge_worst_case(0, plan.steps)
        return tallies.guarantees(0.9)[0].epsilon, tallies.plan_dp()

    assert promised(Filter(8.0).accountant(3, plan)) == promised(None)
    assert promised(Filter(1.5).accountant(3, plan)) < promised(None)


def test_a_filtered_run_goes_on_bit_for_bit_after_an_interruption(digits, plan, tmp_path):
    filtered = dataclasses.replace(plan, measure_every=4, filter=Filter(2.0))
    args = (digits.loss, digits.params, digits.data)
    whole = filtered.fit(*args, members=20, watch="everyone", seed=1)

    def stop(run):
        if run.steps == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filtered.fit(*args, members=20, watch="everyone", seed=1, folder=tmp_path, progress=stop)
    again = filtered.resume(tmp_path, *args, watch="everyone")
    assert moved(whole.params, again.params) == 0
    assert np.array_equal(whole.losses(), again.losses())
    spent = [run.tallies.budgets.cost(float(run.tallies.budgets.orders[0])) for run in (whole, again)]
    assert np.array_equal(*spent)


def test_a_clip_schedule_is_followed_between_measurements():
    x, loss = pull()
    plan = SGD(
        sampling_rate=1.0, steps=4, noise_multiplier=3.0, optimizer=optax.sgd(1.0), measure_every=4,
        clip_schedule=((0.5, 1.0), (0.5, 0.25)),
    )  # fmt: skip
    run = plan.fit(loss, jnp.zeros(3), x, members=0, watch="everyone", seed=0)
    norms = np.linalg.norm(x, axis=1).astype(np.float64)
    order = float(run.instance.orders[0])
    shares = np.stack([np.minimum(norms, 1), np.minimum(norms, 0.25) / 0.25])
    expected = 2 * (shares**2).sum(0) * order * (order - 1) / 2 / 9
    assert np.allclose(run.instance.cost(order), expected, rtol=1e-4)


def test_without_clipping_everyone_is_charged_for_the_whole_gradient():
    x, loss = pull()
    plan = SGD(sampling_rate=1.0, steps=2, clip_norm=None, noise_std=4.0, optimizer=optax.sgd(1.0), measure_every=2)
    run = plan.fit(loss, jnp.zeros(3), 5 * x, members=0, watch="everyone", seed=0)
    order = float(run.instance.orders[0])
    norms = 5 * np.linalg.norm(x, axis=1).astype(np.float64)
    assert np.allclose(run.instance.cost(order), norms**2 * order * (order - 1) / 16, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measure_every": 0}, "measure_every"),
        ({"measure_every": 2, "update": Mean(4)}, "update"),
        ({"filter": Filter(1.0), "adjacency": "replace-one"}, "adjacency"),
        ({"filter": Filter(1.0, "gdp")}, "sampling_rate"),
        ({"filter": Filter(1.0), "epsilon_budget": 1.0}, "epsilon_budget"),
        ({"filter": Filter(1.0), "clip_norm": None, "noise_multiplier": None, "noise_std": 1.0}, "clip norm"),
    ],
)
def test_plans_that_cannot_be_are_refused_by_name(plan, change, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(plan, **change)


def test_a_filter_is_refused_where_no_budget_is_left(plan):
    for bad in ({"epsilon": 0.0}, {"epsilon": 1.0, "kind": "pld"}, {"epsilon": 1.0, "order": 1.0}):
        with pytest.raises(InputError, match="filter"):
            Filter(**bad)
    with pytest.raises(InputError, match="order"):
        Filter(1.0, "gdp", 4.0)
    with pytest.raises(InputError, match=r"The least that leaves a budget is"):
        Filter(1e-4).accountant(3, plan)
    with pytest.raises(InputError, match=r"It pays for 0\.\d+ of one"):
        Filter(0.3).accountant(3, dataclasses.replace(plan, sampling_rate=0.9))
    assert Filter(2.0).paid(plan) > 1
    with pytest.raises(InputError, match="noise_multiplier"):
        Filter(1.0).accountant(3, dataclasses.replace(plan, noise_multiplier=0.0))


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize("order", [None, 30.0])
def test_the_budget_converts_to_no_more_than_the_epsilon_asked_for(plan, epsilon, order):
    plan = dataclasses.replace(plan, noise_multiplier=10.0)
    budgets = Filter(epsilon, order=order).accountant(2, plan)
    assert epsilon * (1 - 1e-9) <= budgets.epsilon(plan.delta)[0] <= epsilon
    gaussian = Filter(epsilon, "gdp").accountant(2, plan)
    assert epsilon * (1 - 1e-9) <= gaussian.epsilon(plan.delta)[0] <= epsilon


def test_other_words_than_everyone_are_refused(digits, plan):
    with pytest.raises(InputError, match="watch"):
        plan.fit(digits.loss, digits.params, digits.data, watch="all of them")
    with pytest.raises(InputError, match="update"):
        dataclasses.replace(plan, update=Mean(10)).fit(digits.loss, digits.params, digits.data, watch="everyone")


def test_runs_side_by_side_are_refused_where_records_have_limits(digits, plan):
    limited = dataclasses.replace(plan, measure_every=5)
    with pytest.raises(InputError, match="measure_every"):
        Training.begin(limited.course(digits.loss, digits.params), digits.data, seed=0, repeats=2)


def test_iterates_are_kept_through_an_interruption_and_missing_ones_are_told(digits, plan, tmp_path):
    args = (digits.loss, digits.params, digits.data)

    def stop(run):
        if run.steps == 16:
            raise KeyboardInterrupt

    seen = {}
    with pytest.raises(KeyboardInterrupt):
        plan.fit(*args, members=0, seed=1, folder=tmp_path, progress=stop, keep_iterates=4)
    kept = Iterates.of(tmp_path)
    with pytest.raises(InputError, match="before step 16, got none"):
        list(kept.read(digits.params))
    plan.resume(tmp_path, *args, progress=lambda run: seen.update({run.steps: run.params}))  # goes on keeping them
    found = dict(kept.read(digits.params))
    assert list(found) == [0, 4, 8, 12, 16, 20]
    assert moved(found[0], digits.params) == 0
    whole = plan.fit(*args, members=0, seed=1, progress=lambda run: seen.update({run.steps: run.params}))
    assert moved(found[16], seen[16]) < 1e-6
    assert whole.steps == 24
    with pytest.raises(InputError, match="folder"):
        plan.fit(*args, members=0, seed=1, keep_iterates=4)
    other = {"weights": jnp.zeros(3)}
    with pytest.raises(InputError, match="iterates of 3 parameters"):
        list(kept.read(other))
    assert Iterates.of(tmp_path / "elsewhere") is None
