"""Coverage under DP noise, in small: one cell."""

import numpy as np
import pytest
from pictures import drawn

from bayesdp.experiments.dpvi import coverage
from bayesdp.experiments.dpvi.coverage import Cell


@pytest.fixture(scope="module")
def rows():
    return coverage.compute(1, data_sets=40, cells=[Cell("logistic", "categories", 1000, 5)])


def test_every_parameter_has_its_own_share(rows):
    assert [row["parameter"] for row in rows] == ["w[0]", "w[2] - w[1]", "w[3] - w[1]", "w[4] - w[1]"]
    assert np.mean([row["coverage"] for row in rows]) >= 0.8
    assert all(0.9 < row["width"] < 4 for row in rows)


@pytest.mark.parametrize("family", ["logistic", "linear", "poisson"])
def test_a_simulated_data_set_follows_its_model(family):
    one = coverage.simulated(np.random.default_rng(0), Cell(family, "rare", 50_000, 3))
    w = one.truth[-4:]
    expected = {"logistic": lambda e: 1 / (1 + np.exp(-e)), "linear": lambda e: e, "poisson": np.exp}[family](one.x @ w)
    score = (one.y - expected)[:, None] * one.x
    # E (y - mean) x = 0 at the truth, to five standard errors
    assert (np.abs(score.mean(axis=0)) < 5 * score.std(axis=0) / np.sqrt(50_000)).all()


def test_the_picture_has_a_line_for_each_cell(rows):
    figure = drawn("dpvi-coverage", rows)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["logistic, categories, N = 1,000, d = 5"]
