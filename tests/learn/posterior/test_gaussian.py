"""What a posterior answers: draws, predictions against quadrature, ArviZ, files."""

import json

import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.regressions import linear
from bayesdp.learn.posterior.gaussian import Posterior

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2)).astype(np.float32)
Y = RNG.integers(0, 2, 60).astype(np.int32)
MEAN = np.array([0.8, -0.5])
COV = np.array([[0.5, 0.3], [0.3, 0.4]])


def logistic(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def counts(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1))
    size = numpyro.sample("size", dist.HalfNormal(1))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Poisson(size * np.e ** (x * w)), obs=y)


def classes(x, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([2, 3]).to_event(2))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Categorical(logits=x @ w), obs=y)


def posterior_of(model, data, mean, cov):
    return Posterior(probabilistic(model, data), np.asarray(mean), np.asarray(cov), run=None)


@pytest.fixture(scope="module")
def posterior():
    return posterior_of(logistic, (X, Y), MEAN, COV)


@pytest.fixture(scope="module")
def fitted():
    plan = bd.VI(clip_norm=1.0, sampling_rate=0.5, steps=20, noise_multiplier=2.0, engine="rdp")
    return plan.fit(logistic, (X, Y), members=10, seed=0)


def exact(x):
    """E[sigmoid(xᵀw)] by quadrature along x."""
    mean, sd = x @ MEAN, np.sqrt(np.einsum("ni,ij,nj->n", x, COV, x))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return (1 / (1 + np.exp(-(mean[:, None] + sd[:, None] * nodes)))) @ weights / weights.sum()


def test_draws_have_the_posteriors_moments(posterior):
    draws = np.asarray(posterior.draw(20_000, seed=0))
    np.testing.assert_allclose(draws.mean(0), MEAN, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), COV, atol=0.02)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.diag(COV)))
    assert posterior.sample(7, seed=1)["w"].shape == (7, 2)
    assert not np.allclose(posterior.draw(3), posterior.draw(3))
    interval = posterior.interval(0.9)
    np.testing.assert_allclose(interval[0], stats.norm(0.8, 0.5**0.5).interval(0.9), rtol=1e-9)


def test_predictions_are_averages_over_the_posterior(posterior):
    truth = exact(X[:20].astype(float))
    sampled = posterior.predict(X[:20], draws=4000, seed=0)
    np.testing.assert_allclose(sampled, truth, atol=0.02)
    scaled = posterior.predict((X[:20],), method="probit-scaled")
    # MacKay's approximation is within a point or so; and D11's own formula, to rounding.
    np.testing.assert_allclose(scaled, truth, atol=0.02)
    m, v = X[:20] @ MEAN, np.einsum("ni,ij,nj->n", X[:20], COV, X[:20])
    np.testing.assert_allclose(scaled, 1 / (1 + np.exp(-m / np.sqrt(1 + np.pi * v / 8))), rtol=1e-4)
    logs = posterior.log_predictive((X[:20], Y[:20]), draws=4000, seed=0)
    np.testing.assert_allclose(np.exp(logs), np.where(Y[:20], truth, 1 - truth), atol=0.02)


def test_counts_and_classes_are_predicted_by_their_means():
    rates = posterior_of(counts, (X[:, 0], Y), [0.3, np.log(2.0)], 1e-12 * np.eye(2))
    # Sites come in alphabetical order: size, then w.
    assert rates.labels == ("size", "w")
    swapped = posterior_of(counts, (X[:, 0], Y), [np.log(2.0), 0.3], 1e-12 * np.eye(2))
    np.testing.assert_allclose(swapped.predict(X[:9, 0], draws=2), 2 * np.exp(0.3 * X[:9, 0]), rtol=1e-4)
    three = posterior_of(classes, (X, Y), np.zeros(6), 0.1 * np.eye(6))
    chances = three.predict(X[:9], draws=50, seed=0)
    assert chances.shape == (9, 3)
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
    with pytest.raises(InputError, match="yes/no outcomes"):
        three.predict(X[:9], method="probit-scaled")


def test_arviz_gets_the_samples(posterior):
    data = posterior.to_arviz(draws=30, seed=0)
    assert data.posterior["w"].shape == (1, 30, 2)
    np.testing.assert_allclose(data.posterior["w"].values[0], posterior.sample(30, seed=0)["w"])


def test_report_and_files(fitted, tmp_path):
    folder = fitted.save(tmp_path / "run", notes=["A note."])
    with np.load(folder / "posterior.npz") as arrays:
        np.testing.assert_array_equal(arrays["mean"], fitted.mean)
        np.testing.assert_array_equal(arrays["cov"], fitted.cov)
        assert list(arrays["labels"]) == ["w[0]", "w[1]"]
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["report"]["settings"]["kind"] == "private variational inference"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Private posterior" in page
    assert "A note." in page
    assert [g.notion for g in fitted.guarantees] == ["dp", "bdp", "per-instance"]


def test_bad_input(posterior):
    with pytest.raises(InputError, match="method"):
        posterior.predict(X, method="laplace")
    with pytest.raises(InputError, match="n"):
        posterior.sample(0)
    with pytest.raises(InputError, match="probability"):
        posterior.interval(1.0)
    pair = Posterior(probabilistic((bd.NormalPrior(np.zeros(2)), lambda w, r: r[0] @ w), (X, Y)), MEAN, COV, run=None)
    with pytest.raises(InputError, match="sample"):
        pair.predict(X)
    assert pair.sample(4).shape == (4, 2)

    def needs_y(x, y):
        logistic(x, y)

    with pytest.raises(InputError, match="y=None"):
        posterior_of(needs_y, (X, Y), MEAN, COV).predict(X)


# --- saved and loaded --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def widened(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2)).astype(np.float32)
    data = (x, (x[:, 0] > 0).astype(np.int32))
    plan = bd.VI(sampling_rate=0.5, steps=100, noise_multiplier=2.0, engine="rdp", noise_aware=True, variant="paper")
    posterior = plan.fit(logistic, data, seed=0)
    return posterior, data, posterior.save(tmp_path_factory.mktemp("widened"))


def test_a_loaded_posterior_is_the_saved_one(widened):
    posterior, data, folder = widened
    loaded = bd.Posterior.load(folder, logistic, data)
    for name in ("mean", "cov", "std"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(posterior, name))
    assert (loaded.labels, loaded.notes, loaded.guarantees) == (posterior.labels, posterior.notes, posterior.guarantees)
    np.testing.assert_array_equal(loaded.sample(3, seed=1)["w"], posterior.sample(3, seed=1)["w"])
    np.testing.assert_array_equal(loaded.predict((data[0],), seed=1), posterior.predict((data[0],), seed=1))
    assert loaded.to_report() == posterior.to_report()
    np.testing.assert_array_equal(loaded.variational.cov, posterior.variational.cov)
    assert loaded.variational.notes == posterior.variational.notes


def test_without_its_model_a_posterior_has_its_numbers_and_says_what_is_missing(widened):
    posterior, _, folder = widened
    loaded = bd.Posterior.load(folder)
    np.testing.assert_array_equal(loaded.interval(), posterior.interval())
    np.testing.assert_array_equal(loaded.draw(2, seed=0), posterior.draw(2, seed=0))
    assert loaded.guarantees == posterior.guarantees
    for ask in (lambda: loaded.sample(1), lambda: loaded.predict((np.ones((1, 2)),)), loaded.summary):
        with pytest.raises(InputError, match=r"Load it with what it was fitted to: load\(folder, model, data\)"):
            ask()


def test_another_model_or_kind_of_posterior_is_refused(widened):
    _, data, folder = widened
    with pytest.raises(InputError, match=r"to have the 2 parameters of the saved posterior, got 3: noise, w\[0\]"):
        bd.Posterior.load(folder, linear, data)
    with pytest.raises(InputError, match=r"to hold samples.*It holds a Gaussian: use bd\.load"):
        bd.SampledPosterior.load(folder)
