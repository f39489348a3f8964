"""Releases to test with: a plan of few steps, its true ε, and everything else made up."""

from __future__ import annotations

from typing import Any

from bayesdp.accountant import WorstCaseAccountant
from bayesdp.publish.release import Release
from bayesdp.report.paid import PaidMetrics
from bayesdp.version import __version__

NOISE, RATE, STEPS, DELTA = 4.0, 0.5, 6, 1e-4
PAID = PaidMetrics(kind="classes", epsilon=0.05, sensitivity=1, counts=(413, 390, 95, 102), classes=("no", "yes"))


def release(*, engine: str = "rdp", adjacency: str = "add-remove", **changes: Any) -> Release:
    accountant = WorstCaseAccountant(engine=engine, adjacency=adjacency)
    accountant.step(noise_multiplier=NOISE, sampling_rate=RATE, steps=STEPS)
    values: dict[str, Any] = {
        "title": "Private training of a logistic regression on people",
        "created": "2026-03-01",
        "generator": f"bayesdp {__version__}",
        "learner": "private SGD",
        "model": "logistic regression",
        "inputs": ("age", "hours"),
        "answers": ("no", "yes"),
        "released": "the trained model",
        "optimizer": "Adam, learning rate 0.03",
        "update_rule": "sum over the batch, divided by its expected size",
        "facts": {},
        "dp": accountant.guarantee(DELTA),
        "engine": engine,
        "chains": 1,
        "noise": ((NOISE, STEPS),),
        "rates": ((RATE, STEPS),),
        "clip_norms": ((1.5, STEPS),),
        "num_records": None,
        "filtered": False,
        "declared": ("The names of the columns are public.",),
    }
    return Release(**(values | changes))
