"""Records from an NPZ file: arrays `x` and `y`, and if there are test records `x_test` and `y_test`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp.data.table import Column, Table, listed
from bayesdp.data.table_file import unreadable
from bayesdp.errors import Argument, refuse, unfit

NUMBERS = "fiub"
"""Kinds of array that hold numbers: floating, integer, unsigned, truth values."""

_KNOWN = ("x", "y", "x_test", "y_test")
_BROKEN = (ValueError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, MemoryError, KeyError)


@dataclass(frozen=True)
class Records:
    """`x` (records, …) and `y` (records,): the training records, and after them test records if the file has any."""

    source: Argument
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    training: int

    @property
    def has_test(self) -> bool:
        return len(self.x) > self.training

    def place(self, row: int) -> str:
        return f"record {row}" if row < self.training else f"test record {row - self.training}"

    def labels(self) -> Table:
        """`y` as a table of one column."""
        column: Column
        if self.y.dtype.kind in "fiu":
            column = self.y.astype(np.float64)
        elif self.y.dtype.kind in "Ub":
            column = [str(value).strip() for value in self.y]
        else:
            raise unfit(self.source, "to hold numbers or texts in y", f"{self.y.dtype}")
        return Table(self.source, {"y": column}, self.place)

    def features(self) -> Table:
        """`x` as a table of columns x0, x1, …"""
        return feature_table(self.source, self.x, tuple(f"x{number}" for number in range(self.x.shape[1])), self.place)


def read_records(path: Path) -> Records:
    """The records of an NPZ; nothing pickled is loaded.

    Bad input: a damaged file, a missing array, features and labels of different number, test records of another
    shape, `x_test` without `y_test`: `InputError`.
    """
    source = Argument("data", str(path))
    arrays = _read(source, path, ("x", "y"))
    x, y = _pair(source, arrays, "")
    halves = [name for name in _KNOWN[2:] if name in arrays]
    if not halves:
        return Records(source, x, y, len(x))
    if len(halves) == 1:
        raise unfit(source, "to hold both x_test and y_test or none", f"{halves[0]} only")
    x_test, y_test = _pair(source, arrays, "_test")
    if x_test.shape[1:] != x.shape[1:]:
        raise unfit(source, f"with records of shape {x.shape[1:]} in x_test too", f"{x_test.shape[1:]}")
    if (x.dtype.kind in NUMBERS, y.dtype.kind in NUMBERS) != (
        x_test.dtype.kind in NUMBERS,
        y_test.dtype.kind in NUMBERS,
    ):
        raise unfit(source, "with x_test and y_test of the kind of x and y", "texts beside numbers")
    # Pixels of another type than the training ones would be scaled otherwise.
    if x_test.dtype != x.dtype:
        raise unfit(source, f"with x_test of the type of x, {x.dtype}", f"{x_test.dtype}")
    return Records(source, np.concatenate([x, x_test]), np.concatenate([y, y_test]), len(x))


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array `x` of an NPZ. Bad input: see `read_records`."""
    return _read(Argument("data", str(path)), path, ("x",))["x"]


def read_named(path: Path, name: str, argument: str) -> npt.NDArray[Any]:
    """The array `name` of an NPZ. Bad input: see `read_records`; no such array, which `argument` named."""
    source = Argument("data", str(path))
    arrays = _read(source, path, (), (name,))
    if name not in arrays:
        raise refuse(argument, name, f"to name an array of {source}", got=f"{name!r}")
    return arrays[name]


def feature_table(source: Argument, x: npt.NDArray[Any], names: tuple[str, ...], place: Callable[[int], str]) -> Table:
    """A matrix as a table with these column names. Bad input: texts, or another number of columns."""
    if x.ndim != 2 or x.shape[1] != len(names) or x.dtype.kind not in NUMBERS:
        raise unfit(source, f"to hold numbers of shape (records, {len(names)}) in x", f"{x.shape} of {x.dtype}")
    columns = x.T.astype(np.float64)
    return Table(source, dict(zip(names, columns, strict=True)), place)


def _pair(
    source: Argument, arrays: dict[str, npt.NDArray[Any]], part: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    x, y = arrays[f"x{part}"], arrays[f"y{part}"]
    if x.ndim not in (2, 3, 4) or 0 in x.shape[1:]:
        raise unfit(
            source,
            f"to hold x{part} of shape (records, features), or (records, height, width[, channels]) for images",
            f"shape {x.shape}",
        )
    if y.shape not in ((len(x),), (len(x), 1)):
        raise unfit(
            source,
            f"to hold one label in y{part} for each of the {len(x)} records of x{part}",
            f"shape {y.shape}",
        )
    return x, y.reshape(-1)


def _read(
    source: Argument, path: Path, needed: tuple[str, ...], known: tuple[str, ...] = _KNOWN
) -> dict[str, npt.NDArray[Any]]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            found = tuple(loaded.files)
            arrays = {name: loaded[name] for name in known if name in found}
    except _BROKEN:
        raise unfit(
            source,
            "to be an NPZ file of arrays",
            "one that is damaged, pickled or of another kind",
            "Write it with numpy.savez(file, x=…, y=…).",
        ) from None
    except OSError as problem:
        raise unreadable(source, problem) from None
    if not set(needed) <= set(found):
        raise unfit(
            source,
            f"to hold the arrays {' and '.join(needed)}",
            listed(found) or "none",
            "Write it with numpy.savez(file, x=…, y=…).",
        )
    return arrays
