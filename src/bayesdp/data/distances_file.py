"""A file of distances, step by step: rows are steps, columns records (CSV, NPZ or Parquet).

A distance is how far a record moves the update of a step: its clipped gradient norm. Each format has a reader
that yields one `Step` per row; `read` picks the reader by the file's ending and checks what it yields. Whatever is
wrong with a file gets `InputError` that names the file and, where there is one, the row and the column.

Columns called noise_std, noise_multiplier or sampling_rate (in an NPZ, arrays (steps,) of these names) are no records:
they say what that step was made with. Files are read a piece at a time and may be larger than memory.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp.data.table import is_number
from bayesdp.errors import Argument, InputError, named, refuse, unfit
from bayesdp.storage.array_blocks import ArrayFiles, open_arrays

_LOW_PRECISION = (np.float32, np.float16)

PLAN = ("noise_std", "noise_multiplier", "sampling_rate")
"""What a file may say of each step, beside its distances."""


@dataclass(frozen=True)
class Step:
    """One row: `distances` (records,), in single precision if the file is, so that the accountant can tell.

    `place` says where it stands ("line 3"), `names` are the records', `read` is the share of the file behind us.
    """

    place: str
    names: tuple[str, ...]
    distances: npt.NDArray[np.floating[Any]]
    read: float
    plan: Mapping[str, float] = field(default_factory=dict)

    def split(self) -> Step:
        """The same with the columns of the plan apart, single-precision ones rounded to what costs more."""
        columns = {name: i for i, name in enumerate(self.names) if name in PLAN}
        if not columns:
            return self
        low = self.distances.dtype in _LOW_PRECISION
        slack = {name: 1 + (1e-6 if name == "sampling_rate" else -1e-6) * low for name in PLAN}
        plan = {name: float(self.distances[i]) * slack[name] for name, i in columns.items()}
        if "sampling_rate" in plan and low:
            plan["sampling_rate"] = min(
                plan["sampling_rate"], max(1.0, float(self.distances[columns["sampling_rate"]]))
            )
        kept = [i for i, name in enumerate(self.names) if name not in PLAN]
        return replace(self, names=tuple(self.names[i] for i in kept), distances=self.distances[kept], plan=plan)


@dataclass(frozen=True)
class Source:
    """A file as the user named it: `name` is the argument that it was given as, "file" or "members"."""

    name: str
    path: Path
    array: str | None = None
    header: bool | None = None

    @property
    def argument(self) -> Argument:
        return Argument(self.name, str(self.path))

    def unfit(self, expected: str, got: str) -> InputError:
        return unfit(self.argument, expected, got)


Reader = Callable[[Source], Iterator[Step]]


def read(source: Source) -> Iterator[Step]:
    """The steps of a file, finite and not negative, the same records in each.

    CSV: numbers separated by commas; a first line without any number names the records, `header` settles it when
    that guess is wrong; lines that begin with # are comments. NPZ (or NPY): one array (steps, records), the one
    called `array` if there are several; nothing pickled is loaded. Parquet: numeric columns, needs pyarrow.

    Bad input: see the module; an ending that is none of these, a file without steps, or `array` for another
    format than NPZ.
    """
    readers: dict[str, Reader] = {".csv": _csv, ".npz": _npz, ".npy": _npz, ".parquet": _parquet, ".pq": _parquet}
    reader = readers.get(source.path.suffix.lower())
    if reader is None:
        raise source.unfit("to end in .csv, .npz, .npy or .parquet", f"{source.path.suffix or 'no ending'!r}")
    if source.array is not None and source.path.suffix.lower() != ".npz":
        raise refuse(
            "array", source.array, f"to be left out unless {named(source.name)} is an NPZ", got=f"{str(source.path)!r}"
        )
    if source.header is not None and reader is not _csv:
        raise refuse(
            "header", source.header, f"to be left out unless {named(source.name)} is a CSV", got=f"{str(source.path)!r}"
        )
    steps = 0
    try:
        for step in map(Step.split, reader(source)):
            if not step.names:
                raise source.unfit("to hold at least one record (column)", "none")
            _check(source, step)
            steps += 1
            yield step
    except OSError as problem:
        raise source.unfit("to be a readable file", problem.strerror or "another kind of file") from None
    if not steps:
        raise source.unfit("to hold at least one step (row)", "none")


def _check(source: Source, step: Step) -> None:
    good = np.isfinite(step.distances) & (step.distances >= 0)
    if not good.all():
        column = int(np.argmin(good))
        raise _bad_cell(source, step.place, column, step.names, _kind(float(step.distances[column])))


def _bad_cell(source: Source, place: str, column: int, names: tuple[str, ...], got: str) -> InputError:
    called = "" if names[column] == _numbered(column) else f" ({names[column]!r})"
    return source.unfit("to hold finite numbers >= 0", f"{got} in {place}, column {column + 1}{called}")


def _kind(value: float) -> str:
    """What is wrong with a number, without the number: a norm of somebody's gradient has no place in a log."""
    return "a negative number" if math.isfinite(value) else "nan" if math.isnan(value) else "inf"


def _numbered(column: int) -> str:
    return f"column {column + 1}"


def _unnamed(columns: int) -> tuple[str, ...]:
    return tuple(map(_numbered, range(columns)))


# --- CSV --------------------------------------------------------------------------------------------------------


def _csv(source: Source) -> Iterator[Step]:
    names: tuple[str, ...] | None = None
    with source.path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as text:
        size = os.fstat(raw.fileno()).st_size
        for place, cells in _csv_lines(source, text):
            if names is None:
                heads = _heads(source, place, cells)
                names = heads or _unnamed(len(cells))
                if heads:
                    continue
            if len(cells) != len(names):
                raise source.unfit(
                    f"to have one number for each of its {len(names)} records in every row",
                    f"{len(cells)} in {place}",
                )
            yield Step(place, names, _numbers(source, place, names, cells), raw.tell() / size if size else 0.0)


def _csv_lines(source: Source, text: io.TextIOWrapper) -> Iterator[tuple[str, list[str]]]:
    """Lines with their numbers as an editor shows them. A blank line may only stand at the end."""
    blank = 0
    try:
        for number, line in enumerate(text, 1):
            if line.startswith("#"):
                continue
            if not line.strip():
                blank = number
                continue
            if blank:
                raise source.unfit("to have a number for each record in every row", f"a blank line {blank}")
            yield f"line {number}", next(csv.reader((line,)))
    except (UnicodeDecodeError, csv.Error):
        raise source.unfit("to be text in UTF-8, numbers separated by commas", "something else") from None


def _heads(source: Source, place: str, cells: list[str]) -> tuple[str, ...]:
    """The records' names if this first line has them, else ()."""
    numeric = [is_number(cell) for cell in cells]
    header = source.header
    if header is None:
        if any(numeric) and not all(numeric):
            raise source.unfit(
                "to begin with a line of numbers or of names",
                f"both in {place} (a text beside numbers). If they are names give {named('header')}; an index "
                "column must go",
            )
        header = not any(numeric)
    if header and not all(cell.strip() for cell in cells):
        raise source.unfit(
            "to name every record in its header",
            f"an empty name in {place}. A column of row numbers must go (pandas: to_csv(…, index=False))",
        )
    return tuple(cell.strip() for cell in cells) if header else ()


def _numbers(source: Source, place: str, names: tuple[str, ...], cells: list[str]) -> npt.NDArray[np.float64]:
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        column = [is_number(cell) for cell in cells].index(False)
        raise _bad_cell(source, place, column, names, "a text" if cells[column].strip() else "nothing") from None


# --- NPZ --------------------------------------------------------------------------------------------------------


def _npz(source: Source) -> Iterator[Step]:
    try:
        with open_arrays(source.path) as found:
            yield from _rows(source, found)
    except (OSError, InputError):
        raise
    except Exception:  # NumPy, zipfile and the parsers below them promise no one kind of error for a damaged file.
        raise source.unfit("to be an NPZ file of numbers", "one that is damaged, pickled or something else") from None


def _rows(source: Source, found: ArrayFiles) -> Iterator[Step]:
    name = _chosen(source, found)
    if not found.is_array(name):
        raise source.unfit("to hold an array of numbers of shape (steps, records)", "no array")
    shape, dtype = found.header(name)
    if dtype.hasobject:
        raise ValueError("pickled")
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise source.unfit("to hold an array of numbers of shape (steps, records)", f"shape {shape} of {dtype}")
    if shape[1] == 0:
        raise source.unfit("to hold at least one record (column)", f"shape {shape}")
    beside = {one: found.whole(one) for one in PLAN if one in found.names and one != name}
    for one, values in beside.items():
        if values.shape != shape[:1] or values.dtype.kind not in "fiu":
            raise source.unfit(f"to hold {one} as an array of {shape[0]} numbers", f"shape {values.shape}")
    kept = dtype if dtype.type in _LOW_PRECISION else np.dtype(np.float64)
    names, row = _unnamed(shape[1]), 0
    for block in found.blocks(name):
        for distances in block.astype(kept, copy=False):
            plan = {one: float(values[row]) for one, values in beside.items()}
            row += 1
            yield Step(f"row {row}", names, distances, row / shape[0], plan)


def _chosen(source: Source, found: ArrayFiles) -> str:
    """The name of the array of distances."""
    names = [one for one in found.names if one not in PLAN]
    if source.array is None:
        if len(names) == 1:
            return names[0]
        shown = ", ".join(map(repr, found.names)) or "no array"
        raise source.unfit(f"to hold one array, or {named('array')} to name one", shown)
    if source.array in found.names:
        return source.array
    shown = ", ".join(map(repr, found.names)) or "no array"
    raise InputError(
        f"Expected {named('array')} to name an array of {source.path.name}: {shown}; got "
        f"{Argument('array', source.array)}.",
        argument="array",
        value=source.array,
        expected=f"to name an array of {source.path.name}: {shown}",
    )


# --- Parquet ----------------------------------------------------------------------------------------------------


def _parquet(source: Source) -> Iterator[Step]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise source.unfit(
            "to be CSV or NPZ where pyarrow is not installed", 'Parquet. Run: pip install "bayesdp[parquet]"'
        ) from None
    try:
        with source.path.open("rb") as raw, parquet.ParquetFile(raw) as file:
            dtype = _parquet_precision(source, pyarrow, file.schema_arrow)
            names, total, row = tuple(file.schema_arrow.names), file.metadata.num_rows, 0
            # About a million numbers at a time.
            for batch in file.iter_batches(batch_size=max(1, 2**20 // len(names))):
                columns = [column.to_numpy(zero_copy_only=False).astype(dtype) for column in batch.columns]
                for distances in np.column_stack(columns):
                    row += 1
                    yield Step(f"row {row}", names, distances, row / total)
    except (pyarrow.ArrowException, OSError) as problem:
        if isinstance(problem, OSError) and problem.strerror:  # missing, a folder, not allowed
            raise
        raise source.unfit("to be a Parquet file that can be read", "a damaged one or something else") from None


def _parquet_precision(source: Source, pyarrow: Any, schema: Any) -> type[np.floating[Any]]:
    """float32 when any column is single precision: the accountant's allowance for it covers the others' rounding."""
    if not schema.names:
        raise source.unfit("to hold at least one record (column)", "none")
    types = pyarrow.types
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name.startswith("__index_level_"):
            raise source.unfit(
                "to hold records only", f"the index column {name!r} (pandas: to_parquet(…, index=False))"
            )
        if not (types.is_floating(kind) or types.is_integer(kind)):
            raise source.unfit("to hold numbers", f"column {name!r} of {kind}")
    low = any(types.is_float32(kind) or types.is_float16(kind) for kind in schema.types)
    return np.float32 if low else np.float64
