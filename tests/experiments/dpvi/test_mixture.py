"""A mixture of Gaussians under DP (J14), on few records and steps."""

import dataclasses

import numpy as np
from pictures import drawn
from s2_records import REFERENCE
from scipy.special import logsumexp
from scipy.stats import norm

from bayesdp.experiments.common.style import pick
from bayesdp.experiments.dpvi import mixture


def test_the_likelihood():
    rng = np.random.default_rng(0)
    weight = rng.dirichlet(np.ones(3), size=4)
    parts = {"weight": weight, "mu": rng.normal(size=(4, 3, 2)), "tau": rng.uniform(0.5, 2, size=(4, 3))}
    x = rng.normal(size=(5, 2))
    expected = [
        logsumexp(
            [
                np.log(weight[s, k] / 4) + norm.logpdf(one, parts["mu"][s, k], parts["tau"][s, k] ** 0.5).sum()
                for s in range(4)
                for k in range(3)
            ]
        )
        for one in x
    ]
    np.testing.assert_allclose(mixture.log_predictive(parts, x), expected)


def test_small():
    """Much noise must not carry the means away: S2's ε with a plan that VI.suggest makes stays finite."""
    size = mixture.Size(records=200, repeats=2, epsilons=(1.0,), steps=60, reference=REFERENCE)
    rows = mixture.compute(0, size=dataclasses.replace(size, suggested_steps=200))
    scores = [row["log_likelihood"] for row in rows if row["way"] != "component"]
    assert len(scores) == 7
    assert all(-20 < score < -3 for score in scores)
    assert {row["curve"] for row in pick(rows, way="component")} == {"truth", "DPVI", "DP-SGLD", "bd.VI"}
    assert len(drawn("dpvi-mixture", rows).axes) == 6
