"""Missing values: what is to be done where a cell holds none (`reading` does it), and other words about single columns.

Of one column: "age=indicator", or of all at once: "indicator".

What is done where a cell holds no value is declared, for all columns or for those named, and never follows from a value
that happens to be missing: the features of a model would tell that somebody has none.

    drop              the row is left out, for its own cells alone
    indicator         one more feature says that there is none; the value itself is as below
    value             the middle of the scale (the feature is 0), for texts a category of its own, "(missing)"
    value:40          this value; also indicator:40
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from bayesdp.data.table import Table
from bayesdp.data.tables.cells import KINDS, Kind
from bayesdp.errors import refuse

How: TypeAlias = Literal["drop", "indicator", "value"]
_HOW: tuple[How, ...] = get_args(How)

_RULE = "to be drop, indicator or value, or value:V and indicator:V with the value to put in"


class Rule(NamedTuple):
    """What is done where there is no value; `value` is what is put in, as it would be written in the table."""

    how: How
    value: str | None = None


def rules(table: Table, entries: Sequence[str]) -> tuple[Rule | None, Mapping[str, Rule]]:
    """The rule for all columns, if there is one, and those of single columns.

    Bad input: an unknown column or rule, or two rules for one column: `InputError`.
    """
    found: dict[str, Rule] = {}
    for name, text in _pairs(table, "missing", entries, alone=True):
        how, colon, value = text.partition(":")
        if how not in _HOW or (colon and (how == "drop" or not value)):
            raise refuse("missing", text if not name else f"{name}={text}", _RULE)
        _once("missing", found, name, Rule(how, value if colon else None))
    return found.pop("", None), found


def kinds(table: Table, entries: Sequence[str]) -> Mapping[str, Kind]:
    """The kinds that columns are to be read as. Bad input: an unknown column or kind, or two for one column."""
    found: dict[str, Kind] = {}
    for name, text in _pairs(table, "read", entries):
        known = [kind for kind in KINDS if kind == text]
        if not known:
            raise refuse("read", f"{name}={text}", f"to be COLUMN=KIND with one of the kinds {', '.join(KINDS)}")
        _once("read", found, name, known[0])
    return found


def columns(table: Table, argument: str, entries: Sequence[str]) -> tuple[str, ...]:
    """The columns that are named, one or several with commas between them in each entry.

    Bad input: a name that no column has: `InputError`.
    """
    return tuple(name for entry in entries for name in _names(table, argument, entry))


def _names(table: Table, argument: str, entry: str) -> list[str]:
    if entry in table.columns or "," not in entry:
        return [table.need(argument, entry)]
    return [table.need(argument, part.strip()) for part in entry.split(",") if part.strip()]


def _pairs(
    table: Table, argument: str, entries: Sequence[str], alone: bool = False, whole: bool = True
) -> list[tuple[str, str]]:
    """Column and word of each "column=word"; the column is empty where there is only a word, if that is allowed."""
    found = []
    for entry in entries:
        name, equals, word = entry.rpartition("=")
        if name.strip() in table.columns:
            found.append((name.strip(), word.strip()))
        elif whole and "," in entry and (equals or alone):
            found += _pairs(table, argument, entry.split(","), alone, whole=False)
        elif alone and not equals:
            found.append(("", word.strip()))
        elif not equals:
            raise refuse(argument, entry, "to be of the form COLUMN=WORD")
        else:
            found.append((table.need(argument, name), word))
    return found


def _once(argument: str, found: dict[str, Rule] | dict[str, Kind], name: str, value: Rule | Kind) -> None:
    if name in found:
        raise refuse(argument, name, "to be said once", got=f"two for {f'column {name!r}' if name else 'all columns'}")
    found[name] = value  # type: ignore[assignment]  # of the kind that the caller's mapping has
