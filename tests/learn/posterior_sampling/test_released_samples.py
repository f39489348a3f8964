"""Samples that a secret posterior released are read back with all that was said of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.models.regressions import logistic
from bayesdp.learn.posterior_sampling.released_samples import SavedSamples
from bayesdp.storage import manifest

X = np.random.default_rng(0).normal(size=(120, 2)).astype(np.float32)
DATA = (X, (X[:, 0] > 0).astype(np.int32))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    plan = bd.PosteriorVI(sampling_rate=0.5, steps=10, samples=4, coverage=0.5, failure=1e-3, extra_std=0.1)
    secret = plan.fit(logistic, DATA, holdout=tuple(part[:40] for part in DATA), members=30, seed=0)
    secret.sample(3)
    return secret, secret.save(tmp_path_factory.mktemp("samples"))


def test_the_samples_and_what_they_cost(saved):
    secret, folder = saved
    loaded = SavedSamples.load(folder, logistic, DATA)
    for name in ("draws", "mean", "cov"):
        assert_array_equal(getattr(loaded, name), getattr(secret, name))
    assert_array_equal(loaded.samples["w"], secret.samples["w"])
    assert_array_equal(loaded.predict((X,)), secret.predict((X,)))
    assert_array_equal(loaded.log_predictive(DATA), secret.log_predictive(DATA))
    assert loaded.guarantees == secret.guarantees
    assert_array_equal(loaded.losses, secret.instance.epsilon(secret.plan.delta))
    assert_array_equal(loaded.curve().epsilon, secret.curve().epsilon)
    assert loaded.curve().at(0.5) == secret.curve().at(0.5)
    assert loaded.summary() == secret.summary()


def test_nothing_more_can_be_drawn_and_a_missing_model_is_asked_for(saved):
    _, folder = saved
    loaded = SavedSamples.load(folder)
    assert loaded.labels == ("w[0]", "w[1]")
    with pytest.raises(AttributeError):
        loaded.sample(1)
    with pytest.raises(InputError, match="Load it with what it was fitted to"):
        loaded.predict((X,))
    with pytest.raises(InputError, match=r"format of .*plan\.json to be 'bayesdp/run'"):
        bd.Run.load(folder)


def test_a_damaged_file_is_refused(saved, tmp_path):
    _, folder = saved
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    np.savez(tmp_path / "samples.npz", draws=np.ones((2, 2)))
    with pytest.raises(InputError, match=r"samples\.npz' to have the checksum"):
        SavedSamples.load(tmp_path)
    manifest.seal(tmp_path, ["samples.npz"])
    with pytest.raises(InputError, match=r"samples\.npz to be well-formed.*labels"):
        SavedSamples.load(tmp_path)
