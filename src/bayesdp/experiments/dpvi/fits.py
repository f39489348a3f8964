"""Logistic regression on S2's data, many times over: fits, test scores and their standard errors (D11).

    P(y = 1 | x) = sigmoid(m / sqrt(1 + π v/8)),   m = xᵀμ,   v = xᵀ Σ x

Repeat i has the random split `seed + i` for every method, so that methods are compared on the same test records: the
standard error of a difference leaves out what the splits have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesdp.data.dataset import Features
from bayesdp.errors import Array
from bayesdp.experiments.common.abalone_adult import Load, Split
from bayesdp.experiments.common.style import Row
from bayesdp.experiments.dpvi.recipe import DELTA
from bayesdp.learn.models import regressions
from bayesdp.learn.posterior.gaussian import Posterior
from bayesdp.learn.vi.elbo import Variant
from bayesdp.learn.vi.vi import VI

SCORES = ("accuracy", "log_likelihood")
"""Of the test records: the share that is right at 1/2, and the mean log of the probability of what is true."""

REFERENCE = VI(sampling_rate=0.1, steps=3000, clip_norm=None, noise_multiplier=0)
LARGE = VI(sampling_rate=0.02, steps=2000, clip_norm=None, noise_multiplier=0)
"""Neither clipped nor noised, the second for Adult: accuracies within 0.1 points of the exact optimum's."""


def splits(load: Load, repeats: int, seed: int, data_dir: str | Path | None) -> list[Split]:
    """One random split for each repeat."""
    return [load(seed + i, data_dir) for i in range(repeats)]


def suggested(split: Split, epsilon: float, variant: Variant = "aligned", **fields: Any) -> VI:
    """`VI.suggest` for these records: clip norm and rate from their number and shape alone."""
    given: dict[str, Any] = {"variant": variant, "adjacency": "replace-one", "delta": DELTA, **fields}
    return VI.suggest(regressions.logistic, split.train, epsilon=epsilon, **given)


def fitted(plan: VI, data: Sequence[Split], seed: int) -> Array:
    """The scores of a fit to each split, (repeats, 2)."""
    found = (plan.fit(regressions.logistic, split.train, seed=seed + i) for i, split in enumerate(data))
    return np.array([_scores(_probit(one, split.x_test), split) for one, split in zip(found, data, strict=True)])


def averaged(draws: Array, split: Split) -> Array:
    """The scores of a mean of predictions over draws (S, d) of the weights."""
    return _scores(np.mean(1 / (1 + np.exp(-split.x_test @ draws.T)), axis=1), split)


def summary(scores: Array, **against: Array) -> Row:
    """Means and standard errors of scores (repeats, 2), and of their differences from others on the same splits."""
    row: Row = {}
    for name, values in {"": scores, **{f"{other}_": scores - theirs for other, theirs in against.items()}}.items():
        for score, column in zip(SCORES, values.T, strict=True):
            row[name + score] = float(column.mean())
            row[f"{name}{score}_se"] = float(column.std(ddof=1) / math.sqrt(len(column)))
    return row


def _probit(posterior: Posterior, x: Features) -> Array:
    variance = np.sum((x @ posterior.cov) * x, axis=1)
    logit = (x @ posterior.mean) / np.sqrt(1 + math.pi * variance / 8)
    return np.asarray(1 / (1 + np.exp(-logit)), np.float64)


def _scores(chance: Array, split: Split) -> Array:
    true = np.where(split.y_test == 1, chance, 1 - chance)
    return np.array([np.mean(true > 0.5), np.mean(np.log(np.maximum(true, 1e-12)))])
