"""Summaries of posteriors: exact where a parameter is a function of one number, by draws elsewhere, by name always."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bayesdp.errors import InputError
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.posterior.summary import Summary

MEAN, STD = np.array([0.5, -1.0, 0.2]), np.array([0.3, 0.5, 0.1])


def constrain(z):
    """A real pair, named last in the alphabet, and a positive number."""
    return {"w": z[:2], "noise": jnp.exp(z[2])}


MODEL = Probabilistic(
    dim=3,
    start=jnp.zeros(3),
    log_prior=lambda z: -jnp.sum(z**2),
    log_likelihood=lambda z, record: -jnp.sum((z - record) ** 2),
    constrain=constrain,
    labels=("w[0]", "w[1]", "noise"),
)


@pytest.fixture(scope="module")
def summary():
    return Summary(MODEL)


def test_a_gaussian_and_a_log_normal_are_exact(summary):
    found = summary.of_gaussian(MEAN, np.diag(STD**2), 0.8)
    assert found.names == ("w[0]", "w[1]", "noise")  # as the model has them, not in the order of the alphabet
    assert found.probability == 0.8
    low, high = stats.norm.ppf([0.1, 0.9], MEAN[:, None], STD[:, None]).T
    assert found.mean[:2] == pytest.approx(MEAN[:2], rel=1e-6)
    assert found.low == pytest.approx([*low[:2], math.exp(low[2])], rel=1e-5)
    assert found.high == pytest.approx([*high[:2], math.exp(high[2])], rel=1e-5)
    assert found.mean[2] == pytest.approx(math.exp(0.2 + 0.1**2 / 2), rel=1e-5)


def test_what_looks_at_several_numbers_is_drawn():
    ratio = Summary(MODEL, lambda values: {"sum": values["w"][0] + values["w"][1]}, lambda site, index: site.upper())
    cov = np.diag(STD**2)
    cov[0, 1] = cov[1, 0] = 0.1
    found = ratio.of_gaussian(MEAN, cov)
    exact = stats.norm(MEAN[:2].sum(), math.sqrt(cov[:2, :2].sum()))
    assert found.names == ("SUM",)
    assert found.mean[0] == pytest.approx(exact.mean(), abs=0.03)
    assert (found.low[0], found.high[0]) == pytest.approx(exact.ppf([0.05, 0.95]), abs=0.06)


def test_falling_functions_have_their_ends_in_order():
    falling = Summary(MODEL, lambda values: {"less": -values["noise"]})
    found = falling.of_gaussian(MEAN, np.diag(STD**2))
    assert found.low[0] < found.mean[0] < found.high[0] < 0


def test_a_further_draw_lies_in_the_interval_of_few_samples(summary):
    """The stated probability, over many sets of five samples."""
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(400):
        draws = MEAN + STD * rng.normal(size=(6, 3))
        found = summary.of_samples(draws[:5], 0.9)
        new = [*draws[5, :2], math.exp(draws[5, 2])]
        hits.append([low <= one <= high for low, one, high in zip(found.low, new, found.high, strict=True)])
    # 1,200 events: three standard errors are 0.026.
    assert np.mean(hits) == pytest.approx(0.9, abs=0.026)


def test_one_sample_has_no_interval_and_none_no_summary(summary):
    one = summary.of_samples(MEAN[None])
    assert one.mean == pytest.approx([0.5, -1.0, math.exp(0.2)], rel=1e-6)
    assert one.low == one.high == (None,) * 3
    with pytest.raises(InputError, match="at least one sample"):
        summary.of_samples(np.zeros((0, 3)))
