"""The number of records that updates are scaled by (H18): N and N + 1 must not be told apart by it."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import bayesdp as bd
from bayesdp.errors import InputError
from bayesdp.learn.record_count import with_count
from bayesdp.learn.vi.vi import default_optimizer

SIZE = 3000
"""Parameters: enough to tell the scales of noise for 100 and 50 records apart from one run."""

PLAN = {"sampling_rate": 0.5, "steps": 4, "clip_norm": 1.0, "noise_multiplier": 30.0, "engine": "rdp"}


def nothing(params, record):
    """A loss that no record has a say in: what is released is noise alone."""
    return jnp.sum(params["w"] * record[0] * 0)


def log_prior(params):
    return -jnp.sum(params["w"] ** 2) / 2


def log_likelihood(params, record):
    return -jnp.sum(params["w"] * record[0] * 0)


MODEL = (log_prior, log_likelihood)


def records(count):
    return (np.zeros((count, 1), np.float32),)


def zeros(size=SIZE):
    return {"w": jnp.zeros(size)}


def by_sgd(count, **options):
    plan = bd.SGD(**PLAN, optimizer=optax.sgd(1.0), **options)
    run = plan.fit(nothing, zeros(), records(count), members=0, seed=1)
    return np.asarray(run.params["w"], float), run.guarantees


def by_vi(count, **options):
    plan = bd.VI(**PLAN, optimizer=default_optimizer(), **options)
    posterior = plan.fit(MODEL, records(count), params=zeros(20), seed=1)
    return posterior.mean, posterior.guarantees


def by_sgld(count, **options):
    plan = bd.SGLD(**{**PLAN, "noise_multiplier": None}, step_size=1e-3, **options)
    posterior = plan.fit(MODEL, records(count), params=zeros(20), seed=1)
    return posterior.mean, posterior.guarantees


def by_psgld(count, **options):
    plan = bd.PSGLD(**{**PLAN, "noise_multiplier": None}, step_size=1e-3, **options)
    posterior = plan.fit(MODEL, records(count), params=zeros(20), seed=1)
    return posterior.mean, posterior.guarantees


def by_samples(count, **options):
    plan = bd.PosteriorVI(sampling_rate=0.5, steps=4, samples=2, optimizer=optax.sgd(0.1), **options)
    posterior = plan.fit(MODEL, records(count), params=zeros(20), seed=1)
    posterior.sample()
    return posterior.mean, posterior.guarantees


LEARNERS = [by_sgd, by_vi, by_sgld, by_psgld, by_samples]


def test_one_record_more_changed_the_scale_of_the_noise():
    """What was wrong: |w|² is v_N χ² with v_N = T (zC/(qN))², so that N shows in the scale."""
    few, many = (np.sum(by_sgd(count)[0] ** 2) for count in (50, 100))
    assert few / many == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize("learn", LEARNERS)
def test_with_a_declared_number_the_true_one_does_not_show(learn):
    one, other = (learn(count, num_records=100)[0] for count in (100, 101))
    np.testing.assert_array_equal(one, other)
    assert np.abs(one).max() > 0


@pytest.mark.parametrize("learn", LEARNERS)
def test_every_promise_says_whose_number_it_is(learn):
    for promise in learn(100)[1]:
        said = [words for words in promise.assumptions if "(H18)" in words]
        assert len(said) == 1
        assert "N = 100, was taken from the data and is public" in said[0]
        assert "neighbouring data sets have the same N" in said[0]
        assert "contribution is absent in one of them" in said[0]
    for promise in learn(100, num_records=120)[1]:
        said = [words for words in promise.assumptions if "(H18)" in words]
        assert len(said) == 1
        assert "120, was declared independently of the data" in said[0]
        assert not any("is public" in words and "number of records" in words for words in promise.assumptions)


def test_all_three_promises_say_it_and_a_folder_keeps_it(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32), np.zeros(60, np.float32)

    def loss(params, record):
        return jnp.sum((record[0] @ params["w"] - record[1]) ** 2)

    for declared, words in ((None, "N = 40, was taken from the data"), (48, "48, was declared")):
        plan = bd.SGD(**PLAN, optimizer=optax.sgd(0.1), num_records=declared)
        run = plan.fit(
            loss, {"w": jnp.ones(3)}, (x[:40], y[:40]), holdout=(x[40:], y[40:]), members=20, watch=(x[:2], y[:2])
        )
        assert len(run.guarantees) == 3
        assert all(words in " ".join(promise.assumptions) for promise in run.guarantees)
        run.save(tmp_path / str(declared))
        assert bd.Run.load(tmp_path / str(declared)).guarantees == run.guarantees
        assert run.to_report().settings.records == (declared or 40)


def test_who_replaces_a_record_keeps_the_number():
    promise = bd.Guarantee(notion="dp", epsilon=1.0, delta=1e-5, adjacency="replace-one")
    assert "contribution is another's in one of them" in with_count(promise, None, 40).assumptions[-1]


@pytest.mark.parametrize("kind", [bd.SGD, bd.VI, bd.PosteriorVI])
@pytest.mark.parametrize("wrong", [0, 2.5, -3])
def test_a_number_that_is_none_is_refused(kind, wrong):
    options = {"optimizer": optax.sgd(1.0)} if kind is bd.SGD else {}
    with pytest.raises(InputError, match="num_records"):
        kind(sampling_rate=0.5, steps=4, num_records=wrong, **options)
