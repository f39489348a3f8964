"""A table from a CSV or a Parquet file.

Whatever is wrong with a file gets `InputError` that names the file and, where there is one, the line and the column.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bayesdp.data.table import Column, Table, is_number
from bayesdp.data.tables.arrow_csv import arrow_columns, line_of
from bayesdp.errors import Argument, InputError, unfit, unprintable

TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".pq")

_INDEX = "Leave the column of row numbers out (pandas: index=False)"


def read_table(path: Path) -> Table:
    """The columns of a CSV (comma, semicolon or tab; the first line names the columns) or Parquet file.

    Bad input: no such file, an ending other than `TABLE_ENDINGS`, a damaged file, columns without a name or with
    the same one, a row with another number of cells, no rows: `InputError`.
    """
    source = Argument("data", str(path))
    try:
        table = _csv(source, path) if path.suffix.lower() in (".csv", ".tsv") else _parquet(source, path)
    except OSError as problem:
        raise unreadable(source, problem) from None
    if not len(table):
        raise table.unfit("to hold at least one row", "none")
    return table


def unreadable(source: Argument, problem: OSError) -> InputError:
    """The error for a file that cannot be opened."""
    return InputError(
        f"Expected {source} to be a readable file, got: {problem.strerror or 'another kind of file'}.",
        argument=source.name,
        value=source.value,
        expected="to be a readable file",
    )


# --- CSV --------------------------------------------------------------------------------------------------------


def _csv(source: Argument, path: Path) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            header = next(reader, [])
            names = _header(source, header)
            columns = arrow_columns(path, header, delimiter)
            if columns is not None:
                by_name: dict[str, Column] = dict(zip(names, columns, strict=True))
                return Table(source, by_name, lambda row: f"line {line_of(path, delimiter, row)}")
            lines = ((reader.line_num, cells) for cells in reader if cells)  # without blank ones
            hint = "A text that holds a comma must stand in quotes."
            return Table.of_lines(source, names, lines, "every row, as in its header", hint)
    except UnicodeDecodeError:
        raise unfit(source, "to be a CSV file in UTF-8", "another encoding or kind of file") from None
    except csv.Error as problem:
        raise unfit(source, "to be a CSV file", f"{problem} in line {reader.line_num}") from None


def _header(source: Argument, cells: list[str]) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    if not names:
        raise unfit(source, "to begin with a line that names its columns", "an empty line or file")
    if all(map(is_number, names)):
        raise unfit(
            source,
            "to begin with a line that names its columns",
            "numbers",
            "Add such a line.",
        )
    return _distinct(source, names)


def _distinct(source: Argument, names: tuple[str, ...]) -> tuple[str, ...]:
    odd = next((place for place, name in enumerate(names, 1) if unprintable(name)), None)
    if odd is not None:
        raise unfit(source, "to name columns without control characters", f"one in the name of column {odd}")
    if "" in names:
        raise unfit(source, "to name every column", f"no name for column {names.index('') + 1}", f"{_INDEX}.")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise unfit(source, "to give each column its own name", f"{times} columns called {name!r}")
    return names


# --- Parquet ----------------------------------------------------------------------------------------------------


def _parquet(source: Argument, path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.compute
        from pyarrow import parquet
    except ImportError:
        raise unfit(
            source,
            "to be CSV or NPZ where pyarrow is not installed",
            "Parquet",
            'Run: pip install "bayesdp[parquet]".',
        ) from None
    try:
        with path.open("rb") as raw:
            table = parquet.read_table(raw)
    except (pyarrow.ArrowException, OSError) as problem:
        if isinstance(problem, OSError) and problem.strerror:  # missing, a folder, not allowed
            raise
        raise unfit(source, "to be a Parquet file", "a damaged one or something else") from None
    names = _distinct(source, tuple(table.column_names))
    columns = {
        name: _parquet_column(source, pyarrow, name, cells) for name, cells in zip(names, table.columns, strict=True)
    }
    return Table(source, columns, lambda row: f"row {row + 1}")


def _parquet_column(source: Argument, pyarrow: Any, name: str, cells: Any) -> Column:
    if name.startswith("__index_level_"):
        raise unfit(source, "to hold named columns only", f"the index {name!r}", f"{_INDEX}.")
    types, kind = pyarrow.types, cells.type
    if types.is_dictionary(kind):
        cells, kind = cells.cast(kind.value_type), kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = cells.cast(pyarrow.float64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
    if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
        return ["" if cell is None else str(cell).strip() for cell in cells.to_pylist()]
    if types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind):
        texts = pyarrow.compute.cast(cells, pyarrow.string()).to_pylist()
        return ["" if cell is None else cell.removesuffix(" 00:00:00") for cell in texts]
    if types.is_null(kind):
        return [""] * len(cells)
    raise unfit(
        source,
        "to hold numbers, texts, dates and truth values",
        f"{kind} in column {name!r}",
        "Turn the column into numbers or leave it out.",
    )
