"""Budgets that people chose, against the truth: an adversary steers every record, each against its own promise (H4)."""

import numpy as np
import optax
import pytest
from scipy import stats

import bayesdp as bd

RUNS, DELTA = 20_000, 0.05
SMALL, LARGE = 0.5, 2.0


def plan(rate, **changes):
    return bd.SGD(
        clip_norm=1.0,
        noise_multiplier=2.0,
        sampling_rate=rate,
        steps=40,
        delta=DELTA,
        optimizer=optax.sgd(0.1),
        **changes,
    )


def play(accountant, rate, side, seed):
    """The exact loss of every path: the adversary spends most where the loss is already large, till it is left out."""
    rng = np.random.default_rng(seed)
    loss, level = np.zeros(accountant.records), 2.0
    for _ in range(40):
        distance = np.where(loss > 0, 1.0, 0.4)
        inside = accountant.step(distance, noise_std=level, sampling_rate=rate)
        shift = np.where(inside, distance, 0.0) / level
        present = (rng.random(loss.shape) < rate) & (side == "present")
        x = rng.normal(size=loss.shape) + shift * present
        with np.errstate(divide="ignore"):
            gained = np.logaddexp(np.log1p(-rate) if rate < 1 else -np.inf, np.log(rate) + shift * x - shift**2 / 2)
        loss += gained if side == "present" else -gained
    return loss


def passes(loss, epsilon):
    """Whether E (1 − e^{ε−L})₊ is above δ, at a chance of 1e-6 to say so wrongly."""
    over = np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)
    return over.mean() - stats.norm.isf(1e-6) * over.std() / np.sqrt(over.size) > DELTA


@pytest.mark.parametrize(
    ("kind", "rate", "side"),
    [("rdp", 0.5, "present"), ("rdp", 0.5, "absent"), ("rdp", 1.0, "present"), ("gdp", 1.0, "present")],
)
def test_each_has_its_own_promise_and_everybody_the_largest(kind, rate, side):
    chosen = np.where(np.arange(RUNS) < RUNS // 2, SMALL, LARGE)
    accountant = bd.Filter(epsilon=chosen, kind=kind).accountant(RUNS, plan(rate))
    loss = play(accountant, rate, side, seed=0)
    own = accountant.epsilon(DELTA)
    np.testing.assert_allclose(own, chosen, rtol=1e-6)
    assert (own <= chosen * (1 + 1e-9)).all()
    modest, others = loss[: RUNS // 2], loss[RUNS // 2 :]
    assert not passes(modest, SMALL)
    assert not passes(others, LARGE)
    if rate == 1 or side == "present":  # the simulation sees a promise that is not kept: theirs is not the small one
        assert passes(others, SMALL)
    everybody, one = accountant.guarantee(DELTA), accountant.guarantee(DELTA, record=0)
    assert (everybody.notion, everybody.epsilon) == ("dp", own.max())
    assert (one.notion, one.epsilon, one.ex_post, one.sensitive) == ("per-instance", own[0], False, True)
    assert any("public" in sentence for sentence in everybody.assumptions)


def test_nobodys_choice_moves_anothers():
    """The same budget, order and costs, whoever else is there."""
    alone = bd.Filter(epsilon=[SMALL]).accountant(1, plan(0.5))
    beside = bd.Filter(epsilon=[SMALL, LARGE, 0.0]).accountant(3, plan(0.5))
    for distance in np.linspace(0.2, 1, 40):
        inside = alone.step([distance], noise_std=2.0, sampling_rate=0.5)
        together = beside.step([distance] * 3, noise_std=2.0, sampling_rate=0.5)
        assert inside[0] == together[0]
        assert not together[2]
    assert beside.epsilon(DELTA)[2] == 0
    again = bd.InstanceAccountant.from_state(beside.state())
    np.testing.assert_array_equal(again.active, beside.active)
    np.testing.assert_array_equal(again.epsilon(DELTA), beside.epsilon(DELTA))


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [([1.0, 2.0], "for each of the 3 records"), ([1.0, -1.0, 1.0], "filter epsilon"), ([0.0] * 3, "above 0")],
)
def test_bad_budgets(epsilon, words):
    with pytest.raises(bd.InputError, match=words):
        bd.Filter(epsilon=epsilon).accountant(3, plan(0.5))


def test_a_run_keeps_to_them():
    """Who chose 0 has no say at all; the report's DP ε is the largest."""
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    loud = np.concatenate([x, np.full((1, 1), 50.0, np.float32)])

    def loss(params, example):
        return 0.5 * ((params["theta"] - example) ** 2).sum()

    start = {"theta": np.zeros(1, np.float32)}
    budgets = np.array([1.5, 3.0] * 6)
    quiet = plan(1.0, filter=bd.Filter(epsilon=[*budgets, 0.0])).fit(loss, start, loud, seed=1)
    assert quiet.guarantees[0].notion == "dp"
    assert quiet.guarantees[0].epsilon <= 3.0
    none = plan(1.0, filter=bd.Filter(epsilon=[*budgets, 1.0])).fit(loss, start, loud, seed=1)
    assert abs(float(quiet.params["theta"][0]) - float(none.params["theta"][0])) > 1e-4
    np.testing.assert_allclose(quiet.tallies.budgets.epsilon(DELTA)[:12], budgets, rtol=1e-6)
