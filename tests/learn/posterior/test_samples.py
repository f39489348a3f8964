"""Samples of chains that were saved are loaded as they were."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import bayesdp as bd
from bayesdp import InputError
from bayesdp.learn.models.networks import classifier
from bayesdp.learn.models.regressions import logistic

X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
DATA = (X, (X[:, 0] > 0).astype(np.int32))
LOSS = classifier("logistic", 2)
NETWORK = bd.Network(LOSS, LOSS.model.init(jax.random.key(0), (3,)), precision=2.0)
WALK = {"step_size": 1e-3, "sampling_rate": 0.5, "steps": 12, "num_chains": 2, "engine": "rdp", "temperature": 0.5}


@pytest.mark.parametrize(("model", "inputs"), [(logistic, (X,)), (NETWORK, X)], ids=["NumPyro", "network"])
def test_loaded_samples_are_the_saved_ones(model, inputs, tmp_path):
    posterior = bd.SGLD(**WALK).fit(model, DATA, seed=0)
    loaded = bd.SampledPosterior.load(posterior.save(tmp_path), model, DATA)
    for name in ("draws", "weights", "mean", "cov", "std"):
        assert_array_equal(getattr(loaded, name), getattr(posterior, name))
    for name in ("temperature", "diverged", "notes", "labels", "guarantees", "chains"):
        assert getattr(loaded, name) == getattr(posterior, name)
    assert_array_equal(loaded.predict(inputs, seed=0), posterior.predict(inputs, seed=0))
    assert loaded.to_report() == posterior.to_report()
    plain = bd.load(tmp_path)
    assert isinstance(plain, bd.SampledPosterior)
    assert_array_equal(plain.interval(), posterior.interval())
    with pytest.raises(InputError, match=r"to hold a Gaussian.*It holds samples"):
        bd.Posterior.load(tmp_path)
