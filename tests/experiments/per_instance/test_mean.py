"""`instance-mean` (J18, ERR 19) on a few digits."""

import pytest
from pictures import drawn

from bayesdp.data import load as load_data
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.per_instance import mean
from bayesdp.experiments.per_instance.mean import BASELINE, DRAWN, NOBODY, OWN, PRINTED, SIZES


@pytest.fixture(scope="module")
def rows():
    return mean.compute(size=mean.Size(model="logistic", batches=(128,), points=2, pool=64, chosen=load_data("digits")))


def test_theorem_3_6_charges_a_record_that_does_nothing(rows):
    """With the sum rule a zero gradient changes nothing: H1 says 0, the printed bound is above the worst case."""
    here = {"rule": "sum", "stage": "final", "order": 8, "who": NOBODY}
    (printed,) = pick(rows, curve=PRINTED, direction="remove", **here)
    assert pick(rows, curve=DRAWN, **here)[0]["divergence"] == 0
    assert printed["relative"] > 1


def test_h1_is_below_theorem_3_6_for_the_mean_rule(rows):
    for order in (2, 4, 8):
        for curve in (DRAWN, OWN):
            (ours,) = pick(rows, rule="mean", batch=128, stage="final", curve=curve, order=order, who="half")
            theirs = pick(rows, rule="mean", batch=128, stage="final", curve=PRINTED, order=order, who="half")
            assert all(ours["divergence"] < row["divergence"] for row in theirs)


def test_sound_lines_of_the_mean_rule_are_above_the_estimate(rows):
    for row in pick(rows, rule="mean", curve=SIZES):
        where = {name: row[name] for name in ("batch", "stage", "order", "who")}
        (drawn,) = pick(rows, rule="mean", curve=DRAWN, **where)
        assert row["divergence"] >= drawn["divergence"] * (1 - 1e-9)


def test_the_sum_rule_has_the_clip_norm_as_its_largest(rows):
    for row in pick(rows, rule="sum", curve=SIZES):
        assert row["relative"] <= 1 + 1e-5
    assert {row["relative"] for row in pick(rows, curve=BASELINE)} == {1.0}


def test_it_draws(rows):
    figure = drawn("instance-mean", rows)
    assert len(figure.axes) == 4
    assert all(len(axes.lines) >= 5 for axes in figure.axes)
