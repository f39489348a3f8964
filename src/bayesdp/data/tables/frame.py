"""A table from a data frame in memory: pandas, polars, or whatever names its columns and gives each by its name.

Neither library is needed here: a column is whatever NumPy makes an array of.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bayesdp.data.table import Column, Table
from bayesdp.errors import Argument, unfit


@runtime_checkable
class Frame(Protocol):
    """A data frame: names of columns, and a column for each name."""

    @property
    def columns(self) -> Any: ...
    def __getitem__(self, name: Any, /) -> Any: ...
    def __len__(self) -> int: ...


def frame_table(frame: Frame) -> Table:
    """The columns of a frame; its index is no column.

    Bad input: names that are not distinct, no rows, or columns of something else than numbers, texts, dates and truth
    values: `InputError`.
    """
    source = Argument("data", type(frame).__name__)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise unfit(source, "to give each column its own name", f"{names.count(twice)} columns called {twice!r}")
    columns = {
        name: _column(source, name, np.asarray(frame[label])) for name, label in zip(names, frame.columns, strict=True)
    }
    table = Table(source, columns, lambda row: f"row {row + 1}")
    if not len(table):
        raise table.unfit("to hold at least one row", "none")
    return table


def _column(source: Argument, name: str, cells: npt.NDArray[Any]) -> Column:
    if cells.ndim == 1 and cells.dtype.kind in "fiu":
        return cells.astype(np.float64)
    if cells.ndim == 1 and cells.dtype.kind == "M":
        words = np.datetime_as_string(cells.astype("datetime64[s]"))
        return ["" if word == "NaT" else str(word).removesuffix("T00:00:00") for word in words]
    if cells.ndim != 1 or cells.dtype.kind not in "bOUT":
        raise unfit(
            source,
            "to hold numbers, texts, dates and truth values",
            f"{cells.dtype} in column {name!r}",
            "Turn the column into numbers or leave it out.",
        )
    values = cells.tolist()
    told = [value for value in values if not _is_absent(value)]
    if told and all(map(_is_number, told)):
        return np.array([np.nan if _is_absent(value) else float(value) for value in values])
    return ["" if _is_absent(value) else str(value).strip() for value in values]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_absent(value: object) -> bool:
    # pandas has three more ways to say so, one of which refuses to be compared.
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )
