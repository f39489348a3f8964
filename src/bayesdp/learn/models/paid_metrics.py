"""Test metrics that may be published: counts over test records with noise from a declared share of the budget (H25).

    train --metrics-share 0.02    →    metrics.json: noisy counts, 0.02·ε-DP for the people tested on

Drawn once, when training is done; a run that is taken up again after that keeps what was drawn.
"""

from __future__ import annotations

import random
import secrets
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import storage
from bayesdp.guarantee import Adjacency
from bayesdp.mechanism.discrete_laplace import discrete_laplace
from bayesdp.report.paid import BOUND, GRID, PaidMetrics, sensitivity_of

FORMAT, VERSION = "bayesdp/metrics", 1


def counts_of_classes(classes: int, truth: npt.NDArray[Any], answers: npt.NDArray[Any]) -> list[int]:
    """Of each class how many were answered right, then how many wrong: every record is in one place."""
    right = answers == truth
    return [
        *np.bincount(truth[right], minlength=classes).tolist(),
        *np.bincount(truth[~right], minlength=classes).tolist(),
    ]


def sums_of_errors(truth: npt.NDArray[Any], answers: npt.NDArray[Any]) -> list[int]:
    """Records, squared errors and squared targets, each in whole steps of at most GRID a record."""
    parts = (answers.astype(np.float64) - truth, np.asarray(truth, np.float64))
    # What is no number counts as the largest error: the bound on a record's part holds whatever the model says.
    cut = [np.minimum(np.nan_to_num(np.abs(one), nan=BOUND, posinf=BOUND), BOUND) for one in parts]
    return [GRID * len(truth), *(int(np.floor(GRID * (one / BOUND) ** 2).sum()) for one in cut)]


def released(
    truth: npt.NDArray[Any],
    answers: npt.NDArray[Any],
    *,
    epsilon: float,
    adjacency: Adjacency,
    classes: tuple[str, ...],
    scale: float,
    seed: int | None = None,
) -> PaidMetrics:
    """The counts with noise; `answers` are class numbers, or numbers in units of `scale`. A seed is **not private**."""
    kind: Any = "classes" if classes else "errors"
    exact = counts_of_classes(len(classes), truth, answers) if classes else sums_of_errors(truth, answers)
    sensitivity = sensitivity_of(kind, adjacency)
    width = Fraction(sensitivity) / Fraction(epsilon)
    draw = secrets.randbelow if seed is None else random.Random(f"metrics {seed}").randrange
    noisy = tuple(one + discrete_laplace(width, draw) for one in exact)
    return PaidMetrics(kind=kind, epsilon=epsilon, sensitivity=sensitivity, counts=noisy, classes=classes, scale=scale)


def kept(path: Path) -> PaidMetrics | None:
    """What was drawn before; None where nothing was. Bad input: a damaged file."""
    if not path.is_file():
        return None
    return PaidMetrics.from_dict(storage.read_tagged(path, FORMAT, VERSION))


def keep(path: Path, metrics: PaidMetrics) -> None:
    """metrics.json: it may be published."""
    storage.write_tagged(path, FORMAT, VERSION, metrics.to_dict())
