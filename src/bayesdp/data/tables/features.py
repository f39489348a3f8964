"""The columns to learn from: what each holds, which are left out, and what has to be decided about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bayesdp.data.table import MOST_CATEGORIES, Column, Table, listed
from bayesdp.data.tables.cells import IN_WORDS, Kind, Mask, guess, is_absent, meaning, parse, ways_of_writing
from bayesdp.data.tables.duplicates import different_cells
from bayesdp.data.tables.findings import Findings, Option
from bayesdp.data.tables.missing import Rule
from bayesdp.data.tables.reading import Reading
from bayesdp.errors import Array

LEAST_ROWS = 10
MANY = 20
"""A column with more different texts than this is named: each is a feature."""

_CALLED_IDENTIFIER = re.compile(
    r"(?i:(^|[\W_])(id|ids|nr|no|num|number|key|index|mrn|ssn|uuid|guid|row))$|[a-z](ID|Id|Nr)$"
)
_INDICATOR = Option("missing", "indicator")


@dataclass
class Features:
    """One look at the columns `names` of a table, findings gathered on the way.

    `table` has its cells as they are written, `parsed` those of plain numbers as numbers; `different` is how many rows
    differ. `kinds` and `rules` were declared for single columns, `every` for all; columns in `keep` stay whatever they
    look like; of those in `levelled` the levels are known beforehand.
    """

    table: Table
    parsed: Table
    different: int
    kinds: Mapping[str, Kind]
    rules: Mapping[str, Rule]
    every: Rule | None
    keep: Sequence[str]
    levelled: Sequence[str]
    findings: Findings
    left_out: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def read(self, name: str) -> Reading | None:
        """How a column is read; None where it is left out or where that has to be decided."""
        cells = self.parsed.columns[name]
        drop = Option("drop", name)
        if all_absent(cells):
            refusal = self.table.unfit(
                f"to have a value in column {name!r}", "none in any row", f"Leave the column out ({drop.argument})"
            )
            self.findings.problem(name, "no value in any row", refusal, drop)
            return None
        if name not in self.keep and self._is_identifier(name, cells):
            words = "another value in every row: a likely identifier"
            self.findings.tell(name, words, "The column is left out", Option("keep", name))
            self.left_out.append(name)
            return None
        kind = self._declared(name) if name in self.kinds else self._seen(name, cells)
        return None if kind is None else self._with_rule(name, kind)

    # --- what a column holds ------------------------------------------------------------------------------------

    def _declared(self, name: str) -> Kind | None:
        kind, cells, drop = self.kinds[name], self.table.columns[name], Option("drop", name)
        if kind == "text":
            return self._texts(name, cells)
        if np.isfinite(parse(cells, kind).values).any():
            return kind
        words = IN_WORDS[kind].partition(", read")[0]
        refusal = self.table.unfit(f"to hold {words} in column {name!r}", "none", f"Leave it out ({drop.argument})")
        self.findings.problem(name, f"holds no {words}", refusal, drop)
        return None

    def _seen(self, name: str, cells: Column) -> Kind | None:
        found = guess(cells)
        if found.misfits:
            self._mixed(name, found.kind, found.misfits, cells)
            return None
        if found.kind == "text":
            return self._texts(name, cells)
        misfits = parse(cells, found.kind).misfits
        if misfits.any():
            refusal = Reading(name, found.kind).misfit(self.table, int(np.argmax(misfits)))
            settled = self._settled(name, Option("read", f"{name}={found.kind}"))
            self.findings.problem(name, "numbers that are too large or infinite", refusal, *settled)
            return None
        if not found.plain:
            self._written(name, cells, found.kind)
        elif isinstance(cells, np.ndarray):
            self._plain(name, cells)
        return found.kind

    def _mixed(self, name: str, kind: Kind, misfits: tuple[str, ...], cells: Column) -> None:
        words = IN_WORDS["number" if kind == "text" else kind].partition(", read")[0]
        row = next(row for row, cell in enumerate(cells) if cell in misfits)
        as_texts, as_numbers = Option("categories", name), Option("read", f"{name}={kind}")
        if kind == "text" and different_cells(cells) > MOST_CATEGORIES:
            settled: tuple[Option, ...] = (Option("drop", name),)
        elif kind == "text":
            settled = self._settled(name, as_texts) if "" in cells else (as_texts,)
        else:
            settled = self._settled(name, as_numbers)
        refusal = self.table.unfit(
            f"to hold either {words} or texts in column {name!r}",
            f"a text in {self.table.place(row)} beside {words.partition(' ')[0]}",
            f"Give {as_numbers.argument} to take what is none as missing"
            if kind != "text"
            else f"Correct the cell, or name the column in {as_texts.argument} to take each value as a text",
        )
        found = f"{words} and other texts, the first in {self.table.place(row)}"
        self.findings.problem(name, found, refusal, *settled, examples=listed(misfits, 3))

    def _settled(self, name: str, option: Option) -> tuple[Option, ...]:
        """An option that makes some cells count as missing, and what is then done about these, if that was not said."""
        return (option,) if self._rule(name) else (option, _INDICATOR)

    def _texts(self, name: str, cells: Column) -> Kind | None:
        count, drop = different_cells(cells), Option("drop", name)
        if name in self.levelled:
            return "text"
        if count > MOST_CATEGORIES:
            refusal = self.table.unfit(
                f"to have at most {MOST_CATEGORIES} different texts in column {name!r}",
                f"{count:,} in {len(self.table):,} rows",
                f"Leave the column out ({drop.argument}) or group its values",
            )
            self.findings.problem(name, f"text of many values: {count:,} different ones", refusal, drop)
            return None
        if count > MANY:
            self.findings.tell(name, f"text of many values: {count} different ones", "Each is a feature", drop)
        elif count == 1:
            self.findings.tell(name, "the same value in every row", "Nothing can be learned from it", drop)
        return "text"

    def _written(self, name: str, cells: Column, kind: Kind) -> None:
        words, _, how = (ways_of_writing(cells) if kind == "number" else IN_WORDS[kind]).partition(", read ")
        other = {"number": "decimal-comma", "decimal-comma": "number", "day-first": "month-first"}.get(kind, "text")
        option = Option("read", f"{name}={other}")
        self.findings.tell(name, words, f"Read {how or 'as numbers'}", option)
        self.seen.append(f"{name!r} ({words})")

    def _plain(self, name: str, values: Array) -> None:
        count, drop = different_cells(values), Option("drop", name)
        if count == 1:
            self.findings.tell(name, "the same value in every row", "Nothing can be learned from it", drop)
        elif count == len(values) and _whole(values):
            self.findings.tell(name, "another whole number in every row", "It is learned from", drop)

    def _is_identifier(self, name: str, cells: Column) -> bool:
        """Whether every row has a value of its own, repeated rows aside: a text, or a whole number that is called an
        identifier or counts the rows. Where most rows are repeated nothing tells them apart.
        """
        if self.different < LEAST_ROWS or 2 * self.different < len(cells) or name in self.kinds:
            return False
        if isinstance(cells, np.ndarray):
            if not _whole(cells) or different_cells(cells) < self.different:
                return False
            low, high = cells.min(), cells.max()
            counts = low in (0, 1) and high - low + 1 == self.different
            return bool(counts or _CALLED_IDENTIFIER.search(name))
        return different_cells(cells) + cells.count("") >= self.different and guess(cells) == ("text", True, ())

    # --- where there is no value --------------------------------------------------------------------------------

    def _rule(self, name: str) -> Rule | None:
        return self.rules.get(name, self.every)

    def _with_rule(self, name: str, kind: Kind) -> Reading:
        rule, declared = self._rule(name), name in self.kinds
        if rule is None:
            self._gaps(name, kind, declared)
            return Reading(name, kind, declared)
        if (
            rule.value is not None
            and name not in self.rules
            and kind != "text"
            and not meaning(rule.value, kind) < np.inf
        ):
            rule = Rule(rule.how)  # a text for all columns is for those of texts
        return Reading(name, kind, declared, rule.how, rule.value)

    def _gaps(self, name: str, kind: Kind, declared: bool) -> None:
        missing = gaps(self.parsed.columns[name], kind, declared)
        if not missing.any():
            return
        row, count = int(np.argmax(missing)), int(missing.sum())
        refusal = self.table.unfit(
            "to have a value in every cell",
            f"none in {self.table.place(row)}, column {name!r}",
            f"Say what is done where there is none: {_INDICATOR.argument}, 'drop' or 'value'",
        )
        words = f"no value in {count:,} row{'s' * (count > 1)}, the first in {self.table.place(row)}"
        self.findings.problem(name, words, refusal, _INDICATOR)


def gaps(cells: Column, kind: Kind, declared: bool) -> Mask:
    """Where a column has no value; where its kind was `declared`, what is none of that kind is no value."""
    if kind == "text":
        return np.isnan(cells) if isinstance(cells, np.ndarray) else np.array([not cell for cell in cells])
    values, misfits = parse(cells, kind)
    return np.asarray(np.isnan(values) | (misfits & declared))


def all_absent(cells: Column) -> bool:
    """Whether a column holds no value at all."""
    return bool(np.isnan(cells).all()) if isinstance(cells, np.ndarray) else all(map(is_absent, set(cells)))


def _whole(values: Array) -> bool:
    """Whether there are whole numbers only, none missing."""
    return bool((np.round(values) == values).all())
