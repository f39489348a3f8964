"""Records to learn from, ready for a model, with a list of what preparing them has told about them.

`Dataset.public` holds one sentence for each thing that preparation took from the data: the number of records,
means and scales, vocabularies. None of it is paid for, so a guarantee holds only where these are public anyway;
a learner copies the sentences into the assumptions of its guarantees.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.data.recipe import ImageFeatures, ImageRecipe, Recipe
from bayesdp.errors import InputError, one_of, refuse, whole

Task: TypeAlias = Literal["classification", "regression", "density"]
Features: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[Any]
"""Class numbers (int32) in classification, numbers (float32) in regression."""
Seed: TypeAlias = int | np.random.Generator

TASKS: tuple[Task, ...] = ("classification", "regression")
"""What can be asked for where there is a target; a data set without one has the task "density"."""
_SIZE = "The number of training records, N = "
_SCATTERED = "The features are scattering coefficients of each image by itself: no statistic of the data set is used."


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Training records `x, y` and test records `x_test, y_test`; a record is `(x[i], y[i])`.

    `x` is float32 of shape (N, features), or (N, height, width, channels) with `image_shape` = `x.shape[1:]`.
    `y` is int32, a place in `classes`, when `task` is "classification"; float32 when it is "regression", and
    `y * y_scale + y_mean` is then in the target's own units; zeros when it is "density". `recipe` prepares further
    records in the same way, `source` says which files the records came from, `places` where each of them stands there,
    counted from 0, those to train on before those to test on (None: in this order). The arrays are read-only.

    Bad input: features and labels of different number, an `image_shape` that is not that of `x`, no training
    record, or a class number outside `classes`: `InputError`.
    """

    name: str
    task: Task
    x: Features
    y: Labels
    x_test: Features
    y_test: Labels
    classes: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    public: tuple[str, ...] = ()
    recipe: Recipe | None = None
    y_mean: float = 0.0
    y_scale: float = 1.0
    source: str = ""
    places: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        one_of("task", self.task, (*TASKS, "density"))
        if len(self.x) == 0:
            raise InputError("Expected x with at least one training record, got none.")
        for x, y, part in ((self.x, self.y, ""), (self.x_test, self.y_test, "_test")):
            if y.shape != (len(x),):
                raise InputError(
                    f"Expected y{part} with one label for each of the {len(x)} records of x{part}, got shape {y.shape}."
                )
            if x.shape[1:] != self.x.shape[1:]:
                raise InputError(f"Expected x{part} with records of shape {self.x.shape[1:]}, got {x.shape[1:]}.")
            if self.classes and len(y) and not (y.min() >= 0 and y.max() < len(self.classes)):
                raise InputError(f"Expected y{part} to number the {len(self.classes)} classes from 0, got others.")
        if self.image_shape is not None and self.x.shape[1:] != tuple(self.image_shape):
            raise refuse("image_shape", self.image_shape, f"to be the shape of a record, {self.x.shape[1:]}")
        if self.places is not None and self.places.shape != (len(self.x) + len(self.x_test),):
            raise InputError(f"Expected places with one number for each record, got shape {self.places.shape}.")
        for field in ("x", "y", "x_test", "y_test"):
            view = getattr(self, field).view()
            view.flags.writeable = False
            object.__setattr__(self, field, view)
        # Whatever was split off or replaced since, the sentence on N speaks of the records that are here.
        others = tuple(sentence for sentence in self.public if not sentence.startswith(_SIZE))
        object.__setattr__(self, "public", (f"{_SIZE}{len(self.x):,}, is public.", *others))

    def split(self, audit: int, seed: Seed) -> tuple[Dataset, tuple[Features, Labels]]:
        """Take `audit` random records out of the training set: the rest, and the records taken out.

        The records taken out are never trained on and stand for the population, so they go to `fit(audit=…)`.
        `seed` is a whole number or a NumPy generator. Test records stay as they are. Means, scales and
        vocabularies of the preparation were taken while these records were among the training records, as the
        sentences in `public` say.

        Bad input: fewer than one audit record, or no record left to train on: `InputError`.
        """
        count = whole(
            "audit",
            audit,
            least=1,
            most=len(self.x) - 1,
            hint=f"There are {len(self.x):,} training records, and at least one must be left to train on.",
        )
        order = _generator(seed).permutation(len(self.x))
        # Sorted, so that neither part carries the order of the draw.
        taken, kept = np.sort(order[:count]), np.sort(order[count:])
        return self._only(kept), (self.x[taken], self.y[taken])

    def subset(self, n: int, seed: Seed) -> Dataset:
        """The data set with `n` random training records; test records stay as they are.

        Bad input: `n` below one or above the number of training records: `InputError`.
        """
        count = whole("n", n, least=1, most=len(self.x), hint=f"There are {len(self.x):,} training records.")
        return self._only(np.sort(_generator(seed).permutation(len(self.x))[:count]))

    def _only(self, rows: npt.NDArray[np.int64]) -> Dataset:
        every = np.arange(len(self.x) + len(self.x_test)) if self.places is None else self.places
        places = np.concatenate([every[: len(self.x)][rows], every[len(self.x) :]])
        return dataclasses.replace(self, x=self.x[rows], y=self.y[rows], places=places)


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(whole("seed", seed, least=0))


def with_features(dataset: Dataset, features: ImageFeatures | None) -> Dataset:
    """The data set with its images transformed; None leaves it as it is. Bad input: no images get `InputError`."""
    if features is None:
        return dataset
    if not isinstance(dataset.recipe, ImageRecipe) or dataset.recipe.features is not None:
        raise InputError(f"Expected images to make {features} features of, got data={dataset.name!r}, which has none.")
    recipe = dataclasses.replace(dataset.recipe, features=features)
    return dataclasses.replace(
        dataset,
        x=recipe.transform(dataset.x),
        x_test=recipe.transform(dataset.x_test),
        image_shape=recipe.feature_shape,
        public=(*dataset.public, _SCATTERED),
        recipe=recipe,
    )


def shuffled(rows: int, seed: Seed, train: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """`train` random row numbers for training and the others for testing, each in rising order."""
    order = _generator(seed).permutation(rows)
    return np.sort(order[:train]), np.sort(order[train:])
