"""The user's own file as a data set: a table with a target column, or an NPZ of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bayesdp.data.array_file import feature_table, read_array, read_records
from bayesdp.data.dataset import TASKS, Dataset, Features, Task, shuffled
from bayesdp.data.recipe import ImageRecipe, Recipe, Scale, TableRecipe, find_recipe, moments
from bayesdp.data.table import Table, listed
from bayesdp.data.table_file import TABLE_ENDINGS, read_table
from bayesdp.data.target import Target, check_classes, read_target
from bayesdp.errors import InputError, number, one_of, refuse, whole

ENDINGS = (*TABLE_ENDINGS, ".npz")
LEAST_ROWS = 10
TEST_SHARE = 0.2

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """How to read an own file; None where nothing was said."""

    target: str | None = None
    task: Task | None = None
    scale: Scale | None = None
    categories: Sequence[str] = ()
    drop: Sequence[str] = ()
    test_share: float | None = None
    seed: int | None = None
    target_scale: Scale | None = None
    unlabelled: bool = False

    def __post_init__(self) -> None:
        if self.task is not None:
            one_of("task", self.task, TASKS)
        for name in ("scale", "target_scale"):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), ("standard", "none"))
        for name in ("categories", "drop"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(entry, str) for entry in value):
                raise refuse(name, value, "to be a list of column names")
            object.__setattr__(self, name, tuple(value))
        if self.test_share is not None:
            number("test_share", self.test_share, least=0, below=1)
        if self.seed is not None:
            whole("seed", self.seed, least=0)

    def rows(self, count: int) -> tuple[Rows, Rows]:
        """Row numbers to train on and to test on; at least one of the latter unless the share is 0."""
        share = TEST_SHARE if self.test_share is None else self.test_share
        test = max(round(share * count), int(share > 0))
        if test >= count:
            raise refuse("test_share", share, f"to leave some of the {count} records to train on")
        return shuffled(count, self.seed or 0, count - test)


def load_own(path: Path, options: Options) -> Dataset:
    """The data set in a file of the user's own; see `bayesdp.data.load`."""
    if path.suffix.lower() not in ENDINGS:
        raise refuse("data", str(path), "to end in " + ", ".join(ENDINGS))
    return _from_arrays(path, options) if path.suffix.lower() == ".npz" else _from_table(path, options)


def read_features(path: str | Path, recipe: Recipe) -> Features:
    """The features of further records, prepared like those that a model was trained on.

    A table has the training columns by name, in any order; others are ignored. An NPZ has them in an array `x`,
    in the training order. Images are raw, as in the training file: they are divided by the same constant.

    Bad input: a file that is none of these, or whose records do not fit the recipe: `InputError`.
    """
    path = Path(path).expanduser()
    ending = path.suffix.lower()
    if isinstance(recipe, ImageRecipe):
        if ending != ".npz":
            raise refuse("data", str(path), "to end in .npz, which holds images in an array x")
        return recipe.apply(read_array(path))
    if ending not in ENDINGS:
        raise refuse("data", str(path), "to end in " + ", ".join(ENDINGS))
    if ending != ".npz":
        return recipe.apply(read_table(path))
    names = tuple(column.name for column in recipe.columns)
    return recipe.apply(feature_table(f"data={str(path)!r}", read_array(path), names, lambda row: f"record {row}"))


def _from_table(path: Path, options: Options) -> Dataset:
    table = read_table(path)
    if options.target is None and not options.unlabelled:
        raise InputError(
            f"Expected target to name the column of {table.source} that is to be learned, got none. "
            f"Its columns are {listed(table.names)}."
        )
    target_name = "" if options.target is None else table.need("target", options.target)
    for argument in ("categories", "drop"):
        for name in getattr(options, argument):
            if table.need(argument, name) == target_name:
                raise refuse(argument, name, "to name other columns than the target")
    names = tuple(name for name in table.names if name != target_name and name not in options.drop)
    if not names:
        raise table.refuse(
            f"to have a column to learn from{f' besides {target_name!r}' if target_name else ''}", "none"
        )
    _enough(table, len(table))
    target = _nothing(len(table)) if options.unlabelled else read_target(table, target_name, options.task)
    train, test = options.rows(len(table))
    recipe = find_recipe(table, names, train, scale=options.scale or "standard", categories=tuple(options.categories))
    return _dataset(path, options, recipe, recipe.apply(table), target, target_name, train, test)


def _from_arrays(path: Path, options: Options) -> Dataset:
    if options.target not in (None, "y"):
        raise refuse("target", options.target, "to be left out for an NPZ, whose labels are its array y")
    if options.categories or options.drop:
        raise InputError(f"Expected categories and drop to be left out for an NPZ, got them with data={str(path)!r}.")
    records = read_records(path)
    labels = records.labels()
    _enough(labels, records.training)
    if not records.has_test:
        train, test = options.rows(records.training)
    elif options.test_share is not None or options.seed is not None:
        raise InputError(
            f"Expected test_share and seed to be left out where {records.source} has x_test and y_test, got one."
        )
    else:
        train, test = np.split(np.arange(len(records.x)), [records.training])
    target = _nothing(len(labels)) if options.unlabelled else read_target(labels, "y", options.task)
    if records.x.ndim == 2:
        table = records.features()
        recipe = find_recipe(table, table.names, train, scale=options.scale or "standard")
        return _dataset(path, options, recipe, recipe.apply(table), target, "y", train, test)
    shape = records.x.shape[1:] if records.x.ndim == 4 else (*records.x.shape[1:], 1)
    bytes_to_unit = records.x.dtype == np.uint8 and options.scale != "none"
    images = ImageRecipe(shape, 255.0 if bytes_to_unit else 1.0)
    return _dataset(path, options, images, images.apply(records.x), target, "y", train, test)


def _nothing(rows: int) -> Target:
    """Nothing to predict."""
    return Target("density", (), np.zeros(rows))


def _enough(table: Table, rows: int) -> None:
    if rows < LEAST_ROWS:
        raise table.refuse(
            f"to hold at least {LEAST_ROWS} records to train and test with",
            str(rows),
            "So few can neither be learned from nor hide each other",
        )


def _dataset(
    path: Path,
    options: Options,
    recipe: Recipe,
    x: Features,
    target: Target,
    target_name: str,
    train: Rows,
    test: Rows,
) -> Dataset:
    check_classes(target, target.values[train], target_name)
    basis = f"the {len(train):,} training records"
    public: list[str] = []
    if isinstance(recipe, TableRecipe):
        public += ["The names of the columns, and which hold numbers and which texts, are public."]
        public += recipe.public(basis)
    y, mean, scale = target.values, 0.0, 1.0
    if target.classes:
        public += [
            f"The {len(target.classes)} classes of {target_name!r}, taken from all records, are declared public."
        ]
    elif target.task == "regression" and "none" not in (options.scale, options.target_scale):
        mean, scale = moments(y[train], "standard")
        scale = scale or 1.0
        y = (y - mean) / scale
        public += [f"Mean and scale of the target {target_name!r}, taken from {basis}, are declared public."]
    labels = y.astype(np.int32 if target.classes else np.float32)
    return Dataset(
        name=path.stem,
        task=target.task,
        x=x[train],
        y=labels[train],
        x_test=x[test],
        y_test=labels[test],
        classes=target.classes,
        feature_names=recipe.feature_names if isinstance(recipe, TableRecipe) else (),
        image_shape=recipe.shape if isinstance(recipe, ImageRecipe) else None,
        public=tuple(public),
        recipe=recipe,
        y_mean=mean,
        y_scale=scale,
        source=path.name,
        places=np.concatenate([train, test]),
    )
