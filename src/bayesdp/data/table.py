"""A table of named columns, each of numbers or of texts, that can say where in the file a bad cell stands."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.errors import Argument, Array, InputError, refuse, unfit, unprintable

Column: TypeAlias = Array | list[str]
"""Numbers with NaN where the file has none, or cells as they are written, empty where there is none."""

LARGEST = 1e18
"""Larger numbers are refused: standardised or not, a feature then fits single precision."""

ABSENT = frozenset({"", "na", "n/a", "nan", "nat", "<na>", "null", "none", "#n/a", "?", "-", "--", "."})
"""What a number that is not there is written as, in small letters."""

MOST_CATEGORIES = 100
"""More different texts than this in one column are refused: most are then names or numbers of single people."""

_FILL = (
    "Fill it in or leave the row out; a value that is computed from other rows for it is one more thing declared public"
)


@dataclass(frozen=True)
class Table:
    """Columns of equal length. `source` names the file in messages, `place(row)` a row in it ("line 3").

    `absent` says of columns whose gaps were filled where these were (`tables.reading`).
    """

    source: Argument | str
    columns: Mapping[str, Column]
    place: Callable[[int], str]
    absent: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    @classmethod
    def of_lines(
        cls,
        source: Argument | str,
        names: tuple[str, ...],
        lines: Iterable[tuple[int, list[str]]],
        expected: str,
        hint: str,
    ) -> Self:
        """The table whose rows are cells with the number of their line.

        Bad input: a line of another number of cells gets `InputError`, with what was `expected` and a `hint`.
        """
        numbers: list[int] = []
        rows: list[list[str]] = []
        for number, cells in lines:
            if len(cells) != len(names):
                raise unfit(source, f"to have {len(names)} cells in {expected}", f"{len(cells)} in line {number}", hint)
            numbers.append(number)
            rows.append([cell.strip() for cell in cells])
        columns: dict[str, Column] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        return cls(source, columns, lambda row: f"line {numbers[row]}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def unfit(self, expected: str, got: str, hint: str = "") -> InputError:
        return unfit(self.source, expected, got, f"{hint}." if hint else "")

    def need(self, argument: str, name: str) -> str:
        """`name` if there is such a column, else an error that lists what there is."""
        if name in self.columns:
            return name
        close = difflib.get_close_matches(name, self.names, 1, 0.6)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        expected, hint = f"to name a column of {self.source}", f"{meant}Its columns are {listed(self.names)}."
        raise refuse(argument, name, expected, hint, got=str(Argument(argument, name)))

    def is_numeric(self, name: str) -> bool:
        """Whether the column holds numbers; `InputError` if it holds numbers and texts."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return True
        # NaN counts as absent, as in a text that happens to be "nan".
        number = {cell: is_number(cell) and not math.isnan(float(cell)) for cell in set(cells)}
        if not any(number.values()):
            return False
        for row, cell in enumerate(cells):
            if not number[cell] and cell.lower() not in ABSENT:
                raise self.unfit(
                    f"to hold either numbers or texts in column {name!r}",
                    f"a text in {self.place(row)} beside numbers",
                    f"Correct the cell, or name the column in {Argument('categories', (name,))} to take each value as "
                    "a text",
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
                raise self.absent_cell(name, row)
            raise self.unfit(
                f"to hold finite numbers up to {LARGEST:g} in column {name!r}",
                f"{'inf' if math.isinf(values[row]) else 'a larger one'} in {self.place(row)}",
            )
        return values

    def texts(self, name: str) -> list[str]:
        """The column as texts, none of them empty; a whole number is written without a point."""
        texts = self.shown(name)
        if "" in texts:
            raise self.absent_cell(name, texts.index(""))
        odd = {cell for cell in set(texts) if unprintable(cell)}
        if odd:
            place = self.place(next(row for row, cell in enumerate(texts) if cell in odd))
            expected = f"to hold texts without control characters in column {name!r}"
            raise self.unfit(expected, f"one in {place}", "Take it out: no file of a model could hold it")
        return texts

    def _parsed(self, name: str, cells: list[str]) -> Array:
        values = np.empty(len(cells))
        for row, cell in enumerate(cells):
            try:
                values[row] = float(cell)
            except ValueError:
                if cell.lower() not in ABSENT:
                    raise self.unfit(
                        f"to hold numbers in column {name!r}", f"a text in {self.place(row)}", "Correct the cell"
                    ) from None
                values[row] = math.nan
        return values

    def shown(self, name: str) -> list[str]:
        """The cells of a column as texts, empty where there is none."""
        cells = self.columns[name]
        return list(map(written, cells.tolist())) if isinstance(cells, np.ndarray) else cells

    def only(self, rows: npt.NDArray[np.int64]) -> Table:
        """The table of these rows; their places are the ones that they had."""
        columns: dict[str, Column] = {
            name: cells[rows] if isinstance(cells, np.ndarray) else [cells[row] for row in rows]
            for name, cells in self.columns.items()
        }
        return Table(self.source, columns, lambda row: self.place(int(rows[row])))

    def present(self, name: str, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of `rows` that have a value of their own in this column: each for itself, whatever the others have."""
        absent = self.absent.get(name)
        return rows if absent is None else rows[~absent[rows]]

    def absent_cell(self, name: str, row: int) -> InputError:
        """What a cell without a value gets."""
        return self.unfit("to have a value in every cell", f"none in {self.place(row)}, column {name!r}", _FILL)


def written(value: float) -> str:
    """A number as a text: `3`, not `3.0`; nothing for NaN."""
    if math.isnan(value):
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def listed(names: tuple[str, ...], most: int = 20) -> str:
    """Names in quotes, cut short after `most`."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number, NaN among them."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
