"""Records to learn from, ready for a model, with a list of what preparing them has told about them.

`Dataset.public` holds one sentence for each thing that preparation took from the data: the number of records,
means and scales, vocabularies. What is not declared beforehand or paid for (`preparation`) a guarantee takes for
public; a learner copies the sentences into the assumptions of its guarantees.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.data import coins
from bayesdp.data.features.extractor import Extractor, is_file
from bayesdp.data.features.image_recipe import ImageFeatures, ImageRecipe
from bayesdp.data.features.kept import kept
from bayesdp.data.payment import Paid
from bayesdp.data.people.grouping import Grouping
from bayesdp.data.recipe import Recipe
from bayesdp.errors import Argument, number, one_of, refuse, unmet, whole
from bayesdp.unit import Unit, spoken

Task: TypeAlias = Literal["classification", "regression", "density"]
Features: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[Any]
"""Class numbers (int32) in classification, numbers (float32) in regression."""
Rows: TypeAlias = npt.NDArray[np.int64]
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
    counted from 0, those to train on before those to test on (None: in this order). `test_share` is the chance with
    which a coin put a record among the test records, 0 where these are fixed. `findings` say for the owner's eyes
    what was found in the table and done about it. `paid` is what preparing them privately has cost, which a plan has to
    count (`Plan.prelude`). `people` says whose each row is, those to train on first, where a person has several: then a
    record is a person, and `size` of them are trained on. The arrays are read-only.

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
    test_share: float = 0.0
    findings: tuple[str, ...] = ()
    paid: Paid | None = None
    people: Grouping | None = None

    def __post_init__(self) -> None:
        one_of("task", self.task, (*TASKS, "density"))
        if len(self.x) == 0:
            raise refuse("x", self.x.shape, "with at least one training record", got="none")
        for x, y, part in ((self.x, self.y, ""), (self.x_test, self.y_test, "_test")):
            if y.shape != (len(x),):
                raise refuse(
                    f"y{part}",
                    y.shape,
                    f"with one label for each of the {len(x)} records of x{part}",
                    got=f"shape {y.shape}",
                )
            if x.shape[1:] != self.x.shape[1:]:
                raise refuse(f"x{part}", x.shape[1:], f"with records of shape {self.x.shape[1:]}", got=f"{x.shape[1:]}")
            if self.classes and len(y) and not (y.min() >= 0 and y.max() < len(self.classes)):
                raise refuse(f"y{part}", y, f"to number the {len(self.classes)} classes from 0", got="others")
        if self.image_shape is not None and self.x.shape[1:] != tuple(self.image_shape):
            raise refuse("image_shape", self.image_shape, f"to be the shape of a record, {self.x.shape[1:]}")
        if self.places is not None and self.places.shape != (len(self.x) + len(self.x_test),):
            raise refuse(
                "places", self.places.shape, "with one number for each record", got=f"shape {self.places.shape}"
            )
        for field in ("x", "y", "x_test", "y_test"):
            view = getattr(self, field).view()
            view.flags.writeable = False
            object.__setattr__(self, field, view)
        # Whatever was split off or replaced since, the sentence on N speaks of the records that are here.
        own = () if self.people is None else self.people.public
        said = (*own, *(one for one in self.public_beside_size if one not in own))
        size = f"{_SIZE}{self.size:,}, is public."
        object.__setattr__(self, "public", tuple(spoken(one, self.unit) for one in (size, *said)))

    @property
    def unit(self) -> Unit:
        """What a promise is about: a record, or a person."""
        return "record" if self.people is None else "person"

    @property
    def size(self) -> int:
        """How many are trained on: records, or people."""
        return len(self.x) if self.people is None else len(np.unique(self.people.owner[: len(self.x)]))

    @property
    def public_beside_size(self) -> tuple[str, ...]:
        """What is public where the number of records was declared and not taken from the data."""
        beginning = spoken(_SIZE, self.unit)
        return tuple(sentence for sentence in self.public if not sentence.startswith((_SIZE, beginning)))

    @classmethod
    def of_rows(cls, x: Features, y: Labels, train: Rows, test: Rows, **others: Any) -> Dataset:
        """The data set whose training and test records are these rows of `x` and `y`, and the rows are their places."""
        return cls(
            x=x[train], y=y[train], x_test=x[test], y_test=y[test], places=np.concatenate([train, test]), **others
        )

    def set_apart(self, share: float, *, draw: int | None = None) -> tuple[Dataset, tuple[Features, Labels]]:
        """Take each training record out with chance `share`, by a coin of its own: the rest, and those taken out.

        They are never trained on and stand for the population, so they go to `fit(holdout=…)`. How many there are is up
        to the coins (`coins`): no record's side depends on another's, or on how many there are. `draw` is the number
        that coins come from; None: a new one from the operating system.

        Bad input: a share outside [0, 1), or no record left to train on: `InputError`.
        """
        number("share", share, least=0, below=1)
        secret = coins.fresh() if draw is None else whole("draw", draw, least=0)
        places = np.arange(len(self.x)) if self.places is None else self.places[: len(self.x)]
        if self.people is not None:  # all rows of a person by one coin
            places = self.people.owner[: len(self.x)]
        out = coins.tossed(secret, "holdout", places, share)
        if out.all():
            raise refuse("share", share, f"to leave some of the {self.size:,} training records")
        return self._only(np.flatnonzero(~out)), (self.x[out], self.y[out])

    def split(self, holdout: int, seed: Seed) -> tuple[Dataset, tuple[Features, Labels]]:
        """Take `holdout` random records out of the training set: the rest, and the records taken out.

        For experiments, where the same split is to be had again: who is taken out depends on how many there are. Where
        records are private take `set_apart`.
        `seed` is a whole number or a NumPy generator. Test records stay as they are. Means, scales and
        vocabularies of the preparation were taken while these records were among the training records, as the
        sentences in `public` say.

        Bad input: fewer than one holdout record, or no record left to train on: `InputError`.
        """
        self._check_records()
        count = whole(
            "holdout",
            holdout,
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
        self._check_records()
        count = whole("n", n, least=1, most=len(self.x), hint=f"There are {len(self.x):,} training records.")
        return self._only(np.sort(_generator(seed).permutation(len(self.x))[:count]))

    def _check_records(self) -> None:
        """Refuse to draw rows where a person has several: a person's would be on both sides."""
        if self.people is not None:
            raise unmet("data", self.name, "records of one row each", "people with several rows", "Use set_apart.")

    def _only(self, rows: npt.NDArray[np.int64]) -> Dataset:
        every = np.arange(len(self.x) + len(self.x_test)) if self.places is None else self.places
        places = np.concatenate([every[: len(self.x)][rows], every[len(self.x) :]])
        people = self.people
        if people is not None:
            people = people.only(np.concatenate([rows, np.arange(len(self.x), len(every))]))
        return dataclasses.replace(self, x=self.x[rows], y=self.y[rows], places=places, people=people)


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(whole("seed", seed, least=0))


def with_features(
    dataset: Dataset, features: ImageFeatures | None, norm: float | None = None, *, keep: bool = False
) -> Dataset:
    """The data set with its images transformed; None leaves it as it is. `norm`: of an extractor of the user's own.

    `keep`: what was computed is kept in the cache (`features.kept`). Bad input: no images get `InputError`.
    """
    if features is None:
        return dataset
    if not isinstance(dataset.recipe, ImageRecipe) or dataset.recipe.features is not None:
        raise unmet(
            "features",
            features,
            f"images to make {features} features of",
            f"{Argument('data', dataset.name)}, which has none",
        )
    own = Extractor.given(features, norm) if is_file(features) else None
    recipe = dataclasses.replace(dataset.recipe, features=features, extractor=own)

    def transformed(images: Features) -> Features:
        return kept(recipe.transform_name, images, recipe.transform) if keep else recipe.transform(images)

    return dataclasses.replace(
        dataset,
        x=transformed(dataset.x),
        x_test=transformed(dataset.x_test),
        image_shape=recipe.feature_shape if own is None else None,
        public=(*dataset.public, _SCATTERED if own is None else own.sentence),
        recipe=recipe,
    )


def shuffled(rows: int, seed: Seed, train: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """`train` random row numbers for training and the others for testing, each in rising order."""
    order = _generator(seed).permutation(rows)
    return np.sort(order[:train]), np.sort(order[train:])
