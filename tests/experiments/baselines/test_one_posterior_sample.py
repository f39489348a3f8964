"""One posterior sample: the promise against enumerated posteriors, and that it samples."""

import dataclasses
import math

import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.experiments.baselines.one_posterior_sample import OnePosteriorSample
from bayesdp.learn.models.regressions import logistic

PLAN = OnePosteriorSample(epsilon=0.5, likelihood_range=2.0, chain=200)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2)).astype(np.float32)
    y = (rng.uniform(size=500) < 1 / (1 + np.exp(-x @ [1.5, -1.0]))).astype(np.int32)
    return x, y


def posterior(rows, labels, plan):
    """The tempered posterior of a logistic model with clipped likelihood on a lattice of weights."""
    grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 41)] * 2), axis=-1).reshape(-1, 2)
    signs = 2 * np.asarray(labels) - 1
    likelihood = -np.logaddexp(0, -(grid @ np.asarray(rows).T) * signs)
    log = -0.5 * (grid**2).sum(axis=1)
    log += plan.power * np.clip(likelihood, plan.top - plan.likelihood_range, plan.top).sum(axis=1)
    weights = np.exp(log - log.max())
    return np.log(weights / weights.sum())


@pytest.mark.parametrize(("adjacency", "changed"), [("add-remove", "removed"), ("replace-one", "replaced")])
def test_no_enumerated_posterior_gives_away_more(adjacency, changed):
    plan = dataclasses.replace(PLAN, adjacency=adjacency)
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(30):
        rows, labels = 4 * rng.normal(size=(5, 2)), rng.integers(0, 2, 5)
        full = posterior(rows, labels, plan)
        if changed == "removed":
            other = posterior(rows[1:], labels[1:], plan)
        else:  # exchanged for its opposite, the worst there is
            other = posterior(rows, np.r_[1 - labels[0], labels[1:]], plan)
        worst = max(worst, np.abs(full - other).max())
    assert 0.5 * plan.guarantee().epsilon < worst <= plan.guarantee().epsilon


def test_the_power_is_what_the_range_allows():
    assert PLAN.power == 0.25
    assert dataclasses.replace(PLAN, adjacency="replace-one").power == 0.125
    mild = dataclasses.replace(PLAN, epsilon=100.0)
    assert mild.power == 1.0
    assert mild.guarantee().epsilon == 2.0  # the posterior itself, which costs less than asked
    # Wang et al.: |l| ≤ B, a range of 2B, costs 4B when a record is replaced.
    assert dataclasses.replace(mild, adjacency="replace-one").guarantee().epsilon == 2 * 2.0


def test_the_guarantee_says_what_is_not_proved():
    found = PLAN.guarantee()
    assert (found.notion, found.delta, found.strength) == ("dp", 0.0, "strong")
    assert any("taken to have reached its target" in words for words in found.caveats)


def test_a_draw_is_of_the_tempered_posterior_predicts_and_reports(data, tmp_path):
    plan = OnePosteriorSample(epsilon=5.0, likelihood_range=20.0, chain=400)
    found = plan.fit(logistic, data, seed=0)
    lattice = np.stack(np.meshgrid(*[np.linspace(-3, 3, 41)] * 2), axis=-1).reshape(-1, 2)
    law = np.exp(posterior(*data, plan))
    mean = law @ lattice
    std = np.sqrt(law @ (lattice - mean) ** 2)
    assert (np.abs((found.draw - mean) / std) < 4).all()
    assert np.mean((found.predict(data[0]) > 0.5) == data[1]) > 0.7
    np.testing.assert_allclose(found.values["w"], found.draw, rtol=1e-6)
    page = found.report(tmp_path / "ops.html", metrics={"accuracy": 0.8}).read_text(encoding="utf-8")
    assert "one posterior sample" in page


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"likelihood_range": 0}, "likelihood_range"),
        ({"top": math.inf}, "top"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"chain": 1}, "chain"),
        ({"delta": 0}, "delta"),
    ],
)
def test_bad_plans_are_refused(values, name):
    with pytest.raises(InputError, match=f"Expected {name} "):
        dataclasses.replace(PLAN, **values)
