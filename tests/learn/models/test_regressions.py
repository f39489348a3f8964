"""The example models: fitted without privacy to synthetic data, they give back what the data were made with."""

import numpy as np
import optax
import pytest

from bayesdp.learn.models import regressions
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI

RECORDS, WEIGHTS = 400, np.array([0.8, -0.5, 0.3])


def features(rng, count=RECORDS):
    return np.column_stack([np.ones(count), rng.normal(size=(count, 2))]).astype(np.float32)


def chances(logits):
    return 1 / (1 + np.exp(-logits))


def logistic_data(rng):
    x = features(rng)
    return regressions.logistic, (x, rng.binomial(1, chances(x @ WEIGHTS)).astype(np.int32)), {"w": WEIGHTS}


def linear_data(rng):
    x = features(rng)
    y = (x @ WEIGHTS + 0.7 * rng.normal(size=RECORDS)).astype(np.float32)
    return regressions.linear, (x, y), {"w": WEIGHTS, "noise": 0.7}


def poisson_data(rng):
    x = features(rng)
    return regressions.poisson, (x, rng.poisson(np.exp(x @ WEIGHTS)).astype(np.int32)), {"w": WEIGHTS}


def negative_binomial_data(rng):
    x, size = features(rng, 2 * RECORDS), 2.0
    mean = np.exp(x @ WEIGHTS)
    y = rng.poisson(rng.gamma(size, mean / size)).astype(np.int32)
    return regressions.negative_binomial, (x, y), {"w": WEIGHTS, "concentration": size}


def hierarchical_data(rng):
    x, group, offsets = features(rng, 1000), rng.integers(5, size=1000).astype(np.int32), np.array([-2, -1, 0, 1, 2])
    y = rng.binomial(1, chances(offsets[group] + x[:, 1:] @ WEIGHTS[1:])).astype(np.int32)
    return regressions.hierarchical_logistic(5), (group, x[:, 1:], y), {"w": WEIGHTS[1:], "offsets": offsets}


def mixture_data(rng):
    centres, part = np.array([[-2.0, -2.0], [2.0, 1.0]]), rng.choice(2, p=[0.3, 0.7], size=RECORDS)
    x = (centres[part] + np.array([0.5, 1.0])[part, None] * rng.normal(size=(RECORDS, 2))).astype(np.float32)
    truth = {"mu": centres, "tau": np.array([0.25, 1.0]), "weights": np.array([0.3, 0.7])}
    return regressions.gaussian_mixture(2), (x,), truth


def derived(values):
    """What is compared that is not itself a site."""
    result = dict(values)
    if "u" in values and "spread" in values:
        result["offsets"] = values["centre"][:, None] + values["spread"][:, None] * values["u"]
    elif "u" in values:
        result["weights"] = values["u"] / values["u"].sum(axis=1, keepdims=True)
    return result


@pytest.mark.parametrize(
    "make", [logistic_data, linear_data, poisson_data, negative_binomial_data, hierarchical_data, mixture_data]
)
def test_a_model_gives_back_what_its_data_were_made_with(make):
    model, data, truth = make(np.random.default_rng(4))
    plan = PosteriorVI(
        sampling_rate=0.25,
        steps=250,
        optimizer=optax.adam(optax.cosine_decay_schedule(0.08, 250)),
        samples=200,
    )
    start = {"mu": np.array([[-1.0, -1.0], [1.0, 1.0]])} if make is mixture_data else None  # which is which
    found = derived(plan.fit(model, data, members=0, params=start, seed=0).sample())
    for name, value in truth.items():
        draws = found[name]
        wide = 4 * draws.std(axis=0) + 0.12  # mean-field scales are too small where parameters depend on each other
        assert (np.abs(draws.mean(axis=0) - value) < wide).all(), name
        assert draws.std(axis=0).max() < 0.5, name
