"""How the columns of a table are read: a plain value that is found once, kept with the model and applied again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bayesdp.data.table import LARGEST, Column, Table, listed
from bayesdp.data.tables.cells import IN_WORDS, KINDS, Kind, Mask, meaning, parse
from bayesdp.data.tables.missing import How
from bayesdp.errors import InputError, one_of, refuse

MISSING = "(missing)"
"""The category of a text that is not there."""


class Cells(NamedTuple):
    """A column without gaps, numbers or texts, and where the table has no value."""

    column: Column
    absent: Mask


@dataclass(frozen=True)
class Reading:
    """How one column is read.

    - `declared`: the user said so, and a cell that is none of this kind counts as missing; where the kind was seen in
      the training records such a cell is refused.
    - `missing`: what is done where there is no value; None: it is refused. `fill`: the value to put in, as written.
    """

    name: str
    kind: Kind
    declared: bool = False
    missing: How | None = None
    fill: str | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        if self.fill is not None and self.kind != "text" and not abs(meaning(self.fill, self.kind)) <= LARGEST:
            raise refuse(
                "missing",
                f"{self.name}={self.missing}:{self.fill}",
                f"to put in what column {self.name!r} can hold: {IN_WORDS[self.kind]}",
            )

    @property
    def centred(self) -> bool:
        """Whether a number that is not there is the middle of the scale."""
        return self.kind != "text" and self.fill is None

    def read(self, table: Table) -> Cells:
        """The column of a table. Bad input: a cell of another kind or without a value, where these are refused."""
        found = self._texts(table) if self.kind == "text" else self._numbers(table)
        if self.missing is None and found.absent.any():
            raise table.absent_cell(self.name, int(np.argmax(found.absent)))
        return found

    def _texts(self, table: Table) -> Cells:
        texts = table.shown(self.name)
        if "" not in texts:
            return Cells(texts, np.zeros(len(texts), bool))
        fill = MISSING if self.fill is None else self.fill
        return Cells([text or fill for text in texts], np.array([not text for text in texts]))

    def _numbers(self, table: Table) -> Cells:
        cells = table.columns[self.name]
        values, misfits = parse(cells, self.kind)
        if misfits.any():
            if not self.declared:
                raise self.misfit(table, int(np.argmax(misfits)))
            values = np.where(misfits, np.nan, values)
        absent = np.isnan(values)
        fill = 0.0 if self.fill is None else meaning(self.fill, self.kind)
        return Cells(np.where(absent, fill, values) if absent.any() else values, absent)

    def misfit(self, table: Table, row: int) -> InputError:
        """What a cell that is none of its kind gets."""
        # A message may end up in a log: it says where the cell is, not what is in it.
        cell = table.columns[self.name][row]
        value = cell if isinstance(cell, float) else meaning(cell, self.kind)
        if not math.isnan(value):
            return table.unfit(
                f"to hold finite numbers up to {LARGEST:g} in column {self.name!r}",
                f"{'inf' if math.isinf(value) else 'a larger one'} in {table.place(row)}",
            )
        words = IN_WORDS[self.kind].partition(", read")[0]
        return table.unfit(
            f"to hold {words} in column {self.name!r}", f"a text in {table.place(row)}", "Correct the cell"
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Reading:
        """What `to_dict` gave. Bad input: anything else raises `TypeError`, `KeyError` or `InputError`."""
        return cls(**state)


class Cleaned(NamedTuple):
    """A table without gaps, and which of its rows are used: the others lack a value that they need."""

    table: Table
    kept: Mask


def cleaned(table: Table, readings: Sequence[Reading]) -> Cleaned:
    """The columns that are read, without gaps.

    Bad input: a column that the table lacks, and see `Reading.read`: `InputError`.
    """
    missing = tuple(reading.name for reading in readings if reading.name not in table.columns)
    if missing:
        raise table.unfit(
            f"to have the columns that the model was trained on: {listed(tuple(one.name for one in readings))}",
            f"none called {listed(missing)}",
        )
    columns: dict[str, Column] = {}
    absent: dict[str, Mask] = {}
    kept = np.ones(len(table), bool)
    for reading in readings:
        column, gaps = reading.read(table)
        columns[reading.name] = column
        if reading.missing is not None:
            absent[reading.name] = gaps
        if reading.missing == "drop":
            kept &= ~gaps
    return Cleaned(Table(table.source, columns, table.place, absent), kept)
