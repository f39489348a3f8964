"""Guides and random projections at equal ε, on made-up records and a few steps."""

import numpy as np
from pictures import drawn
from s2_records import REFERENCE, made_up

from bayesdp.experiments.common.style import pick
from bayesdp.experiments.dpvi import covariance


def test_projections_keep_the_ones_and_are_linear():
    split = made_up(0)
    small = covariance.projected(split, 2, seed=4)
    assert small.x.shape == (400, 3)
    assert (small.x[:, 0] == 1).all()
    directions = np.linalg.lstsq(split.x[:, 1:], small.x[:, 1:], rcond=None)[0]
    np.testing.assert_allclose(split.x_test[:, 1:] @ directions, small.x_test[:, 1:], atol=1e-5)
    assert (small.y == split.y).all()


def test_small():
    small = {"repeats": 2, "variants": ("aligned",), "reference": REFERENCE}
    problem = covariance.Problem("made up", made_up, (2,), (1.0,), **small)
    rows = covariance.compute(0, problems=[problem])
    assert [row["features"] for row in rows] == [3] * 3 + [2] * 2
    assert len({row["curve"] for row in pick(rows, way="guide")}) == 2
    assert len(drawn("dpvi-covariance", rows).axes) == 3
