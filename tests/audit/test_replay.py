"""Every learner, clip rule, schedule and update rule: each step of a real run again without its last record (H20)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
import pytest
from numpyro import distributions as dist

import bayesdp as bd
from bayesdp.audit.replay import Recorded, repeats, replay
from bayesdp.learn.sgmcmc.step_sizes import Decreasing
from bayesdp.mechanism import Activation, Automatic, Conv2D, Dense, Flatten, Mean, ModelLoss, Sequential

RNG = np.random.default_rng(0)
PEOPLE, STEPS = 24, 6
X = RNG.normal(size=(PEOPLE, 3)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.float32)
X[-1] *= 30  # who is taken out is clipped, and surprises
Y[-1] = 1 - Y[-1]
PICTURES = RNG.normal(size=(PEOPLE, 5, 5, 1)).astype(np.float32) * np.where(np.arange(PEOPLE) == PEOPLE - 1, 30, 1)[
    :, None, None, None
].astype(np.float32)

CONV = Sequential((Conv2D(2, 3), Activation("tanh"), Flatten(), Dense(1)))
SCHEDULES = {
    "noise_schedule": ((0.5, 2.0), (0.5, 1.0)),
    "clip_schedule": ((0.5, 1.0), (0.5, 0.4)),
    "rate_schedule": ((0.5, 1.0), (0.5, 0.6)),
}


def squared(output, y):
    return 0.5 * jnp.sum((output - y) ** 2)


def plain(params, record):
    return squared(record[0] @ params, record[1])


def logistic(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[-1]]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def sgd(**fields):
    settings = {"sampling_rate": 0.6, "steps": STEPS, "clip_norm": 0.5, "noise_multiplier": 0.8, "engine": "rdp"}
    return bd.SGD(**settings | {"optimizer": optax.adam(0.1)} | fields)


def begun(name, seed=4):
    """A run of a plan on what it is for, before its first step."""
    plan = PLANS[name]
    if not isinstance(plan, bd.SGD):
        return plan.begin(logistic, (X, Y.astype(np.int32)), members=0, seed=seed).training
    loss, params, data = plain, jnp.zeros(3), (X, Y)
    if "books" in name:
        loss, params = ModelLoss(CONV, squared), CONV.init(jax.random.key(0), PICTURES.shape[1:])
        data = (PICTURES, Y[:, None])
    return plan.begin(loss, params, data, members=0, seed=seed)


SAMPLER = {"clip_norm": 0.5, "sampling_rate": 0.6, "steps": STEPS, "step_size": 0.02, "engine": "rdp"}
VI = {"clip_norm": 0.5, "sampling_rate": 0.6, "steps": STEPS, "noise_multiplier": 0.8, "engine": "rdp"}
PLANS = {
    "sgd, flat, all schedules": sgd(**SCHEDULES),
    "sgd, automatic, subset": sgd(clip_norm=Automatic(0.5, 0.01), subset_fraction=0.7),
    "sgd, mean": sgd(update=Mean(5)),
    "sgd, per layer, books, convolution": sgd(clip_norm=(0.3, 0.4)),
    "vi, aligned, schedules": bd.VI(**VI, **SCHEDULES),
    "sgld, chains, decreasing": bd.SGLD(**SAMPLER, num_chains=2, step_schedule=Decreasing()),
    "sghmc": bd.SGHMC(**SAMPLER, friction=0.5),
    "sgnht": bd.SGNHT(**SAMPLER, friction=0.5),
    "psgld, clip schedule": bd.PSGLD(**SAMPLER, clip_schedule=SCHEDULES["clip_schedule"]),
}


@pytest.mark.simulation
@pytest.mark.parametrize("name", PLANS)
def test_a_step_moves_by_no_more_than_is_declared_and_its_noise_is_what_is_accounted_for(name):
    chains = 2 if "chains" in name else 1
    training = begun(name)
    recorded = replay(training)
    accounted = training.tallies[0].noise * training.trajectories.setup.sensitivity
    assert recorded.faults(accounted, chains) == []
    assert len(recorded.number) == STEPS * chains
    moved = recorded.moved / recorded.declared
    assert moved.max() > {"sgd, mean": 0.2, "sgd, per layer, books, convolution": 0.5}.get(
        name, 0.9
    )  # the record was there, and was clipped


@pytest.mark.simulation
def test_what_was_recorded_is_the_run_itself_and_runs_do_not_share_noise():
    name = "sgd, flat, all schedules"
    recorded, plain_run = begun(name), begun(name)
    first = replay(recorded)
    plain_run.run()
    ours, theirs = (jax.tree.leaves(one.trajectories.carry.params) for one in (recorded, plain_run))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    fresh = replay(begun(name, seed=None))
    assert repeats(first.noise, fresh.noise) == 0


def test_a_record_without_a_finite_gradient_changes_nothing_at_all():
    """Its gradient counts as 0: with it or without it all that is released, and all that follows, is the same."""
    rows = (np.concatenate([X, np.full((1, 3), np.inf, np.float32)]), np.append(Y, np.float32(0)))
    plan = dataclasses.replace(PLANS["sgd, flat, all schedules"], num_records=PEOPLE)
    with_it, without = (plan.fit(plain, jnp.zeros(3), data, members=0, seed=4) for data in (rows, (X, Y)))
    assert np.array_equal(with_it.params, without.params)
    assert with_it.guarantees[0].epsilon == without.guarantees[0].epsilon


def test_faults_are_named():
    steps, rng = np.arange(4.0), np.random.default_rng(1)
    good = Recorded(steps, np.full(4, 0.9), np.ones(4), np.full(4, 2.0), rng.normal(size=(4, 50)), np.ones(4))
    assert good.faults(np.full(4, 2.0)) == []
    changes = {
        "moved": {"moved": np.array([0.5, 1.2, 0.1, 0.1])},
        "asked for": {"std": np.full(4, 1.0)},
        "times its standard deviation": {"noise": 0.5 * good.noise},
        "same noise": {"noise": np.concatenate([good.noise[:3], good.noise[:1]])},
        "steps taken": {"number": np.array([0.0, 1.0, 1.0, 3.0])},
        "not": {"moved": np.full(4, np.nan)},
    }
    for words, change in changes.items():
        [found] = dataclasses.replace(good, **change).faults(np.full(4, 2.0))
        assert words in found
