"""A table of columns and what is said about it, as Parquet, CSV or JSON: whole or not at all, for its owner only.

    .parquet   columns; the rest as JSON in the schema's metadata under "bayesdp" (needs pyarrow)
    .csv       columns and one more, "about", that holds the rest as JSON in one row and is empty in the others,
               so that any program reads the file as a table without being told of a comment
    .json      {"about": {...}, "columns": {name: [...]}}

An infinite number is "inf" in CSV and JSON.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesdp import errors, storage
from bayesdp.errors import InputError
from bayesdp.report.part import plain
from bayesdp.report.records.cells import escaped, unescaped

ENDINGS = (".parquet", ".csv", ".json")
_KEY = b"bayesdp"
_TRUTH = {"true": True, "false": False}

Columns = dict[str, list[Any]]


def ending(path: str | Path) -> str:
    """How `path` ends, if it is one of `ENDINGS`."""
    found = Path(path).suffix.lower()
    if found not in ENDINGS:
        raise errors.refuse("path", str(path), f"to end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    return found


def write(path: str | Path, columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> Path:
    """Write both to `path`, in the format that it ends in.

    Bad input: another ending, no pyarrow for Parquet, or a path that cannot be written to get `InputError`.
    """
    encode = {".parquet": _to_parquet, ".csv": _to_csv, ".json": _to_json}[ending(path)]
    return storage.replace(Path(path), encode(columns, about), private=True)


def read(path: str | Path) -> tuple[Columns, dict[str, Any]]:
    """What `write` wrote: columns and about. Whole numbers and truth values in CSV are texts still: see `typed`.

    Bad input: a file that is missing, damaged, or was not written by `write` gets `InputError`.
    """
    decode = {".parquet": _from_parquet, ".csv": _from_csv, ".json": _from_json}[ending(path)]
    try:
        columns, about = decode(Path(path).read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as problem:
        if isinstance(problem, InputError):
            raise
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else "It is damaged or another one."
        raise errors.refuse("path", str(path), "to be a table of records that bayesdp wrote", why) from None
    return columns, about


def typed(kind: type, cells: list[Any]) -> list[Any]:
    """The texts among the cells, of a CSV, as `kind`: int, float or bool. What is none stays, for a check to refuse."""
    if kind is bool:
        return [_TRUTH.get(cell, cell) if isinstance(cell, str) else cell for cell in cells]
    try:
        return [kind(cell) if isinstance(cell, str) else cell for cell in cells]
    except ValueError:
        return cells


def _to_json(columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> bytes:
    return (_json({"about": about, "columns": columns}) + "\n").encode()


def _from_json(content: bytes) -> tuple[Columns, dict[str, Any]]:
    found = json.loads(content)
    return {name: list(cells) for name, cells in found["columns"].items()}, dict(found["about"])


def _to_csv(columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> bytes:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*map(escaped, columns), "about"])
    for place, cells in enumerate(zip(*columns.values(), strict=True)):
        lines.writerow([*map(_cell, cells), "" if place else _json(about)])
    return text.getvalue().encode()


def _from_csv(content: bytes) -> tuple[Columns, dict[str, Any]]:
    heads, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    columns = {
        unescaped(head): [unescaped(cell) for cell in cells]
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
    }
    (about,) = filter(None, columns.pop("about"))  # the first row's, until somebody sorts the file
    return columns, dict(json.loads(about))


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return escaped(value) if isinstance(value, str) else value


def _to_parquet(columns: Mapping[str, Sequence[Any]], about: Mapping[str, Any]) -> bytes:
    pyarrow, parquet = _arrow()
    table = pyarrow.table({name: list(cells) for name, cells in columns.items()})
    content = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({_KEY: _json(about).encode()}), content)
    return content.getvalue()


def _from_parquet(content: bytes) -> tuple[Columns, dict[str, Any]]:
    pyarrow, parquet = _arrow()
    try:
        table = parquet.read_table(io.BytesIO(content))
    except pyarrow.ArrowException as problem:
        raise ValueError(str(problem)) from None
    return table.to_pydict(), dict(json.loads(table.schema.metadata[_KEY]))


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "Expected pyarrow to be installed for a .parquet file, got none. "
            'Run: pip install "bayesdp[parquet]", or take a name that ends in .csv or .json.'
        ) from None
    return pyarrow, parquet


def _json(value: Any) -> str:
    return json.dumps(plain(value), allow_nan=False, ensure_ascii=False)
