"""S1 Fig. 7 and Table I, SPEC J6: a linear layer on fixed features of CIFAR-10, σ = 0.7, batches of 512, no clipping.

The paper takes 4096 features from VGG-16, pre-trained on ImageNet. Here they are the 5184 scattering coefficients of
the image in grey, in which nobody's photographs have a part; accuracy is lower. The text claims C = 1, the public code
has clipping commented out (ERR 12): this follows the code. With noise of a fixed size and no clipping, the scale of the
features decides how much is learnt and how much it costs; the paper does not state it. Here each feature vector has
the norm R = 30. Then |∇loss| = |p − y|·√(R² + 1) ≤ √(2(R² + 1)) for every image that there can be, and ordinary DP
holds although nothing is clipped.

By default the records are those of one of the five training batches, and the steps as many as the paper's (293); `full`
takes all records that are there and three epochs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
import optax

from bayesdp import data
from bayesdp.data.dataset import Features
from bayesdp.data.scattering import scattering
from bayesdp.experiments import s1_training
from bayesdp.experiments.s1_recipe import Recipe
from bayesdp.experiments.s1_training import Problem
from bayesdp.experiments.style import Row
from bayesdp.learn.models import cross_entropy
from bayesdp.mechanism import Dense, ModelLoss, Sequential, use_host_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "bdp-cifar10"
TITLE = "CIFAR-10, a linear layer by S1's recipe: as printed (unsound: ERR 4, 9, 11; the product also ERR 1) and sound"
SIZE = (12.0, 5.6)
OPTIONS = ("full", "data_dir")

SIGMA, BATCH, STEPS, NORM = 0.7, 512, 293, 30.0
LAMBDAS = (32,)
RECORDS = 9500
RECORD_CLIP = 30.0
"""Where the run "per record" clips: most gradients are shorter, none is longer than 42.5."""

GREY = np.array([0.299, 0.587, 0.114], np.float32)
"""Brightness of red, green and blue (ITU-R BT.601)."""


def compute(
    seed: int = 0,
    *,
    full: bool = False,
    data_dir: str | Path | None = None,
    witnesses: int = 500,
    most: int | None = None,
    batch: int = BATCH,
    steps: int | None = None,
) -> list[Row]:
    """Four runs, see `s1_training`. The last four are for smaller sizes still."""
    use_host_cores()
    chosen = problem(seed, full=full, data_dir=data_dir, witnesses=witnesses, most=most)
    plan = recipe(len(chosen.data[0]), full=full, batch=batch, steps=steps)
    return s1_training.compute(chosen, plan, lams=LAMBDAS, record_clip=RECORD_CLIP, seed=seed)


def problem(
    seed: int, *, full: bool = False, data_dir: str | Path | None = None, witnesses: int = 500, most: int | None = None
) -> Problem:
    """Features of norm R, `witnesses` of the training records kept outside; `most` leaves that many to train on."""
    chosen = data.load("cifar10", data_dir=data_dir)
    rest, outsiders = chosen.split(witnesses, seed)
    most = most if most is not None or full else RECORDS
    if most is not None:
        rest = rest.subset(min(most, len(rest.x)), seed)
    x = _features(rest.x)
    loss = ModelLoss(Sequential((Dense(10),)), cross_entropy)
    start = loss.model.init(jax.random.key(seed), x.shape[1:])
    return Problem(
        loss=loss,
        params=jax.tree.map(np.zeros_like, start),
        data=(x, rest.y),
        outsiders=(_features(outsiders[0]), outsiders[1]),
        test=(_features(chosen.x_test), chosen.y_test),
        members=witnesses,
        largest=math.sqrt(2 * (NORM**2 + 1)),
    )


def recipe(records: int, *, full: bool = False, batch: int = BATCH, steps: int | None = None) -> Recipe:
    """The paper's numbers for that many records."""
    return Recipe(
        sigma=SIGMA,
        clip_norm=None,
        sampling_rate=batch / records,
        steps=steps or (round(3 * records / batch) if full else STEPS),
        optimizer=optax.adam(1e-3),
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """ε and accuracy over the steps."""
    s1_training.draw(figure, rows, title=TITLE)


def _features(pixels: Features) -> Features:
    """Scattering coefficients of the image in grey, scaled to the norm R; a blank image has none."""
    grey = (pixels @ GREY)[..., None]
    flat = scattering(grey).reshape(len(pixels), -1)
    result: Features = flat * (NORM / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6))
    return result
