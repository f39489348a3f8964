"""Further records, read and prepared like those that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayesdp.data.array_file import feature_table, read_array
from bayesdp.data.dataset import Features
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.own import ENDINGS
from bayesdp.data.recipe import Bounded, OneHot, Recipe
from bayesdp.data.table_file import TABLE_ENDINGS, read_table
from bayesdp.data.tables.reading import cleaned
from bayesdp.errors import Argument, Array, refuse


class Further(NamedTuple):
    """Features of the records that have all that is needed, and `kept` for which rows of the file these are.

    `unseen` counts by column the categories that the model does not know, `beyond` the numbers outside of a range that
    was declared or paid for: people unlike those trained on, told from public quantities alone. `keys` is a column that
    is carried along.
    """

    x: Features
    kept: npt.NDArray[np.bool_]
    unseen: Mapping[str, int]
    keys: list[str] | None = None
    beyond: Mapping[str, int] = MappingProxyType({})


def read_features(path: str | Path, recipe: Recipe) -> Features:
    """The features of further records, prepared like those that a model was trained on.

    A table has the training columns by name, in any order; others are ignored. Rows that lack a value are left out
    where training left such rows out. An NPZ has the columns in an array `x`, in the training order. Images are raw, as
    in the training file: they are divided by the same constant.

    Bad input: a file that is none of these, or whose records do not fit the recipe: `InputError`.
    """
    return read_further(path, recipe).x


def read_further(path: str | Path, recipe: Recipe, key: str | None = None) -> Further:
    """The same with what else is to be said of the records; `key` names a column of a table to carry along.

    Bad input: see `read_features`; a key that is no column.
    """
    path = Path(path).expanduser()
    if isinstance(recipe, ImageRecipe) or path.suffix.lower() not in TABLE_ENDINGS:
        if key is not None:
            raise refuse("key", key, "to name a column of a table, which an NPZ has not")
        x = _arrays(path, recipe)
        return Further(x, np.ones(len(x), bool), {})
    table = read_table(path)
    keys = None if key is None else table.shown(table.need("key", key))
    read, kept = cleaned(table, recipe.readings) if recipe.readings else (table, np.ones(len(table), bool))
    x = recipe.features(read)[kept]
    unseen = {
        column.name: sum(text not in column.categories for text in read.texts(column.name))
        for column in recipe.columns
        if isinstance(column, OneHot)
    }
    beyond = {
        column.name: _outside(read.numbers(column.name)[kept], column)
        for column in recipe.columns
        if isinstance(column, Bounded)
    }
    return Further(x, kept, _counted(unseen), keys, _counted(beyond))


def _outside(values: Array, column: Bounded) -> int:
    return int(np.sum((values < column.low) | (values > column.high)))


def _counted(by_column: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in by_column.items() if count}


def _arrays(path: Path, recipe: Recipe) -> Features:
    ending = path.suffix.lower()
    if isinstance(recipe, ImageRecipe):
        if ending != ".npz":
            raise refuse("data", str(path), "to end in .npz, which holds images in an array x")
        return recipe.apply(read_array(path))
    if ending != ".npz":
        raise refuse("data", str(path), "to end in " + ", ".join(ENDINGS))
    names = tuple(column.name for column in recipe.columns)
    return recipe.apply(
        feature_table(Argument("data", str(path)), read_array(path), names, lambda row: f"record {row}")
    )
