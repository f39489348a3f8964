"""A small real problem: scikit-learn's digits, a linear model, a plan that runs in a second or two."""

import dataclasses

import jax
import numpy as np
import optax
import pytest

from bayesdp.learn import SGD
from bayesdp.learn.models.networks import classifier


@dataclasses.dataclass(frozen=True)
class Problem:
    loss: object
    params: object
    data: tuple
    holdout: tuple
    test: tuple

    def accuracy(self, params):
        x, y = self.test
        return float((np.asarray(self.loss.model.apply(params, x)).argmax(1) == y).mean())


@pytest.fixture(scope="session")
def digits():
    from sklearn.datasets import load_digits

    raw = load_digits()
    x, y = (raw.data / 16).astype(np.float32), raw.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(x))
    train, holdout, test = order[:1000], order[1000:1400], order[1400:]
    loss = classifier("logistic", 10)
    params = loss.model.init(jax.random.key(0), (64,))
    return Problem(loss, params, (x[train], y[train]), (x[holdout], y[holdout]), (x[test], y[test]))


@pytest.fixture
def plan():
    return SGD(
        clip_norm=1.0,
        sampling_rate=0.1,
        steps=60,
        optimizer=optax.sgd(1.0),
        noise_multiplier=2.0,
        engine="rdp",
        report_every=20,
    )
