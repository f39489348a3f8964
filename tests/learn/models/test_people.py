import dataclasses

import jax
import numpy as np
import pytest

from bayesdp import PSGLD, SGLD, VI, Curvature, InputError, Network, NormalPrior, People, PosteriorVI
from bayesdp.learn.models.networks import classifier
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.regressions import logistic

RNG = np.random.default_rng(0)
OWNERS = np.repeat(np.arange(20), np.arange(20) % 4 + 1)
X = RNG.normal(size=(len(OWNERS), 2)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)
PEOPLE = People.of((X, Y), OWNERS, most=4, seed=0)


@pytest.mark.parametrize(
    "model", [logistic, (NormalPrior(np.zeros(2, np.float32)), lambda w, row: row[0] @ w * row[1])]
)
def test_a_person_has_the_likelihood_of_all_their_rows(model):
    z = np.array([0.3, -1.0], np.float32)
    one, rows = probabilistic(model, PEOPLE), probabilistic(model, (X, Y))
    every = np.asarray(jax.jit(rows.log_likelihoods)(z, (X, Y)))
    ours = np.asarray(jax.jit(one.log_likelihoods)(z, PEOPLE))
    np.testing.assert_allclose(ours, [every[who == OWNERS].sum() for who in range(20)], rtol=1e-5)
    assert float(one.log_prior(z)) == float(rows.log_prior(z))
    assert probabilistic(model, PEOPLE) == one  # what was compiled for one serves all


def test_a_posterior_of_people_is_that_of_their_rows_and_promises_to_people():
    plan = VI(sampling_rate=1.0, steps=300, clip_norm=None, noise_multiplier=0.0)
    ours = plan.fit(logistic, PEOPLE, seed=0)
    rows = dataclasses.replace(plan, num_records=20).fit(logistic, (X, Y), seed=0)
    np.testing.assert_allclose(ours.mean, rows.mean, atol=1e-3)
    assert {one.unit for one in ours.guarantees} == {"person"}
    assert ours.predict((X,), draws=5, seed=0).shape == Y.shape  # of rows


def test_samples_of_a_secret_posterior_promise_to_people():
    plan = PosteriorVI(sampling_rate=0.5, steps=5, samples=1, coverage=0.2, failure=0.1)
    secret = plan.fit(logistic, PEOPLE, holdout=PEOPLE, members=5, watch=PEOPLE, seed=0)
    secret.sample()
    assert {one.unit for one in secret.guarantees} == {"person"}
    assert "records" not in secret.to_report().record


def test_a_sampler_takes_people_too_but_not_for_its_last_iterate_alone():
    loss = classifier("logistic", 2)
    network = Network(loss, loss.model.init(jax.random.key(0), (2,)))
    plan = {"sampling_rate": 1.0, "steps": 4, "step_size": 0.001, "clip_norm": 0.5, "engine": "rdp"}
    for sampler in (SGLD, PSGLD):
        samples = sampler(**plan).fit(network, PEOPLE, seed=0)
        assert samples.guarantees[0].unit == "person"
    declared = Curvature.logistic(records=40, feature_bound=5.0)
    with pytest.raises(InputError, match="records of one row each for last_only"):
        SGLD(**plan, last_only=declared).fit(logistic, PEOPLE, seed=0)
