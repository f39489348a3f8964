"""S1 Fig. 5 and Table I, SPEC J5: a convolutional network on MNIST, σ = 0.1, C = 1, batches of 1024.

The paper's network has batch normalisation, which lets records see each other; here it has none. By default it is
also smaller and trains half as long at twice the rate; `full` has the paper's layers, 20 epochs and rate 0.02.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import optax

from bayesdp import data
from bayesdp.data.dataset import Features
from bayesdp.experiments import s1_training
from bayesdp.experiments.s1_recipe import Recipe
from bayesdp.experiments.s1_training import Problem
from bayesdp.experiments.style import Row
from bayesdp.learn.models import cross_entropy
from bayesdp.mechanism import Activation, Conv2D, Dense, Flatten, MaxPool, ModelLoss, Sequential, use_host_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "bdp-mnist"
TITLE = "MNIST, S1's recipe: as printed (unsound: ERR 4, 9, 11; the product also ERR 1) and sound"
SIZE = (12.0, 5.6)
OPTIONS = ("full", "data_dir")

SIGMA, CLIP_NORM, BATCH, SUBSET = 0.1, 1.0, 1024, 0.1
LAMBDAS = (2, 4, 8, 16, 32)
RECORD_CLIP = 10.0
"""Where the run "per record" clips: few gradients of the trained network are longer (a tenth of the weights each)."""

SELU = Activation("selu")
SMALL = Sequential(
    (Conv2D(16, 5, stride=2), SELU, Conv2D(32, 3, stride=2), SELU, Flatten(), Dense(32), SELU, Dense(10))
)
PAPERS = Sequential(
    (
        *(Conv2D(64, 5, padding="VALID"), SELU, MaxPool(2)),
        *(Conv2D(64, 5, padding="VALID"), SELU, MaxPool(2)),
        *(Flatten(), Dense(384), SELU, Dense(192), SELU, Dense(10)),
    )
)
"""The paper's layers without batch normalisation: 573,578 weights; the small network has 55,594."""


def compute(
    seed: int = 0,
    *,
    full: bool = False,
    data_dir: str | Path | None = None,
    witnesses: int = 500,
    most: int | None = None,
    batch: int = BATCH,
    epochs: float | None = None,
) -> list[Row]:
    """Four runs, see `s1_training`. The last four are for smaller sizes still."""
    use_host_cores()
    chosen = problem(seed, full=full, data_dir=data_dir, witnesses=witnesses, most=most)
    plan = recipe(len(chosen.data[0]), full=full, batch=batch, epochs=epochs)
    return s1_training.compute(chosen, plan, lams=LAMBDAS, record_clip=RECORD_CLIP, seed=seed)


def problem(
    seed: int, *, full: bool = False, data_dir: str | Path | None = None, witnesses: int = 500, most: int | None = None
) -> Problem:
    """MNIST in [-1, 1], `witnesses` of its training records kept outside; `most` leaves that many to train on."""
    chosen = data.load("mnist", data_dir=data_dir)
    rest, outsiders = chosen.split(witnesses, seed)
    if most is not None:
        rest = rest.subset(most, seed)
    loss = ModelLoss(PAPERS if full else SMALL, cross_entropy)
    return Problem(
        loss=loss,
        params=loss.model.init(jax.random.key(seed), rest.x.shape[1:]),
        data=(_centred(rest.x), rest.y),
        outsiders=(_centred(outsiders[0]), outsiders[1]),
        test=(_centred(chosen.x_test), chosen.y_test),
        members=witnesses,
    )


def recipe(records: int, *, full: bool = False, batch: int = BATCH, epochs: float | None = None) -> Recipe:
    """The paper's numbers for that many records."""
    epochs = epochs or (20 if full else 10)
    return Recipe(
        sigma=SIGMA,
        clip_norm=CLIP_NORM,
        sampling_rate=batch / records,
        steps=round(epochs * records / batch),
        optimizer=optax.sgd(0.02 if full else 0.04),
        subset_fraction=SUBSET,
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """ε and accuracy over the steps."""
    s1_training.draw(figure, rows, title=TITLE)


def _centred(pixels: Features) -> Features:
    return 2 * pixels - 1
