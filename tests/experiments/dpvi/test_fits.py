"""Fits and their scores: those of the posterior, with standard errors of paired differences."""

import math

import numpy as np
import pytest
from s2_records import REFERENCE, made_up

from bayesdp.experiments.dpvi import fits


def test_standard_errors_are_of_paired_differences():
    scores = np.array([[0.7, -0.5], [0.8, -0.4], [0.9, -0.6]])
    row = fits.summary(scores, gap=scores - 0.1)
    assert row["accuracy_se"] == pytest.approx(0.1 / math.sqrt(3))
    assert row["gap_log_likelihood"] == pytest.approx(0.1)
    assert row["gap_accuracy_se"] == pytest.approx(0, abs=1e-12)


def test_scores_are_those_of_the_posterior():
    split = made_up(1)
    from bayesdp.learn.models.regressions import logistic

    found = REFERENCE.fit(logistic, split.train, seed=3)
    chance = found.predict(split.x_test, method="probit-scaled")
    accuracy, likelihood = fits.fitted(REFERENCE, [split], 3)[0]
    assert accuracy == np.mean((chance > 0.5) == split.y_test)
    true = np.where(split.y_test == 1, chance, 1 - chance)
    assert likelihood == pytest.approx(np.log(true).mean(), rel=1e-4)
    draws = np.tile(found.mean, (5, 1))
    assert fits.averaged(draws, split)[0] == np.mean((split.x_test @ found.mean > 0) == split.y_test)
