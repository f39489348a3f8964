"""Nothing but samples leaves a secret posterior: not through its text, attributes, files, copies or a pickle."""

import copy
import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bayesdp.accountant.gaussian_release import two_sided_cost
from bayesdp.accountant.release_account import ORDERS, ReleaseAccount
from bayesdp.accountant.repeated import RepeatedRelease, RepeatedWitnesses
from bayesdp.errors import InputError
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
from bayesdp.learn.posterior_sampling.secret_posterior import SecretPosterior, sampler

MEAN = np.array([0.8765432101, -1.2345678901])
SPREAD = np.array([0.0123456789, 0.0345678901])


def open_posterior(samples=6, spread=SPREAD):
    model = Probabilistic(
        dim=2,
        start=jnp.zeros(2),
        log_prior=lambda z: -jnp.sum(z**2) / 2,
        log_likelihood=lambda z, record: -((record - z[0]) ** 2) / 2,
        constrain=lambda z: {"w": z, "scale": jnp.exp(z[1])},
        labels=("w[0]", "w[1]"),
    )
    plan = PosteriorVI(sampling_rate=0.5, steps=10, optimizer=optax.sgd(0.1), samples=samples)
    means = MEAN + 0.01 * np.random.default_rng(0).normal(size=(300, 2))
    costs = two_sided_cost(MEAN, SPREAD, means, np.tile(SPREAD, (300, 1)), ORDERS)
    sides = {name: RepeatedRelease(costs, ORDERS, planned=samples) for name in ("absent", "present")}
    account = ReleaseAccount(
        samples=samples,
        delta=1e-5,
        worst=np.full(len(ORDERS), math.inf),
        population=RepeatedWitnesses(sides, coverage=0.9, failure=1e-6),
        watched=None,
    )
    return SecretPosterior(plan, model, sampler(MEAN, spread, jax.random.key(0)), account, records=100, seeded=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    posterior = open_posterior()
    posterior.sample(4)
    return posterior, posterior.save(tmp_path_factory.mktemp("secret"))


def test_samples_are_charged_kept_and_refused_when_the_account_is_empty():
    posterior = open_posterior()
    with pytest.raises(InputError, match="Expected at least 1 sample"):
        posterior.mean  # noqa: B018 - nothing has been drawn
    first = posterior.sample(2)
    assert first["w"].shape == (2, 2)
    np.testing.assert_allclose(first["scale"], np.exp(first["w"][:, 1]))
    assert posterior.remaining == 4
    spent = posterior.guarantees[1].epsilon
    rest = posterior.sample()  # all that remain
    assert rest["w"].shape == (4, 2)
    assert len(np.unique(posterior.draws)) == 12  # all fresh
    np.testing.assert_array_equal(posterior.samples["w"], np.vstack([first["w"], rest["w"]]))
    np.testing.assert_allclose(posterior.mean, posterior.draws.mean(axis=0))
    np.testing.assert_allclose(posterior.cov, np.cov(posterior.draws.T))
    assert posterior.guarantees[1].epsilon > spent
    for more in (1, None):
        with pytest.raises(InputError, match="to be at most 0"):
            posterior.sample(more)
    assert posterior.draws.shape == (6, 2)


def test_a_sample_is_charged_before_it_is_drawn():
    posterior = open_posterior()

    def crash(n):
        raise RuntimeError("power cut")

    posterior._draw = crash
    with pytest.raises(RuntimeError):
        posterior.sample(2)
    assert posterior.remaining == 4  # over-counted, never under-counted


@pytest.mark.parametrize("spread", [SPREAD, np.array([[0.04, 0.03], [0.03, 0.09]])])
def test_samples_have_the_posterior_law(spread):
    draws = sampler(MEAN, spread, jax.random.key(3))(40_000)
    np.testing.assert_allclose(draws.mean(axis=0), MEAN, atol=5 * 0.3 / 200)
    np.testing.assert_allclose(np.cov(draws.T), np.diag(spread) if spread.ndim == 1 else spread, atol=2e-3)


def test_the_last_digits_of_a_sample_do_not_say_which_mean_it_was():
    """Noise is float32: of an unrounded sum, (draw − mean)/scale would be one for the true mean and for no other."""
    draws = sampler(MEAN, SPREAD, jax.random.key(3))(1000)
    np.testing.assert_array_equal(draws, draws.astype(np.float32))

    def hits(mean):
        noise = (draws - mean) / np.sqrt(SPREAD)
        return np.isclose(noise, noise.astype(np.float32), rtol=1e-12, atol=0).mean()

    assert abs(hits(MEAN) - hits(MEAN + 1e-3)) < 0.02


def secrets(folder=None):
    """The parameters as they might be written: bytes of both precisions, and digits."""
    numbers = [*MEAN, *SPREAD, *np.sqrt(SPREAD), *np.log(np.sqrt(SPREAD))]
    raw = [np.array(x, kind).tobytes() for x in numbers for kind in (np.float64, np.float32)]
    return raw + [f"{x:.6g}".encode() for x in numbers]


def test_text_and_attributes_do_not_show_the_parameters(saved):
    posterior, _ = saved
    assert repr(posterior) == str(posterior) == "<secret posterior of 2 parameters: 4 of 6 samples drawn>"
    public = [name for name in dir(posterior) if not name.startswith("_")]
    assert not {"theta", "params", "factor", "spread", "std", "interval", "draw"} & set(public)

    def reachable(value, depth=0):
        yield value
        if depth < 6 and not callable(value):
            inside = value.values() if isinstance(value, dict) else getattr(value, "__dict__", {}).values()
            for part in [*inside, *(value if isinstance(value, list | tuple) else [])]:
                yield from reachable(part, depth + 1)

    arrays = [np.asarray(v).ravel() for v in reachable(vars(posterior)) if isinstance(v, np.ndarray | jax.Array)]
    numbers = np.concatenate([a.astype(float) for a in arrays if a.dtype.kind == "f"])
    for secret in [*MEAN, *SPREAD, *np.sqrt(SPREAD)]:
        assert not np.isclose(numbers, secret, rtol=1e-6, atol=0).any()


def test_files_do_not_hold_the_parameters(saved):
    _, folder = saved
    names = {path.name for path in folder.iterdir()}
    assert {"plan.json", "samples.npz", "accountants.json", "report.json", "report.html"} <= names
    for path in folder.iterdir():
        content = path.read_bytes()
        if path.suffix == ".npz":
            with np.load(path) as archive:
                content += b"".join(archive[name].tobytes() for name in archive.files)
        assert not [secret for secret in secrets() if secret in content], path.name
    with np.load(folder / "samples.npz") as archive:
        assert archive["draws"].shape == (4, 2)
        assert archive["labels"].tolist() == ["w[0]", "w[1]"]
    assert json.loads((folder / "plan.json").read_text())["drawn"] == 4
    page = (folder / "report.html").read_text()
    assert "samples of a secret posterior" in page.lower()
    assert "not private" in page  # a seed was given


def test_it_cannot_be_copied_or_pickled(saved):
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="an account of its own"):
            way(saved[0])


def test_what_was_drawn_cannot_be_changed_from_outside(saved):
    posterior, _ = saved
    posterior.draws[:] = 0
    assert (posterior.draws != 0).all()


def test_log_predictive_averages_over_the_samples_drawn(saved):
    posterior, _ = saved
    data = np.array([0.5, 1.0])
    expected = np.log(np.exp(-((data[:, None] - posterior.draws[:, 0]) ** 2) / 2).mean(axis=1))
    np.testing.assert_allclose(posterior.log_predictive(data), expected, rtol=1e-6)
