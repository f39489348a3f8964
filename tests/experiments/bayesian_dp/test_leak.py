"""`bdp-leak` (J7) in small: its rows and its picture."""

from __future__ import annotations

from pictures import drawn

from bayesdp.experiments.bayesian_dp import leak
from bayesdp.experiments.bayesian_dp.training import Problem


def test_rows_and_picture(problem: Problem) -> None:
    fixed = {"dataset": "MNIST", "model": "recipe"}
    found = leak._examined(fixed, problem, problem.params, 1.0, 0, batches=4, size=50)
    assert {row["way"] for row in found} == {"paper", "sound", "histogram"}
    assert all(0 <= row["value"] <= 1 for row in found if row["way"] != "histogram")
    more = [{**row, "dataset": "CIFAR-10"} for row in found] + [{**row, "model": "by heart"} for row in found]
    figure = drawn("bdp-leak", [*found, *more])
    assert len(figure.axes) == 6
