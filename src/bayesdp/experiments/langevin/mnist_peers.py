"""The other rows of S4's Table 1, redone for `sgld-mnist`: DP-SGD at ε = 0.5 and 8, Confident-GNMax at 1.97.

DP-SGD has the rate, steps and starting point of the sampler beside it, Adam, and the clip norm and learning rate that
`bayesdp train` takes by itself. PATE's teachers and student are ridge regressions on scattering features; it asks
about the images, not the labels, of some training records.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import optax

from bayesdp.data.dataset import Dataset
from bayesdp.experiments.baselines.pate import PATE, Predict
from bayesdp.jobs import defaults
from bayesdp.learn.sgd import SGD
from bayesdp.mechanism.bookkeeping import ModelLoss

TEACHERS, QUERIES, ANSWERS = 250, 1000, 500
"""Papernot et al. (2018) have 250 teachers for MNIST; at most half of the queries are answered."""

THRESHOLD = 0.8
"""Of the teachers, who must agree."""

CHECK_OVER_LABEL = 4.0
"""Noise of the checks over that of the labels: 200 to 40 to 150 to 40 in Papernot et al."""


def dp_sgd(
    epsilon: float, delta: float, model: str, features: str, sampling_rate: float, steps: int, images: Dataset
) -> SGD:
    """The plan at that ε."""
    rate = defaults.learning_rate(model, "adam", images.x[0].size)
    plan = SGD(
        sampling_rate=sampling_rate,
        steps=steps,
        clip_norm=defaults.clip_norm(len(images.x), features if features == "scattering" else None),
        optimizer=optax.adam(rate),
        delta=delta,
    )
    return plan.calibrate(epsilon).one_interval()


def trained(plan: SGD, loss: ModelLoss, start: Any, images: Dataset, seed: int) -> tuple[float, float]:
    """The ε of the run, and the trained model's share of test records that are right."""
    run = plan.fit(loss, start, (images.x, images.y), members=0, seed=seed)
    outputs = np.asarray(jax.jit(loss.model.apply)(run.params, images.x_test))
    return run.guarantees[0].epsilon, float(np.mean(outputs.argmax(1) == images.y_test))


def taught(epsilon: float, delta: float, images: Dataset, seed: int) -> tuple[float, float]:
    """The ε of Confident-GNMax, and the student's share of test records that are right."""
    teachers, queries = (min(TEACHERS, len(images.x) // 20), min(QUERIES, len(images.x) // 5))
    plan = PATE(
        teachers=teachers,
        classes=len(images.classes),
        queries=queries,
        answers=max(1, queries * ANSWERS // QUERIES),
        threshold=THRESHOLD * teachers,
        check_noise=CHECK_OVER_LABEL,
        label_noise=1.0,
        delta=delta,
    ).calibrate(epsilon)
    x, x_test = (part.reshape(len(part), -1) for part in (images.x, images.x_test))
    found = plan.fit(
        (x[queries:], images.y[queries:]), x[:queries], learn=_ridge(plan.classes), student=_ridge(plan.classes),
        seed=seed,
    )  # fmt: skip
    return plan.guarantee().epsilon, float(np.mean(found.student(x_test) == images.y_test))


def _ridge(classes: int) -> Any:
    """Learners that regress on 0/1 targets, by the smaller of the two systems of equations."""

    def learn(inputs: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Predict:
        if not len(inputs):
            return lambda asked: np.zeros(len(asked), np.int64)
        centre = inputs.mean(axis=0)
        moved, targets = inputs - centre, np.eye(classes)[labels]
        weights = moved.T @ np.linalg.solve(moved @ moved.T + np.eye(len(moved)), targets - targets.mean(axis=0))
        return lambda asked: np.argmax((asked - centre) @ weights + targets.mean(axis=0), axis=1)

    return learn
