"""Noise-free VI of which samples are released: the whole way, against what is known exactly."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp.accountant.gaussian_release import two_sided_cost
from bayesdp.accountant.release_account import ORDERS
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.convert import delta as delta_of
from bayesdp.errors import InputError
from bayesdp.learn.models.density import NormalPrior, Probabilistic
from bayesdp.learn.models.regressions import logistic
from bayesdp.learn.posterior_sampling.neighbour_runs import NeighbourRuns, Witnesses
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
from bayesdp.learn.vi.guide import Guide

PLAN = PosteriorVI(
    sampling_rate=0.3,
    steps=150,
    optimizer=optax.adam(optax.cosine_decay_schedule(0.1, 150)),
    samples=8,
    failure=1e-3,
    delta=1e-4,
)
WEIGHTS = np.array([1.0, -1.0, 0.5])
SMALL = (NormalPrior(np.zeros(2, np.float32), 100.0), lambda z, x: -jnp.sum((x - z) ** 2) / 2)
"""x ~ N(z, I): compiles in a moment."""


def yes_or_no(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return x, (rng.uniform(size=count) < 1 / (1 + np.exp(-x @ WEIGHTS))).astype(np.int32)


@pytest.fixture(scope="module")
def posterior():
    data, holdout = yes_or_no(400, 0), yes_or_no(100, 1)
    watch = tuple(np.concatenate([a[:1], d[:1]]) for a, d in zip(holdout, data, strict=True))
    result = PLAN.fit(logistic, data, holdout=holdout, members=100, watch=watch, seed=3)
    result.sample(8)
    return result


def test_a_numpyro_model_gets_samples_predictions_and_three_promises(posterior):
    assert posterior.samples["w"].shape == (8, 3)
    np.testing.assert_allclose(posterior.mean, WEIGHTS, atol=0.5)
    x, y = yes_or_no(2000, 9)
    chance = posterior.predict((x,))
    np.testing.assert_allclose(chance, (1 / (1 + np.exp(-x @ posterior.draws.T))).mean(axis=1), rtol=1e-6)
    assert ((chance > 0.5) == y).mean() > 0.7
    dp, bdp, instance = posterior.guarantees
    assert [g.notion for g in posterior.guarantees] == ["dp", "bdp", "per-instance"]
    assert math.isinf(dp.epsilon)
    assert 0 < bdp.epsilon < 20
    assert (bdp.orientation, bdp.sampling, bdp.coverage) == ("both", "poisson", 0.9)
    assert instance.epsilon == posterior.instance.epsilon(1e-4).max()
    assert not bdp.caveats
    assert posterior.labels == ("w[0]", "w[1]", "w[2]")


def test_a_seed_repeats_the_run_and_no_seed_does_not():
    data = np.zeros((40, 2), np.float32)
    short = dataclasses.replace(PLAN, steps=3)
    fits = [short.fit(SMALL, data, members=0, seed=seed) for seed in (1, 1, None)]
    draws = [fit.sample(2) for fit in fits]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).all()
    assert [fit.seeded for fit in fits] == [True, True, False]
    assert [len(fit.guarantees) for fit in fits] == [1, 1, 1]  # no witnesses: only "dp", infinite


def location():
    """Records x ~ N(z, 1), z ~ N(0, 10²)."""
    return Probabilistic(
        dim=1,
        start=jnp.zeros(1),
        log_prior=lambda z: -jnp.sum(z**2) / 200,
        log_likelihood=lambda z, x: -((x - z[0]) ** 2) / 2,
        constrain=lambda z: z,
        labels=("z",),
    )


@pytest.fixture(scope="module")
def toy():
    """A one-dimensional program whose runs take milliseconds: (key, data, holdout) → moments of all trajectories.

    The run's own come first, a member's (the fifth record's) last.
    """
    guide = Guide("mean-field", 1)
    with jax.enable_x64(True):
        program = NeighbourRuns(location(), guide, optax.sgd(0.3), 0.5, 12, initial_scale=0.2, averaged=3)

        @jax.jit
        def moments(key, data, records):
            member, outsiders = 4, len(records)
            everybody = Witnesses(
                jnp.append(records, data[member]),
                jnp.append(jnp.ones(outsiders), 0),
                jnp.append(jnp.full(outsiders, -1), member),
            )
            return program._train(key, data, everybody)

    def run(key, data, records):
        with jax.enable_x64(True):
            theta = moments(jax.random.key(key), jnp.asarray(data), jnp.asarray(records))
            return guide.moments(np.asarray(theta))

    return run


@pytest.fixture(scope="module")
def sixty(toy):
    """Sixty runs on twelve records, the fifth of which is far from the others, and so is an outsider."""
    data = np.random.default_rng(0).normal(size=12)
    data[4] = -2.5
    pairs = [toy(key, data, np.array([2.5])) for key in range(60)]
    return [np.array(part)[:, :, 0] for part in zip(*pairs, strict=True)]


@pytest.mark.parametrize("who", [1, 2], ids=["outsider", "member"])
def test_the_secret_randomness_only_helps(sixty, who):
    """δ(ε) of the mechanism whose ω is not revealed is at most δ + Pr[ε_x(ω) > ε]: mixtures integrated on a grid."""
    (mean, variance), runs, epsilons = (part[:, [0, who]] for part in sixty), 60, (0.3, 1.0, 3.0)
    z = np.linspace(mean.min() - 3, mean.max() + 3, 20_001)
    density = np.exp(-((z - mean[..., None]) ** 2) / (2 * variance[..., None])) / np.sqrt(
        2 * np.pi * variance[..., None]
    )
    mixed = density.mean(axis=0)  # with and without the record, over the same ω
    bounds = np.empty(runs)
    for i in range(runs):
        costs = two_sided_cost(mean[i, :1], variance[i, :1], mean[i, 1:, None], variance[i, 1:, None], ORDERS)
        one = RepeatedRelease(costs, ORDERS, planned=1)
        one.step()
        bounds[i] = one.epsilon(1e-2)[0]
    for epsilon in epsilons:
        for here, there in ((0, 1), (1, 0)):
            truth = np.maximum(mixed[here] - math.exp(epsilon) * mixed[there], 0).sum() * (z[1] - z[0])
            assert truth <= 1e-2 + (bounds > epsilon).mean()
    assert 0 < (bounds > 3.0).mean() < 1


def test_a_share_of_people_is_covered_and_their_loss_is_bounded(toy):
    """The triple as a whole, simulated: heavy-tailed people with coins of their own, and samples."""
    rng, tries, failure, coverage, delta, samples = np.random.default_rng(1), 60, 0.2, 0.7, 0.05, 3
    missed, losses = 0, []
    for key in range(tries):
        people = rng.standard_t(3, size=240)
        mean, variance = (part[:-1] for part in toy(key, rng.standard_t(3, size=12), people))
        costs = two_sided_cost(mean[0], variance[0], mean[1:], variance[1:], ORDERS)
        holdout = RepeatedRelease(costs[:40], ORDERS, planned=samples)
        others = RepeatedRelease(costs[40:], ORDERS, planned=samples)
        witnesses = RepeatedWitnesses({"absent": holdout}, coverage=coverage, failure=failure)
        for book in (witnesses, others):
            book.step(samples)
        epsilon = witnesses.guarantee(delta).epsilon
        covered = others.epsilon(delta) <= epsilon
        missed += covered.mean() < coverage - 2 * math.sqrt(coverage * (1 - coverage) / 200)
        w = rng.normal(mean[0], np.sqrt(variance[0]), size=(samples, 1))
        log = [
            -((w - m) ** 2) / (2 * v) - np.log(v) / 2
            for m, v in ((mean[0], variance[0]), (mean[41:, 0], variance[41:, 0]))
        ]
        losses.append((covered & ((log[0] - log[1]).sum(axis=0) >= epsilon)).mean())
    assert missed <= failure * tries
    assert np.mean(losses) <= delta


def test_the_papers_one_step_recipe_is_labelled_and_under_counts():
    """ERR 8: over many small steps in one direction the record's effect adds up; the recipe sees the last one only."""
    data = np.zeros(200, np.float32)
    holdout = np.full(20, 3.0, np.float32)  # all alike, so that Student-t has nothing to add
    plan = PosteriorVI(
        sampling_rate=1.0,
        steps=200,
        optimizer=optax.sgd(0.01),
        samples=1,
        averaged_fraction=0.0,
        coverage=0.5,
        failure=0.1,
        strength="strong",  # the recipe's own kind of statement
    )
    model = (NormalPrior(np.zeros(1, np.float32), 100.0), lambda z, x: -((x - z[0]) ** 2) / 2)
    numbers = {}
    for accounting in ("coupled", "one-step"):
        fit = dataclasses.replace(plan, accounting=accounting).fit(model, data, holdout=holdout, members=0, seed=0)
        fit.sample()
        numbers[accounting] = fit.guarantees[1]
    assert "ERR 8" in numbers["one-step"].caveats[0]
    assert not numbers["coupled"].caveats
    assert numbers["one-step"].epsilon < numbers["coupled"].epsilon / 1.5


def test_everybody_is_promised_something_inside_of_a_public_box_only():
    data = np.full((40, 2), 1000.0, np.float32)
    plan = dataclasses.replace(PLAN, steps=3, radius=2.0, scales=(0.05, 0.5))
    wide = plan.calibrate(2.0, dim=2)
    fit = wide.fit(SMALL, data, members=0, seed=0)
    fit.sample()
    assert 1.99 < fit.guarantees[0].epsilon <= 2.0
    budgeted = dataclasses.replace(wide, epsilon_budget=1.0).fit(SMALL, data, members=0, seed=0)
    assert 0 < budgeted.remaining < 8
    budgeted.sample()
    assert budgeted.guarantees[0].epsilon <= 1.0
    with pytest.raises(InputError, match="to be at most 0"):
        budgeted.sample(1)
    with pytest.raises(InputError, match="Expected radius and scales to calibrate"):
        PLAN.calibrate(1.0, dim=2)
    assert delta_of(8 * wide.softening.worst_cost(2, ORDERS), ORDERS, 2.0) <= 1.001e-4


def test_a_run_that_left_the_real_numbers_is_no_outcome_of_its_own_inside_of_the_box():
    """One record can bring it about: an error instead of samples would tell with certainty."""
    plan = dataclasses.replace(PLAN, steps=3, optimizer=optax.sgd(1e300), radius=2.0, scales=(0.05, 0.5), extra_std=3.0)
    fit = plan.fit(SMALL, np.full((40, 2), 3e38, np.float32), members=0, seed=0)
    draws = fit.sample()
    assert np.isfinite(draws).all()
    assert math.isfinite(fit.guarantees[0].epsilon)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sampling_rate": 0}, "Expected sampling_rate"),
        ({"sampling_rate": 1e-13}, "Expected sampling_rate"),
        ({"steps": 0}, "Expected steps"),
        ({"samples": 0}, "Expected samples"),
        ({"guide": "normal"}, "Expected guide"),
        ({"num_particles": 0}, "Expected num_particles"),
        ({"averaged_fraction": 1.5}, "Expected averaged_fraction"),
        ({"temper": 0.5}, "Expected temper"),
        ({"coverage": 1.0}, "Expected coverage"),
        ({"strength": "exact"}, "Expected strength"),
        ({"accounting": "none"}, "Expected accounting"),
        ({"accounting": "one-step", "guide": "full-rank"}, 'Expected guide to be "mean-field"'),
        ({"accounting": "one-step", "adjacency": "replace-one"}, 'Expected adjacency to be "add-remove"'),
        ({"adjacency": "swap"}, "Expected adjacency"),
        ({"epsilon_budget": 1.0}, "Expected radius and scales to be given with epsilon_budget"),
    ],
)
def test_bad_plans_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(PLAN, **values)


def test_bad_calls_are_refused_before_training():
    data = yes_or_no(50, 0)
    with pytest.raises(InputError, match='5 witnesses "absent" support'):
        PLAN.fit(logistic, data, holdout=yes_or_no(5, 1), members=0)
    with pytest.raises(InputError, match='20 witnesses "present" support'):
        PLAN.fit(logistic, data, members=20)  # all 50 would be counted
    with pytest.raises(InputError, match='Expected holdout records, and none to watch, for accounting="one-step"'):
        dataclasses.replace(PLAN, accounting="one-step").fit(logistic, data)
    exchange = dataclasses.replace(PLAN, adjacency="replace-one")
    for given in ({"members": 5}, {"watch": yes_or_no(1, 2)}):
        with pytest.raises(InputError, match="Expected neither members nor watch"):
            exchange.fit(logistic, data, holdout=yes_or_no(200, 1), **given)
    with pytest.raises(InputError, match='5 witnesses "exchanged" support'):
        exchange.fit(logistic, data, holdout=yes_or_no(5, 1))
    with pytest.raises(InputError, match="Expected holdout to hold records of the same shape"):
        PLAN.fit(logistic, data, holdout=(np.zeros((200, 2), np.float32), np.zeros(200, np.int32)), members=0)
    wild = dataclasses.replace(PLAN, optimizer=optax.sgd(1e30), steps=5)
    with pytest.raises(InputError, match="Expected training to end at finite numbers"):
        wild.fit(SMALL, np.zeros((40, 2), np.float32), members=0)
