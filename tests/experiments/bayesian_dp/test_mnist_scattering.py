"""The MNIST experiment on a few digits, and the schedule it rests on."""

import numpy as np
import pytest
from pictures import drawn

from bayesdp.data import load
from bayesdp.experiments.bayesian_dp import mnist_scattering
from bayesdp.learn.loop.schedule import factors


@pytest.fixture(scope="module")
def rows():
    return mnist_scattering.compute(seeds=1, steps=40, chosen=load("digits"), most_witnesses=250)


def test_both_plans_keep_the_promise_to_everybody(rows):
    everybody = [row for row in rows if row["curve"] == "DP"]
    assert [row["plan"] for row in everybody] == ["accurate", "typical"]
    assert all(1.1 < row["epsilon"] <= mnist_scattering.EPSILON for row in everybody)
    assert all(row["accuracy"] > 0.5 for row in everybody)


def test_the_curve_rises_and_is_a_share_of_the_dp_value(rows):
    curve = [row for row in rows if row["curve"] == "BDP"]
    assert [row["coverage"] for row in curve] == list(mnist_scattering.SHARES)
    epsilon = [row["epsilon"] for row in curve]
    assert epsilon == sorted(epsilon)
    dp = next(row["epsilon"] for row in rows if row["plan"] == "typical" and row["curve"] == "DP")
    assert [row["ratio"] for row in curve] == pytest.approx([e / dp for e in epsilon])


def test_outsiders_come_from_records_that_tuning_did_not_see():
    digits = load("digits")
    reserve = set(
        np.random.default_rng(mnist_scattering.RESERVE).permutation(len(digits.x))[: len(digits.x) // 5].tolist()
    )
    rest, (x, y) = mnist_scattering.without_outsiders(digits, 200, seed=4)
    assert (len(rest.x), len(rest.y), len(x), len(y)) == (len(digits.x) - 200, len(digits.x) - 200, 200, 200)
    places = {one.tobytes(): place for place, one in enumerate(digits.x)}
    assert len(places) == len(digits.x)  # no two images are equal
    taken = {places[one.tobytes()] for one in x}
    assert taken <= reserve
    assert taken.isdisjoint(places[one.tobytes()] for one in rest.x)
    assert taken != {places[one.tobytes()] for one in mnist_scattering.without_outsiders(digits, 200, seed=5)[1][0]}


def test_it_can_be_drawn(rows):
    assert len(drawn("mnist-scattering", rows).axes) == 2


def test_the_typical_schedule_spends_noise_early_and_falls():
    noise = factors("noise_schedule", "typical", 300)
    assert len(noise) == 300
    assert (np.diff(noise) <= 0).all()
    assert noise[0] == pytest.approx(6 ** (15 / 16))
    assert (noise[120:] == 1).all()
