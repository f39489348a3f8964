"""A table from a CSV or a Parquet file.

Whatever is wrong with a file gets `InputError` that names the file and, where there is one, the line and the column.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bayesdp.data.table import Column, Table
from bayesdp.errors import InputError

TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".pq")

_INDEX = "Leave the column of row numbers out (pandas: index=False)"


def read_table(path: Path) -> Table:
    """The columns of a CSV (comma, semicolon or tab; the first line names the columns) or Parquet file.

    Bad input: no such file, an ending other than `TABLE_ENDINGS`, a damaged file, columns without a name or with
    the same one, a row with another number of cells, no rows: `InputError`.
    """
    source = f"data={str(path)!r}"
    try:
        table = _csv(source, path) if path.suffix.lower() in (".csv", ".tsv") else _parquet(source, path)
    except OSError as problem:
        raise unreadable(source, problem) from None
    if not len(table):
        raise table.refuse("to hold at least one row", "none")
    return table


def unreadable(source: str, problem: OSError) -> InputError:
    """The error for a file that cannot be opened."""
    return InputError(f"Expected {source} to be a readable file, got: {problem.strerror or 'another kind of file'}.")


# --- CSV --------------------------------------------------------------------------------------------------------


def _csv(source: str, path: Path) -> Table:
    lines: list[int] = []
    rows: list[list[str]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=first.count), strict=True)
            names = _header(source, next(reader, []))
            for cells in reader:
                if not cells:
                    continue  # a blank line
                if len(cells) != len(names):
                    raise InputError(
                        f"Expected {source} to have {len(names)} cells in every row, as in its header, "
                        f"got {len(cells)} in line {reader.line_num}. A text that holds a comma must stand in quotes."
                    )
                lines.append(reader.line_num)
                rows.append(cells)
    except UnicodeDecodeError:
        raise InputError(
            f"Expected {source} to be a CSV file in UTF-8, got another encoding or kind of file."
        ) from None
    except csv.Error as problem:
        raise InputError(f"Expected {source} to be a CSV file, got {problem} in line {reader.line_num}.") from None
    columns: dict[str, Column] = {
        name: [cell.strip() for cell in cells] for name, cells in zip(names, zip(*rows, strict=True), strict=False)
    }
    return Table(source, columns or {name: [] for name in names}, lambda row: f"line {lines[row]}")


def _header(source: str, cells: list[str]) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    if not names:
        raise InputError(f"Expected {source} to begin with a line that names its columns, got an empty line or file.")
    if all(map(_is_number, names)):
        raise InputError(
            f"Expected {source} to begin with a line that names its columns, got numbers ({', '.join(names[:5])}…). "
            "Add such a line."
        )
    return _distinct(source, names)


def _distinct(source: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if "" in names:
        raise InputError(
            f"Expected {source} to name every column, got no name for column {names.index('') + 1}. {_INDEX}."
        )
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InputError(f"Expected {source} to give each column its own name, got {times} columns called {name!r}.")
    return names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --- Parquet ----------------------------------------------------------------------------------------------------


def _parquet(source: str, path: Path) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            f"Expected {source} to be CSV or NPZ where pyarrow is not installed, got Parquet. "
            'Run: pip install "bayesdp[parquet]".'
        ) from None
    try:
        with path.open("rb") as raw:
            table = parquet.read_table(raw)
    except (pyarrow.ArrowException, OSError) as problem:
        if isinstance(problem, OSError) and problem.strerror:  # missing, a folder, not allowed
            raise
        raise InputError(f"Expected {source} to be a Parquet file, got a damaged one or something else.") from None
    names = _distinct(source, tuple(table.column_names))
    columns = {
        name: _parquet_column(source, pyarrow, name, cells) for name, cells in zip(names, table.columns, strict=True)
    }
    return Table(source, columns, lambda row: f"row {row + 1}")


def _parquet_column(source: str, pyarrow: Any, name: str, cells: Any) -> Column:
    if name.startswith("__index_level_"):
        raise InputError(f"Expected {source} to hold named columns only, got the index {name!r}. {_INDEX}.")
    types, kind = pyarrow.types, cells.type
    if types.is_dictionary(kind):
        cells, kind = cells.cast(kind.value_type), kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = cells.cast(pyarrow.float64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
    if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
        return ["" if cell is None else str(cell).strip() for cell in cells.to_pylist()]
    raise InputError(
        f"Expected {source} to hold numbers, texts and truth values, got {kind} in column {name!r}. "
        "Turn the column into numbers or leave it out."
    )
