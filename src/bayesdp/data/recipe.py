"""How raw records become features: a plain value that is found once, kept with the model and applied again.

    numeric   (value − mean) / scale, and 0 where the scale is 0 (a constant column)
    bounded   the same, the value clipped to a range first that was declared or paid for
    one-hot   one feature for each category, 1 for the record's own; a category not seen before gets zeros
    code      (place of the category − mean) / scale

Means, scales and categories that `find_recipe` takes from the data are not paid for: `TableRecipe.public` says so in
words. `preparation` has other ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.data.features.extractor import Extractor
from bayesdp.data.features.image_recipe import IMAGE_FEATURES, ImageRecipe
from bayesdp.data.table import MOST_CATEGORIES, Table, listed
from bayesdp.data.tables.reading import Reading, cleaned
from bayesdp.errors import Argument, Array, one_of, unmet

_LEAST_SPREAD = 1e-18
"""A smaller standard deviation counts as none; with `table.LARGEST` features then fit single precision."""

Scale: TypeAlias = Literal["private", "public-statistics", "none", "standard"]
"""How numbers are scaled (`preparation.prepare`); "standard" is what "public-statistics" was called before."""
SCALES: tuple[Scale, ...] = ("private", "public-statistics", "none")


@dataclass(frozen=True)
class _OneFeature:
    """A column that becomes one feature, under its own name."""

    name: str

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True)
class Numeric(_OneFeature):
    """A column of numbers: (value − mean) / scale."""

    mean: float
    scale: float

    def apply(self, table: Table) -> Array:
        return _standardised(table.numbers(self.name), self.mean, self.scale)[:, None]


@dataclass(frozen=True)
class Bounded(_OneFeature):
    """A column of numbers in a range: (value − mean) / scale of the value clipped to it."""

    low: float
    high: float
    mean: float
    scale: float

    def apply(self, table: Table) -> Array:
        values = np.clip(table.numbers(self.name), self.low, self.high)
        return _standardised(values, self.mean, self.scale)[:, None]


@dataclass(frozen=True)
class OneHot:
    """A column of texts: one feature for each category."""

    name: str
    categories: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={category}" for category in self.categories)

    def apply(self, table: Table) -> Array:
        # The last column takes the categories never seen, and is cut off.
        place = {category: number for number, category in enumerate(self.categories)}
        codes = [place.get(text, len(place)) for text in table.texts(self.name)]
        return np.eye(len(place) + 1, len(place))[codes]


@dataclass(frozen=True)
class Code(_OneFeature):
    """A column of texts as one number: (place of the category − mean) / scale, as in the DPVI paper (S2)."""

    categories: tuple[str, ...]
    mean: float
    scale: float

    def apply(self, table: Table) -> Array:
        codes = _codes(table, self.name, self.categories)
        return _standardised(codes, self.mean, self.scale)[:, None]


@dataclass(frozen=True)
class TableRecipe:
    """Features from the columns of a table, in this order; columns that are not named here are left alone.

    `readings` say how cells become numbers and texts and what is done where there is none; without any the table has
    them as they are to be.
    """

    columns: tuple[Numeric | Bounded | OneHot | Code, ...]
    readings: tuple[Reading, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        indicators = (f"{name} missing" for name in self.indicators)
        return (*(name for column in self.columns for name in column.feature_names), *indicators)

    @property
    def indicators(self) -> tuple[str, ...]:
        """The columns of numbers that have a feature which says that there is none."""
        return tuple(one.name for one in self.readings if one.missing == "indicator" and one.kind != "text")

    def apply(self, table: Table) -> npt.NDArray[np.float32]:
        """The features of every row, float32.

        Bad input: a column that the table lacks, an absent or misplaced value, or for `Code` a category that the
        recipe does not have: `InputError` that names the row and the column.
        """
        if not self.readings:
            return self.features(table)
        read, kept = cleaned(table, self.readings)
        if not kept.all():
            lacking = f"one without in {table.place(int(np.argmin(kept)))}"
            raise table.unfit("to have every value in each row that the model needs", lacking)
        return self.features(read)

    def features(self, table: Table) -> npt.NDArray[np.float32]:
        """The features of a table that was read as `readings` say (`tables.reading.cleaned`)."""
        missing = tuple(column.name for column in self.columns if column.name not in table.columns)
        if missing:
            raise table.unfit(
                f"to have the columns that the model was trained on: {listed(tuple(c.name for c in self.columns))}",
                f"none called {listed(missing)}",
            )
        features = np.empty((len(table), len(self.feature_names)), np.float32)
        centred = {one.name for one in self.readings if one.missing is not None and one.centred}
        start = 0
        for column in self.columns:
            stop = start + len(column.feature_names)
            features[:, start:stop] = column.apply(table)
            if column.name in centred:
                features[table.absent[column.name], start:stop] = 0.0
            start = stop
        for place, name in enumerate(self.indicators, start):
            features[:, place] = table.absent[name]
        return features

    def public(self, basis: str) -> tuple[str, ...]:
        """What the recipe took from the data, one sentence each; `basis` says which records it looked at."""
        scaled = tuple(
            c.name for c in self.columns if isinstance(c, Numeric | Code) and (c.mean, c.scale) != (0.0, 1.0)
        )
        named = tuple(c.name for c in self.columns if isinstance(c, OneHot | Code))
        categories = sum(len(c.categories) for c in self.columns if isinstance(c, OneHot | Code))
        sentences = []
        if scaled:
            sentences.append(f"Means and scales of {listed(scaled, 8)}, taken from {basis}, are declared public.")
        if named:
            words = f"The vocabularies of {listed(named, 8)} ({categories} categories)"
            sentences.append(f"{words}, taken from {basis}, are declared public.")
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        columns = [{"kind": _KIND[type(c)], **asdict(c)} for c in self.columns]
        return {"kind": "table", "columns": columns, "readings": [one.to_dict() for one in self.readings]}


Recipe: TypeAlias = TableRecipe | ImageRecipe
_KIND: dict[type, str] = {Numeric: "numeric", Bounded: "bounded", OneHot: "one-hot", Code: "code"}


def recipe_from_dict(state: Mapping[str, Any]) -> Recipe:
    """The recipe that `to_dict` wrote. Bad input: anything else gets `InputError`."""
    kinds = {kind: column for column, kind in _KIND.items()}
    try:
        if state["kind"] == "image":
            features = state.get("features")
            extractor = Extractor(**state["extractor"]) if "extractor" in state else None
            if features is not None and extractor is None:
                one_of("features", features, IMAGE_FEATURES)
            return ImageRecipe(tuple(map(int, state["shape"])), float(state["divisor"]), features, extractor)
        one_of("kind", state["kind"], ["table"])
        columns = []
        for column in state["columns"]:
            fields = {
                key: tuple(map(str, value)) if key == "categories" else str(value) if key == "name" else float(value)
                for key, value in column.items()
                if key != "kind"
            }
            columns.append(kinds[column["kind"]](**fields))
        return TableRecipe(tuple(columns), tuple(map(Reading.from_dict, state.get("readings", ()))))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise unmet("recipe", None, "a saved recipe of a data set", f"something else ({problem})") from None


def find_recipe(
    table: Table,
    names: tuple[str, ...],
    rows: npt.NDArray[np.int64],
    *,
    scale: Scale = "public-statistics",
    texts: Literal["one-hot", "code"] = "one-hot",
    categories: tuple[str, ...] = (),
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
) -> TableRecipe:
    """The recipe for the columns `names` with means, scales (÷N, not N−1) and vocabularies of `rows`.

    Columns in `categories` are texts whatever they hold; `vocabularies` are known beforehand and in their order,
    others are found in the data and sorted.

    Bad input: see `Table.is_numeric`, `numbers` and `texts`; a column with more than `MOST_CATEGORIES` texts.
    """
    columns: list[Numeric | Bounded | OneHot | Code] = []
    for name in names:
        if name not in categories and table.is_numeric(name):
            columns.append(Numeric(name, *moments(table.numbers(name)[table.present(name, rows)], scale)))
            continue
        words = (vocabularies or {}).get(name) or _vocabulary(table, name, rows)
        if texts == "one-hot":
            columns.append(OneHot(name, words))
        else:
            columns.append(Code(name, words, *moments(_codes(table, name, words)[rows], scale)))
    return TableRecipe(tuple(columns))


def moments(values: Array, scale: Scale) -> tuple[float, float]:
    """Mean and standard deviation (÷N), the latter 0 for a constant; 0 and 1 where nothing is to be scaled."""
    if scale == "none":
        return 0.0, 1.0
    if not len(values):  # none of the records has one
        return 0.0, 0.0
    # A constant such as 0.1 may differ from its computed mean in the last digit: look at the values themselves.
    spread = float(np.std(values)) if values.min() < values.max() else 0.0
    return float(np.mean(values)), spread if spread > _LEAST_SPREAD else 0.0


def _standardised(values: Array, mean: float, scale: float) -> Array:
    return (values - mean) / scale if scale else np.zeros_like(values)


def _vocabulary(table: Table, name: str, rows: npt.NDArray[np.int64]) -> tuple[str, ...]:
    texts = table.texts(name)
    words = sorted({texts[row] for row in table.present(name, rows)})
    if len(words) > MOST_CATEGORIES:
        raise table.unfit(
            f"to have at most {MOST_CATEGORIES} different texts in column {name!r}",
            f"{len(words):,} in {len(rows):,} rows",
            f"Leave the column out ({Argument('drop', (name,))}) or group its values",
        )
    return tuple(words)


def _codes(table: Table, name: str, categories: tuple[str, ...]) -> Array:
    place = {category: number for number, category in enumerate(categories)}
    texts = table.texts(name)
    try:
        return np.array([place[text] for text in texts], np.float64)
    except KeyError as unknown:
        row = texts.index(unknown.args[0])
        raise table.unfit(
            f"to have one of {listed(categories)} in column {name!r}", f"{texts[row]!r} in {table.place(row)}"
        ) from None
