"""What a cell means: ways of writing that become numbers by public rules, which take nothing from the data.

number          1234.5   1,234.5   1 234.5   1'234.5   12 %    the sign is a unit: 12
decimal-comma   1234,5   1.234,5   1 234,5   12,5 %
date            2024-03-01   2024-03-01 14:30                  days since 2000-01-01
day-first       01.03.2024   1/3/2024 14:30                    the same
month-first     03/01/2024                                     the same
time            14:30   14:30:05                               hours since midnight
boolean         yes, no, true, false, …                        1 and 0
text            as it is written: a category
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.data.table import ABSENT, LARGEST, Column
from bayesdp.errors import Array

Kind: TypeAlias = Literal["number", "decimal-comma", "date", "day-first", "month-first", "time", "boolean", "text"]
Mask: TypeAlias = npt.NDArray[np.bool_]

ORIGIN = datetime.datetime(2000, 1, 1)
"""Where days are counted from."""

MOSTLY = 0.8
"""A column of words and numbers is taken for one of numbers with a few words in it from this share of numbers on."""

IN_WORDS: dict[Kind, str] = {
    "number": "numbers",
    "decimal-comma": "numbers with decimal commas",
    "date": "dates, read as days since 2000-01-01",
    "day-first": "dates with the day first, read as days since 2000-01-01",
    "month-first": "dates with the month first, read as days since 2000-01-01",
    "time": "times, read as hours since midnight",
    "boolean": "truth values in words, read as 1 and 0",
    "text": "texts",
}

_TRUE = frozenset({"yes", "true", "y", "t", "on", "1", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "sim"})
_FALSE = frozenset({"no", "false", "n", "f", "off", "0", "nein", "falsch", "non", "faux", "não"})

_GAP = "'’  \u00a0\u202f"
_POINT = re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:[,{_GAP}]\d{{3}})+(?:\.\d*)?")
_COMMA = re.compile(rf"[+-]?(?:[1-9]\d{{0,2}}(?:[.{_GAP}]\d{{3}})+|\d+)?(?:,\d+)?(?:[eE][+-]?\d+)?")
_CLOCK = r"(?:[T ](\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?"
_ISO = re.compile(rf"(\d{{4}})[-/](\d{{1,2}})[-/](\d{{1,2}}){_CLOCK}(?:Z|\+00:00)?")
_TURNED = re.compile(rf"(\d{{1,2}})[./-](\d{{1,2}})[./-](\d{{4}}){_CLOCK}")
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")


def is_absent(cell: str) -> bool:
    """Whether a cell is a way to say that there is no value."""
    return cell.lower() in ABSENT


# --- one cell ---------------------------------------------------------------------------------------------------


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        cell = _without_percent(cell)
    if _POINT.fullmatch(cell):
        return float(re.sub(f"[,{_GAP}]", "", cell))
    return float(cell)


def _decimal_comma(cell: str) -> float:
    cell = _without_percent(cell)
    if not _COMMA.fullmatch(cell):
        raise ValueError(cell)
    return float(re.sub(f"[.{_GAP}]", "", cell).replace(",", "."))


def _without_percent(cell: str) -> str:
    return cell[:-1].rstrip() if cell.endswith("%") else cell


def _date(cell: str) -> float:
    year, month, day, clock = _matched(_ISO, cell)
    return _days(year, month, day, clock)


def _day_first(cell: str) -> float:
    day, month, year, clock = _matched(_TURNED, cell)
    return _days(year, month, day, clock)


def _month_first(cell: str) -> float:
    month, day, year, clock = _matched(_TURNED, cell)
    return _days(year, month, day, clock)


def _time(cell: str) -> float:
    hours, minutes, seconds = _matched(_TIME, cell)
    found = int(hours), int(minutes), float(seconds or 0)
    if found[0] > 24 or found[1] > 59 or found[2] >= 61:
        raise ValueError(cell)
    return found[0] + found[1] / 60 + found[2] / 3600


def _boolean(cell: str) -> float:
    word = cell.lower()
    if word not in _TRUE and word not in _FALSE:
        raise ValueError(cell)
    return float(word in _TRUE)


def _matched(pattern: re.Pattern[str], cell: str) -> tuple[str, ...]:
    found = pattern.fullmatch(cell)
    if found is None:
        raise ValueError(cell)
    return found.groups()


def _days(year: str, month: str, day: str, clock: str) -> float:
    since = datetime.datetime(int(year), int(month), int(day)) - ORIGIN
    return since.days + (_time(clock) / 24 if clock else 0.0)


_MEANING: dict[Kind, Callable[[str], float]] = {
    "number": _number,
    "decimal-comma": _decimal_comma,
    "date": _date,
    "day-first": _day_first,
    "month-first": _month_first,
    "time": _time,
    "boolean": _boolean,
}
KINDS: tuple[Kind, ...] = (*_MEANING, "text")


def meaning(cell: str, kind: Kind) -> float:
    """The number that a cell stands for; NaN where it is none of this kind."""
    try:
        return _MEANING[kind](cell)
    except ValueError:
        return math.nan


# --- a column ---------------------------------------------------------------------------------------------------


class Parsed(NamedTuple):
    """Numbers, NaN where there is none, and where a cell holds something that is none of its kind."""

    values: Array
    misfits: Mask


def parse(cells: Column, kind: Kind) -> Parsed:
    """A column as numbers. What is too large, or infinite, is a misfit too."""
    if isinstance(cells, np.ndarray):
        bad = (cells != 0) & (cells != 1) if kind == "boolean" else np.zeros(len(cells), bool)
        values = cells if kind in ("number", "decimal-comma", "boolean") else np.where(np.isnan(cells), cells, np.inf)
        return Parsed(values, (bad | _too_large(values)) & ~np.isnan(cells))
    plain = plain_numbers(cells) if kind == "number" else None
    if plain is not None:
        return Parsed(plain, _too_large(plain))
    known = {cell: math.nan if is_absent(cell) else meaning(cell, kind) for cell in set(cells)}
    numbers = np.fromiter(map(known.__getitem__, cells), np.float64, len(cells))
    wrong = {cell for cell, value in known.items() if math.isnan(value) and not is_absent(cell)}
    misfits = np.fromiter((cell in wrong for cell in cells), bool, len(cells)) if wrong else np.zeros(len(cells), bool)
    return Parsed(numbers, misfits | _too_large(numbers))


def _too_large(values: Array) -> Mask:
    with np.errstate(invalid="ignore"):  # NaN is not
        return np.asarray(np.abs(values) > LARGEST)


def plain_numbers(cells: Column) -> Array | None:
    """The numbers of a column where every cell is one as Python writes it (NaN among them); else None."""
    if isinstance(cells, np.ndarray):
        return cells
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None


class Guess(NamedTuple):
    """What a column seems to hold. `misfits`: different cells that are of another kind; `plain`: nothing to be told."""

    kind: Kind
    plain: bool = True
    misfits: tuple[str, ...] = ()


def guess(cells: Column) -> Guess:
    """The kind that every cell is of, absent ones aside; the one that most are of where none is for all."""
    if plain_numbers(cells) is not None or isinstance(cells, np.ndarray):
        return Guess("number")
    present = {cell for cell in set(cells) if not is_absent(cell)}
    if not present:
        return Guess("text")
    for kind in _MEANING:
        if _all(present, kind):
            return Guess(kind, plain=kind == "number" and all(map(_is_float, present)))
    best, fitting = max(
        ((kind, {cell for cell in present if not math.isnan(meaning(cell, kind))}) for kind in _MEANING),
        key=lambda found: len(found[1]),
    )
    if not fitting:
        return Guess("text")
    others = tuple(sorted(present - fitting))
    rows = sum(cell in fitting for cell in cells) / sum(cell in present for cell in cells)
    if best != "boolean" and rows >= MOSTLY:
        return Guess(best, plain=False, misfits=others)
    # Words that happen to be truth values or times beside others are words; numbers beside words have to be decided.
    numbers = {cell for cell in present if _is_float(cell)}
    return Guess("text", plain=not numbers, misfits=tuple(sorted(present - numbers)) if numbers else ())


def _all(cells: Iterable[str], kind: Kind) -> bool:
    return not any(math.isnan(meaning(cell, kind)) for cell in cells)


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def ways_of_writing(cells: Column) -> str:
    """What is beside plain numbers in a column of numbers, in words."""
    odd = [] if isinstance(cells, np.ndarray) else [cell for cell in set(cells) if not _is_float(cell)]
    percent = any(cell.endswith("%") for cell in odd)
    grouped = any(_POINT.fullmatch(_without_percent(cell)) for cell in odd)
    words = [*(["percent signs"] if percent else []), *(["separators between thousands"] if grouped else [])]
    return f"numbers with {' and '.join(words)}" if words else IN_WORDS["number"]
