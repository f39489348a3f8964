"""How raw records become features: a plain value that is found once, kept with the model and applied again.

    numeric   (value − mean) / scale, and 0 where the scale is 0 (a constant column)
    one-hot   one feature for each category, 1 for the record's own; a category not seen before gets zeros
    code      (place of the category − mean) / scale
    image     value / divisor, a constant that is not taken from the data; then the scattering transform if asked for

Means, scales and categories come from the data and are not paid for: `TableRecipe.public` says so in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.data.table import Table, listed
from bayesdp.errors import Array, InputError, one_of

MOST_CATEGORIES = 100
"""More different texts than this in one column are refused: most are then names or numbers of single people."""

_LEAST_SPREAD = 1e-18
"""A smaller standard deviation counts as none; with `table.LARGEST` features then fit single precision."""

Scale: TypeAlias = Literal["standard", "none"]
ImageFeatures: TypeAlias = Literal["scattering"]
IMAGE_FEATURES: tuple[ImageFeatures, ...] = ("scattering",)


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: (value − mean) / scale."""

    name: str
    mean: float
    scale: float

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name,)

    def apply(self, table: Table) -> Array:
        return _standardised(table.numbers(self.name), self.mean, self.scale)[:, None]


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
class Code:
    """A column of texts as one number: (place of the category − mean) / scale, as in paper S2."""

    name: str
    categories: tuple[str, ...]
    mean: float
    scale: float

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name,)

    def apply(self, table: Table) -> Array:
        codes = _codes(table, self.name, self.categories)
        return _standardised(codes, self.mean, self.scale)[:, None]


@dataclass(frozen=True)
class TableRecipe:
    """Features from the columns of a table, in this order; columns that are not named here are left alone."""

    columns: tuple[Numeric | OneHot | Code, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.feature_names)

    def apply(self, table: Table) -> npt.NDArray[np.float32]:
        """The features of every row, float32.

        Bad input: a column that the table lacks, an absent or misplaced value, or for `Code` a category that the
        recipe does not have: `InputError` that names the row and the column.
        """
        missing = tuple(column.name for column in self.columns if column.name not in table.columns)
        if missing:
            raise table.refuse(
                f"to have the columns that the model was trained on: {listed(tuple(c.name for c in self.columns))}",
                f"none called {listed(missing)}",
            )
        features = np.empty((len(table), len(self.feature_names)), np.float32)
        start = 0
        for column in self.columns:
            stop = start + len(column.feature_names)
            features[:, start:stop] = column.apply(table)
            start = stop
        return features

    def public(self, basis: str) -> tuple[str, ...]:
        """What the recipe took from the data, one sentence each; `basis` says which records it looked at."""
        scaled = tuple(c.name for c in self.columns if not isinstance(c, OneHot) and (c.mean, c.scale) != (0.0, 1.0))
        named = tuple(c.name for c in self.columns if not isinstance(c, Numeric))
        categories = sum(len(c.categories) for c in self.columns if not isinstance(c, Numeric))
        sentences = []
        if scaled:
            sentences.append(f"Means and scales of {listed(scaled, 8)}, taken from {basis}, are declared public.")
        if named:
            words = f"The vocabularies of {listed(named, 8)} ({categories} categories)"
            sentences.append(f"{words}, taken from {basis}, are declared public.")
        return tuple(sentences)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "table", "columns": [{"kind": _KIND[type(c)], **asdict(c)} for c in self.columns]}


@dataclass(frozen=True)
class ImageRecipe:
    """Images of shape (height, width, channels), divided by a constant, and with `features` transformed (H13)."""

    shape: tuple[int, ...]
    divisor: float
    features: ImageFeatures | None = None

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of one record of features."""
        if self.features is None:
            return self.shape
        from bayesdp.data.scattering import shape_of

        return shape_of(self.shape)

    def apply(self, images: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """(n, height, width, channels) or, with one channel, (n, height, width) as float32 features.

        Bad input: another shape, no numbers, or numbers that are not finite: `InputError`.
        """
        if images.ndim == 3 and self.shape[-1] == 1:
            images = images[..., None]
        if images.shape[1:] != self.shape or images.dtype.kind not in "fiub":
            raise InputError(
                f"Expected images of numbers of shape {self.shape}, got {images.shape[1:]} of {images.dtype}."
            )
        with np.errstate(over="ignore"):  # too large for single precision: infinite, and refused below
            pixels = images.astype(np.float32)  # a copy, which may be divided in place
        pixels /= np.float32(self.divisor)
        good = np.isfinite(pixels).reshape(len(pixels), -1).all(axis=1)
        if not good.all():
            raise InputError(f"Expected images of finite numbers, got another in image {int(np.argmin(good))}.")
        return self.transform(pixels)

    def transform(self, pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """What comes after the division."""
        if self.features is None:
            return pixels
        from bayesdp.data.scattering import scattering  # JAX is not loaded for data that do without

        return scattering(pixels)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "image", "shape": list(self.shape), "divisor": self.divisor, "features": self.features}


Recipe: TypeAlias = TableRecipe | ImageRecipe
_KIND: dict[type, str] = {Numeric: "numeric", OneHot: "one-hot", Code: "code"}


def recipe_from_dict(state: Mapping[str, Any]) -> Recipe:
    """The recipe that `to_dict` wrote. Bad input: anything else gets `InputError`."""
    kinds = {kind: column for column, kind in _KIND.items()}
    try:
        if state["kind"] == "image":
            features = state.get("features")
            if features is not None:
                one_of("features", features, IMAGE_FEATURES)
            return ImageRecipe(tuple(map(int, state["shape"])), float(state["divisor"]), features)
        one_of("kind", state["kind"], ["table"])
        columns = []
        for column in state["columns"]:
            fields = {
                key: tuple(map(str, value)) if key == "categories" else str(value) if key == "name" else float(value)
                for key, value in column.items()
                if key != "kind"
            }
            columns.append(kinds[column["kind"]](**fields))
        return TableRecipe(tuple(columns))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise InputError(f"Expected a saved recipe of a data set, got something else ({problem}).") from None


def find_recipe(
    table: Table,
    names: tuple[str, ...],
    rows: npt.NDArray[np.int64],
    *,
    scale: Scale = "standard",
    texts: Literal["one-hot", "code"] = "one-hot",
    categories: tuple[str, ...] = (),
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
) -> TableRecipe:
    """The recipe for the columns `names` with means, scales (÷N, not N−1) and vocabularies of `rows`.

    Columns in `categories` are texts whatever they hold; `vocabularies` are known beforehand and in their order,
    others are found in the data and sorted.

    Bad input: see `Table.is_numeric`, `numbers` and `texts`; a column with more than `MOST_CATEGORIES` texts.
    """
    columns: list[Numeric | OneHot | Code] = []
    for name in names:
        if name not in categories and table.is_numeric(name):
            columns.append(Numeric(name, *moments(table.numbers(name)[rows], scale)))
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
    # A constant such as 0.1 may differ from its computed mean in the last digit: look at the values themselves.
    spread = float(np.std(values)) if values.min() < values.max() else 0.0
    return float(np.mean(values)), spread if spread > _LEAST_SPREAD else 0.0


def _standardised(values: Array, mean: float, scale: float) -> Array:
    return (values - mean) / scale if scale else np.zeros_like(values)


def _vocabulary(table: Table, name: str, rows: npt.NDArray[np.int64]) -> tuple[str, ...]:
    texts = table.texts(name)
    words = sorted({texts[row] for row in rows})
    if len(words) > MOST_CATEGORIES:
        raise table.refuse(
            f"to have at most {MOST_CATEGORIES} different texts in column {name!r}",
            f"{len(words):,} in {len(rows):,} rows",
            f"Leave the column out (drop={(name,)!r}) or group its values",
        )
    return tuple(words)


def _codes(table: Table, name: str, categories: tuple[str, ...]) -> Array:
    place = {category: number for number, category in enumerate(categories)}
    texts = table.texts(name)
    try:
        return np.array([place[text] for text in texts], np.float64)
    except KeyError as unknown:
        row = texts.index(unknown.args[0])
        raise table.refuse(
            f"to have one of {listed(categories)} in column {name!r}", f"{texts[row]!r} in {table.place(row)}"
        ) from None
