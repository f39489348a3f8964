import dataclasses

import numpy as np
import pytest

import bayesdp as bd
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.regressions import logistic
from bayesdp.learn.second_order.exact import laplace

RNG = np.random.default_rng(0)
N = 1500
X = np.concatenate([RNG.normal(size=(N, 2)), np.ones((N, 1))], axis=1).astype(np.float32)
Y = (RNG.random(N) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.3]))).astype(np.int32)
PLAN = bd.Newton(engine="rdp")


@pytest.fixture(scope="module")
def exact():
    return laplace(probabilistic(logistic, (X, Y)), (X, Y))


@pytest.fixture(scope="module")
def quiet():
    return dataclasses.replace(PLAN, noise_multiplier=1e-3).fit(logistic, (X, Y), seed=0)


def test_with_hardly_any_noise_it_is_the_posterior(quiet, exact):
    away = np.abs(quiet.mean - exact.mean) / np.sqrt(np.diagonal(exact.cov))
    assert away.max() < 0.25  # records are weighed: another estimate, hardly worse
    np.testing.assert_allclose(quiet.std / np.sqrt(np.diagonal(exact.cov)), 1, atol=0.12)
    assert quiet.doubts == ("", "", "")


def test_noise_is_in_the_intervals_and_in_the_promises(exact, tmp_path):
    plan = PLAN.calibrate(1.0)
    posterior = plan.fit(logistic, (X, Y), seed=1, holdout=(X[:50], Y[:50]), members=50)
    assert posterior.run.guarantees[0].epsilon <= 1
    assert {one.notion for one in posterior.guarantees} >= {"dp", "bdp"}
    # All steps together are one Gaussian mechanism.
    alone = bd.WorstCaseAccountant(engine="pld")
    alone.step(noise_multiplier=plan.noise_multiplier)
    assert alone.epsilon(1e-5) <= 1
    assert (posterior.std > np.sqrt(np.diagonal(exact.cov))).all()
    assert (np.abs(posterior.mean - exact.mean) < 4 * posterior.std).all()
    posterior.save(tmp_path / "run")
    again = bd.Posterior.load(tmp_path / "run", logistic, (X, Y))
    assert again.doubts == posterior.doubts
    np.testing.assert_array_equal(again.cov, posterior.cov)


def test_bad_input():
    with pytest.raises(bd.InputError, match="sampling_rate"):
        bd.Newton(sampling_rate=0.5)
    with pytest.raises(bd.InputError, match="bound"):
        bd.Newton(clip_norm=2.0)
    with pytest.raises(bd.InputError, match="steps"):
        bd.Newton(steps=2)
