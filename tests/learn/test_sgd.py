"""Private SGD end to end on real data: what it computes, what it promises, and that an interruption changes neither."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.learn import SGD
from bayesdp.learn.loop.schedule import factors


def leaves_equal(one, other):
    return all(bool((a == b).all()) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_it_learns_and_keeps_three_tallies(digits, plan):
    run = plan.fit(digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, seed=0)
    assert digits.accuracy(run.params) > 0.7
    assert [g.notion for g in run.guarantees] == ["dp", "bdp", "per-instance"]
    expected = bd.WorstCaseAccountant(engine="rdp")
    expected.step(noise_multiplier=2.0, sampling_rate=0.1, steps=60)
    assert run.guarantees[0].epsilon == expected.epsilon(1e-5)
    assert run.guarantees[1].orientation == "both"
    assert run.guarantees[1].coverage == 0.9
    assert run.instance.epsilon(1e-5).shape == (300,)
    assert float(run.curve().at(0.5)) <= run.guarantees[1].epsilon


def test_snapshots_never_show_more_than_the_whole_plan_costs(digits, plan):
    exact = dataclasses.replace(plan, engine="pld").calibrate(epsilon=2.0)
    run = exact.fit(digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, seed=0)
    shown = [snapshot.dp for snapshot in run.snapshots]
    assert shown == sorted(shown)
    assert shown[-1] == run.guarantees[0].epsilon
    assert run.snapshots[-1].bdp == run.guarantees[1].epsilon


def test_noise_for_a_risk(plan):
    kept = dataclasses.replace(plan, engine="pld").calibrate(attacker=0.6)
    accountant = bd.WorstCaseAccountant()
    accountant.step(noise_multiplier=kept.noise_multiplier, sampling_rate=0.1, steps=60)
    assert 0.5999 < accountant.attacker().right <= 0.6


def test_without_noise_or_clipping_it_is_plain_sgd(digits):
    plan = SGD(clip_norm=1e6, sampling_rate=1.0, steps=5, optimizer=optax.sgd(0.5), noise_multiplier=0.0, engine="rdp")
    run = plan.fit(digits.loss, digits.params, digits.data, members=0, seed=0)
    params, state = digits.params, optax.sgd(0.5).init(digits.params)

    def mean_loss(params):
        return jnp.mean(jax.vmap(lambda x, y: digits.loss(params, (x, y)))(*digits.data))

    for _ in range(5):
        updates, state = optax.sgd(0.5).update(jax.grad(mean_loss)(params), state)
        params = optax.apply_updates(params, updates)
    for ours, theirs in zip(jax.tree.leaves(run.params), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)
    assert math.isinf(run.guarantees[0].epsilon)


def test_any_loss_gives_the_numbers_of_the_fast_path(digits, plan):
    fast = plan.fit(digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, seed=3)
    plain = plan.fit(
        lambda p, e: digits.loss(p, e), digits.params, digits.data, holdout=digits.holdout, members=300, seed=3
    )
    for one, other in zip(jax.tree.leaves(fast.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(fast.instance.epsilon(1e-5), plain.instance.epsilon(1e-5), rtol=1e-3)


def test_witnesses_are_charged_their_own_norms(digits):
    """One step from known parameters: the tally is that of the norms computed by hand."""
    plan = SGD(clip_norm=0.5, sampling_rate=0.2, steps=1, optimizer=optax.sgd(0.1), noise_multiplier=1.5, engine="rdp")
    run = plan.fit(digits.loss, digits.params, digits.data, watch=tuple(a[:5] for a in digits.data), members=0, seed=0)

    def norm(x, y):
        gradient = jax.grad(digits.loss)(digits.params, (x, y))
        return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))

    norms = np.minimum(np.asarray(jax.vmap(norm)(*(a[:5] for a in digits.data)), dtype=np.float64), 0.5)
    by_hand = bd.InstanceAccountant(records=5, orders=run.instance.orders, weights=run.instance.weights, cap=1.0)
    by_hand.step(np.minimum(norms / 0.5 * (1 + 1e-5), 1.0), noise_std=1.5, sampling_rate=0.2)
    np.testing.assert_allclose(run.instance.epsilon(1e-5), by_hand.epsilon(1e-5), rtol=1e-4)


def test_a_seed_reproduces_the_run_and_is_admitted(digits, plan, tmp_path):
    one = plan.fit(digits.loss, digits.params, digits.data, members=40, seed=5)
    two = plan.fit(digits.loss, digits.params, digits.data, members=40, seed=5)
    free = plan.fit(digits.loss, digits.params, digits.data, members=40)
    assert leaves_equal(one.params, two.params)
    assert not leaves_equal(one.params, free.params)
    assert (one.seeded, free.seeded) == (True, False)
    assert "not private" in one.report(tmp_path / "r.html").read_text(encoding="utf-8")


class Interruption(Exception):
    pass


@pytest.mark.parametrize("snapshot", [1, 2])
def test_resuming_gives_what_was_interrupted(digits, plan, tmp_path, snapshot):
    given = {"holdout": digits.holdout, "members": 300, "seed": 1}
    whole = plan.fit(digits.loss, digits.params, digits.data, **given)
    seen = []

    def stop(run):
        seen.append(run.steps)
        if len(seen) == snapshot:
            raise Interruption

    with pytest.raises(Interruption):
        plan.fit(digits.loss, digits.params, digits.data, **given, folder=tmp_path, progress=stop)
    assert (tmp_path / "checkpoint.npz").stat().st_mode & 0o077 == 0
    resumed = plan.resume(tmp_path, digits.loss, digits.params, digits.data, holdout=digits.holdout)
    assert leaves_equal(whole.params, resumed.params)
    assert whole.guarantees == resumed.guarantees
    assert whole.snapshots == resumed.snapshots
    with pytest.raises(InputError, match="finished"):
        plan.resume(tmp_path, digits.loss, digits.params, digits.data, holdout=digits.holdout)


def test_resuming_refuses_another_plan_and_other_data(digits, plan, tmp_path):
    def stop(run):
        raise Interruption

    with pytest.raises(Interruption):
        plan.fit(digits.loss, digits.params, digits.data, members=40, seed=1, folder=tmp_path, progress=stop)
    other = dataclasses.replace(plan, noise_multiplier=1.0)
    with pytest.raises(InputError, match="same plan"):
        other.resume(tmp_path, digits.loss, digits.params, digits.data)
    changed = (digits.data[0] + 1e-3, digits.data[1])
    with pytest.raises(InputError, match="same data"):
        plan.resume(tmp_path, digits.loss, digits.params, changed)
    with pytest.raises(InputError, match="another folder"):
        other.fit(digits.loss, digits.params, digits.data, members=40, seed=1, folder=tmp_path)


def test_calibration_does_not_overshoot_with_a_schedule():
    plan = SGD(sampling_rate=0.05, steps=100, optimizer=optax.sgd(0.1), noise_schedule="typical", engine="rdp")
    plan = plan.calibrate(epsilon=2.0)
    accountant = bd.WorstCaseAccountant(engine="rdp")
    for z, count in zip(*np.unique(plan.noise, return_counts=True), strict=True):
        accountant.step(noise_multiplier=float(z), sampling_rate=0.05, steps=int(count))
    assert 1.9 < accountant.epsilon(1e-5) <= 2.0
    np.testing.assert_allclose(plan.noise[:5], 6 ** (15 / 16) * plan.noise[-1])


def test_a_budget_stops_the_run_before_it_is_passed(digits, plan):
    everything = plan.fit(digits.loss, digits.params, digits.data, members=0, seed=0).guarantees[0].epsilon
    short = dataclasses.replace(plan, epsilon_budget=0.8 * everything)
    run = short.fit(digits.loss, digits.params, digits.data, members=0, seed=0)
    assert 0 < run.steps < 60
    assert run.guarantees[0].epsilon <= 0.8 * everything
    more = bd.WorstCaseAccountant(engine="rdp")
    more.step(noise_multiplier=2.0, sampling_rate=0.1, steps=run.steps + 1)
    assert more.epsilon(1e-5) > 0.8 * everything


def test_without_clipping_dp_is_infinite_and_the_others_are_tallied(digits):
    plan = SGD(clip_norm=None, noise_std=5.0, sampling_rate=0.1, steps=10, optimizer=optax.sgd(0.5), engine="rdp")
    run = plan.fit(digits.loss, digits.params, digits.data, holdout=digits.holdout, members=200, seed=0)
    by_notion = {g.notion: g.epsilon for g in run.guarantees}
    assert math.isinf(by_notion["dp"])
    assert 0 < by_notion["bdp"] < math.inf
    assert 0 < by_notion["per-instance"] < math.inf


def test_clip_schedule_changes_noise_and_distances_together(digits, plan):
    scheduled = dataclasses.replace(plan, clip_schedule=((0.5, 1.0), (0.5, 0.5)))
    run = scheduled.fit(digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, seed=0)
    assert (
        run.guarantees[0].epsilon
        == plan.fit(digits.loss, digits.params, digits.data, members=0, seed=0).guarantees[0].epsilon
    )
    assert digits.accuracy(run.params) > 0.6


def test_saving_writes_the_folder_that_design_names(digits, plan, tmp_path):
    run = plan.fit(digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, seed=0)
    run.save(tmp_path / "run")
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert {"plan.json", "params.npz", "accountants.json", "report.json", "report.html"} <= names


def test_the_report_shows_every_witness_and_what_it_was_told(digits, plan):
    watch = tuple(part[:3] for part in digits.data)
    run = plan.fit(
        digits.loss, digits.params, digits.data, holdout=digits.holdout, members=300, watch=watch, seed=0,
        evaluate=lambda params: {"test accuracy": digits.accuracy(params)},
    )  # fmt: skip
    correct = np.arange(703) % 2 == 0
    report = run.to_report(correct=correct, optimizer="SGD", evaluated_on="other digits", metrics={"a": 1.0})
    assert report.records.correct == tuple(correct)
    assert report.records.epsilon == tuple(run.losses())
    assert max(report.records.epsilon[-3:]) == run.guarantees[2].epsilon
    outside = run.tallies.population.witnesses["absent"].epsilon_and_dp(1e-5, dp=run.tallies.plan_dp())[0]
    assert report.records.epsilon[:400] == tuple(outside)
    assert (report.settings.optimizer, report.progress.data) == ("SGD", "other digits")
    assert report.settings.other["witnesses outside of the data"] == 400
    with pytest.raises(InputError, match="correct"):
        run.to_report(correct=correct[:-1])


@pytest.mark.parametrize("schedule", [((0.5, 1.0),), [1.0, 2.0], "other", ((1.0, -1.0),)])
def test_bad_schedules_are_named(schedule):
    with pytest.raises(InputError, match="noise_schedule"):
        factors("noise_schedule", schedule, 10)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampling_rate": 0.0}, "sampling_rate"),
        ({"steps": 0}, "steps"),
        ({"clip_norm": -1.0}, "clip_norm"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_std": 1.0}, "noise_std"),
        ({"delta": 1.0}, "delta"),
        ({"engine": "other"}, "engine"),
        ({"epsilon_budget": -1.0}, "epsilon_budget"),
    ],
)
def test_bad_plans_are_named(plan, change, words):
    with pytest.raises(InputError, match=words):
        dataclasses.replace(plan, **change)


def test_bad_fits_are_named(digits, plan):
    with pytest.raises(InputError, match="noise_multiplier"):
        dataclasses.replace(plan, noise_multiplier=None).fit(digits.loss, digits.params, digits.data)
    with pytest.raises(InputError, match="batch statistics"):
        plan.fit(digits.loss, {"batch_stats": 1}, digits.data)
    with pytest.raises(InputError, match="float arrays"):
        plan.fit(digits.loss, {"a": "text"}, digits.data)
    with pytest.raises(InputError, match="same number of records"):
        plan.fit(digits.loss, digits.params, (digits.data[0], digits.data[1][:-1]))
    with pytest.raises(InputError, match=r"same (form|shape)"):
        plan.fit(digits.loss, digits.params, digits.data, holdout=(digits.holdout[0][:, :3], digits.holdout[1]))
    for tiny in (1e-13, 1e-30):
        with pytest.raises(InputError, match="sampling_rate"):
            dataclasses.replace(plan, sampling_rate=tiny).fit(digits.loss, digits.params, digits.data)
    half = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), digits.params)
    with pytest.raises(InputError, match="params"):
        plan.fit(digits.loss, half, digits.data)
