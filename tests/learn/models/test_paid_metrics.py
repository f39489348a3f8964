"""Counts over test records: how far one record moves them, by trying; and that they are drawn once."""

import numpy as np
import pytest

from bayesdp.learn.models.paid_metrics import counts_of_classes, keep, kept, released, sums_of_errors
from bayesdp.report.paid import sensitivity_of


def moved(one, other):
    return int(np.abs(np.array(one) - np.array(other)).sum())


def test_no_record_moves_the_counts_of_classes_farther_than_stated():
    rng = np.random.default_rng(0)
    truth, answers = rng.integers(0, 3, 40), rng.integers(0, 3, 40)
    whole = counts_of_classes(3, truth, answers)
    assert sum(whole) == 40
    assert sum(whole[:3]) == (truth == answers).sum()
    for at in range(40):
        without = counts_of_classes(3, np.delete(truth, at), np.delete(answers, at))
        assert moved(whole, without) <= sensitivity_of("classes", "add-remove")
        for other in range(9):
            exchanged = [column.copy() for column in (truth, answers)]
            exchanged[0][at], exchanged[1][at] = divmod(other, 3)
            assert moved(whole, counts_of_classes(3, *exchanged)) <= sensitivity_of("classes", "replace-one")


@pytest.mark.parametrize("worst", [0.0, 2.9, 1e30, np.inf, np.nan, -1e9])
def test_no_record_moves_the_sums_of_errors_farther_than_stated(worst):
    rng = np.random.default_rng(0)
    truth, answers = rng.normal(size=30), rng.normal(size=30)
    whole = sums_of_errors(truth, answers)
    for other in (0.0, 50.0, -2.0):
        joined = sums_of_errors(np.append(truth, other), np.append(answers, worst))
        assert moved(whole, joined) <= sensitivity_of("errors", "add-remove")
        truth_2, answers_2 = truth.copy(), answers.copy()
        truth_2[3], answers_2[3] = other, worst
        assert moved(whole, sums_of_errors(truth_2, answers_2)) <= sensitivity_of("errors", "replace-one")


def test_what_is_released_is_near_the_truth_and_differs_from_run_to_run(tmp_path):
    truth, answers = np.repeat([0, 1], 500), np.repeat([0, 1], [600, 400])
    plan = {"epsilon": 0.5, "adjacency": "add-remove", "classes": ("no", "yes"), "scale": 1.0}
    found = [released(truth, answers, **plan) for _ in range(5)]
    exact = np.array([500, 400, 0, 100])
    assert all(np.abs(np.array(one.counts) - exact).max() < 100 for one in found)  # 50 times the scale
    assert len({one.counts for one in found}) > 1
    assert released(truth, answers, **plan, seed=3) == released(truth, answers, **plan, seed=3)
    keep(tmp_path / "metrics.json", found[0])
    assert kept(tmp_path / "metrics.json") == found[0]
    assert kept(tmp_path / "none.json") is None


def test_numbers_are_released_in_units_of_the_scale():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=20_000)
    said = truth + 0.5 * rng.normal(size=20_000)
    one = released(truth, said, epsilon=1.0, adjacency="add-remove", classes=(), scale=10.0)
    assert one.metrics()["test RMSE, with noise"] == pytest.approx(5, rel=0.1)
    assert one.metrics()["test R², with noise"] == pytest.approx(0.75, abs=0.05)
