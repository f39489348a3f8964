"""A table of named columns, each of numbers or of texts, that can say where in the file a bad cell stands."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bayesdp.errors import Array, InputError

Column: TypeAlias = Array | list[str]
"""Numbers with NaN where the file has none, or cells as they are written, empty where there is none."""

LARGEST = 1e18
"""Larger numbers are refused: standardised or not, a feature then fits single precision."""

_NONE = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
"""What an absent number is written as."""

_FILL = (
    "Fill it in or leave the row out; a value that is computed from other rows for it is one more thing declared public"
)


@dataclass(frozen=True)
class Table:
    """Columns of equal length. `source` names the file in messages, `place(row)` a row in it ("line 3")."""

    source: str
    columns: Mapping[str, Column]
    place: Callable[[int], str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def refuse(self, expected: str, got: str, hint: str = "") -> InputError:
        return InputError(f"Expected {self.source} {expected}, got {got}." + (f" {hint}." if hint else ""))

    def need(self, argument: str, name: str) -> str:
        """`name` if there is such a column, else an error that lists what there is."""
        if name in self.columns:
            return name
        close = difflib.get_close_matches(name, self.names, 1, 0.6)
        raise InputError(
            f"Expected {argument} to name a column of {self.source}, got {argument}={name!r}."
            + (f" Did you mean {close[0]!r}?" if close else "")
            + f" Its columns are {listed(self.names)}."
        )

    def is_numeric(self, name: str) -> bool:
        """Whether the column holds numbers; `InputError` if it holds numbers and texts."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return True
        number = {cell: _is_number(cell) for cell in set(cells)}
        if not any(number.values()):
            return False
        for row, cell in enumerate(cells):
            if not number[cell] and cell.lower() not in _NONE:
                raise self.refuse(
                    f"to hold either numbers or texts in column {name!r}",
                    f"{cell!r} in {self.place(row)} beside numbers",
                    f"Correct the cell, or name the column in categories={(name,)!r} to take each value as a text",
                )
        return True

    def numbers(self, name: str) -> Array:
        """The column as finite numbers; `InputError` for the first cell that is none."""
        cells = self.columns[name]
        values = cells if isinstance(cells, np.ndarray) else self._parsed(name, cells)
        good = np.abs(values) <= LARGEST  # False for NaN
        if not good.all():
            row = int(np.argmin(good))
            if math.isnan(values[row]):
                raise self._absent(name, row)
            raise self.refuse(
                f"to hold finite numbers up to {LARGEST:g} in column {name!r}",
                f"{float(values[row])} in {self.place(row)}",
            )
        return values

    def texts(self, name: str) -> list[str]:
        """The column as texts, none of them empty; a whole number is written without a point."""
        cells = self.columns[name]
        texts = list(map(written, cells.tolist())) if isinstance(cells, np.ndarray) else cells
        if "" in texts:
            raise self._absent(name, texts.index(""))
        return texts

    def _parsed(self, name: str, cells: list[str]) -> Array:
        values = np.empty(len(cells))
        for row, cell in enumerate(cells):
            try:
                values[row] = float(cell)
            except ValueError:
                if cell.lower() not in _NONE:
                    raise self.refuse(
                        f"to hold numbers in column {name!r}", f"{cell!r} in {self.place(row)}", "Correct the cell"
                    ) from None
                values[row] = math.nan
        return values

    def _absent(self, name: str, row: int) -> InputError:
        return self.refuse("to have a value in every cell", f"none in {self.place(row)}, column {name!r}", _FILL)


def written(value: float) -> str:
    """A number as a text: `3`, not `3.0`; nothing for NaN."""
    if math.isnan(value):
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def listed(names: tuple[str, ...], most: int = 20) -> str:
    """Names in quotes, cut short after `most`."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _is_number(cell: str) -> bool:
    """Whether a cell is a number. NaN counts as absent, as in a text that happens to be "nan"."""
    try:
        return not math.isnan(float(cell))
    except ValueError:
        return False
