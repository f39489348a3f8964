"""What is known of columns beforehand: the range of a number, the levels of a text.

    --bounds age=0,110          (value − 55) / (110/√12), the value clipped to the range first
    --levels smoker=no,yes      one feature for each level; any other value gets zeros
    --bounds-file known.json    {"age": [0, 110], "smoker": ["no", "yes"]}
    --bounds-file known.csv     column,low,high[,levels]   with levels such as no|yes

Nothing here looks at the data: what is declared costs no privacy.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bayesdp.data.dataset import Task
from bayesdp.data.table import LARGEST, Table
from bayesdp.errors import Argument, refuse, unfit, unmet

Range: TypeAlias = tuple[str, float, float]
Levels: TypeAlias = tuple[str, tuple[str, ...]]

MOST_LEVELS = 1000
"""More levels than this in one column are no features any more."""

SIZE = math.sqrt(12)
"""A range is divided so that a uniform value has standard deviation 1, as other features have; measured in results."""

_FORM = "a JSON object of [low, high] or a list of levels by column, or a CSV with the columns column, low, high"


@dataclass(frozen=True)
class Declared:
    """Ranges and levels by column.

    Bad input: a range whose low is not below its high, levels that are none, empty or repeated, a column that is named
    twice: `InputError`.
    """

    bounds: tuple[Range, ...] = ()
    levels: tuple[Levels, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(map(_range, self.bounds)))
        object.__setattr__(self, "levels", tuple(map(_levels, self.levels)))
        seen: set[str] = set()
        for argument, names in (
            ("bounds", [one[0] for one in self.bounds]),
            ("levels", [one[0] for one in self.levels]),
        ):
            for name in names:
                if name in seen:
                    raise refuse(argument, name, "to name each column once", got=f"{name!r} twice")
                seen.add(name)

    def __bool__(self) -> bool:
        return bool(self.bounds or self.levels)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """(low, high) by column."""
        return {name: (low, high) for name, low, high in self.bounds}

    @property
    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        """Levels by column."""
        return dict(self.levels)

    def task_of(self, target: str, task: Task | None) -> Task | None:
        """A target with a range is a quantity. Bad input: one that is to be classified."""
        if target not in self.ranges:
            return task
        if task == "classification":
            raise refuse("bounds", target, f"to be left out for a target of {Argument('task', task)}")
        return "regression"

    def check(self, table: Table, left_out: Sequence[str], texts: Sequence[str]) -> None:
        """Refuse columns that `table` does not have or that are left out, and ranges of `texts`."""
        for argument, names in (("bounds", self.ranges), ("levels", self.vocabularies)):
            for name in names:
                if table.need(argument, name) in left_out:
                    raise refuse(argument, name, f"to name columns that are used, unlike {Argument('drop', (name,))}")
        for name in self.ranges:
            if name in texts:
                raise refuse(
                    "bounds",
                    name,
                    f"to name columns of numbers of {table.source}",
                    f"Use {Argument('levels', name)} for its levels.",
                    got=f"{name!r}, a column of texts",
                )


def middle_and_scale(low: float, high: float) -> tuple[float, float]:
    """What values of a declared range are centred at and divided by."""
    return (low + high) / 2, (high - low) / SIZE


def typed(bounds: Iterable[str], levels: Iterable[str], file: str | Path | None = None) -> Declared:
    """From the words of the command line. Bad input: another form gets `InputError`."""
    ranges, known = _file(Path(file)) if file is not None else ([], [])
    return Declared(
        (*ranges, *map(_typed_range, bounds)),
        (*known, *map(_typed_levels, levels)),
    )


def _typed_range(text: str) -> Range:
    name, separator, ends = text.rpartition("=")
    try:
        low, high = map(float, ends.split(","))
    except ValueError:
        separator = ""
    if not separator or not name.strip():
        raise refuse("bounds", text, "to read COLUMN=LOW,HIGH", "For example age=0,110.")
    return name.strip(), low, high


def _typed_levels(text: str) -> Levels:
    name, separator, values = text.partition("=")
    if not separator or not name.strip():
        raise refuse("levels", text, "to read COLUMN=LEVEL,LEVEL,…", "For example smoker=no,yes.")
    return name.strip(), tuple(value.strip() for value in values.split(","))


def _file(path: Path) -> tuple[list[Range], list[Levels]]:
    source = Argument("bounds_file", str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise unfit(source, "to be a readable file", f"{problem.strerror or 'another kind of file'}") from None
    except UnicodeDecodeError:
        raise unfit(source, f"to be {_FORM}", "another encoding or kind of file") from None
    try:
        entries = _csv_entries(text) if path.suffix.lower() == ".csv" else json.loads(text).items()
        ranges: list[Range] = []
        known: list[Levels] = []
        for name, value in entries:
            if len(value) == 2 and not any(isinstance(one, str) for one in value):
                ranges.append((str(name), float(value[0]), float(value[1])))
            elif value and all(isinstance(one, str) for one in value):
                known.append((str(name), tuple(value)))
            else:
                raise ValueError(f"{value!r} for {name!r}")
    except (ValueError, TypeError, AttributeError, KeyError) as problem:
        raise unfit(source, f"to be {_FORM}", f"something else ({problem})") from None
    return ranges, known


def _csv_entries(text: str) -> list[tuple[str, list[Any]]]:
    entries: list[tuple[str, list[Any]]] = []
    for row in csv.DictReader(text.splitlines(), strict=True):
        levels = (row.get("levels") or "").strip()
        ends = [float(row[end]) for end in ("low", "high") if (row[end] or "").strip()]
        entries.append((row["column"].strip(), levels.split("|") if levels else ends))
    return entries


def _range(one: Sequence[Any]) -> Range:
    name, low, high = str(one[0]), float(one[1]), float(one[2])
    if not (math.isfinite(low) and math.isfinite(high) and low < high and max(-low, high) <= LARGEST):
        raise unmet("bounds", name, f"low below high for {name!r}, both of at most {LARGEST:g}", f"{low:g}, {high:g}")
    return name, low, high


def _levels(one: Sequence[Any]) -> Levels:
    name, levels = str(one[0]), tuple(map(str, one[1]))
    if "" in levels or not 0 < len(levels) <= MOST_LEVELS or len(set(levels)) < len(levels):
        expected = f"1 to {MOST_LEVELS} different levels for {name!r}, none of them empty"
        raise unmet("levels", name, expected, ",".join(levels[:20]) or "none")
    return name, levels
