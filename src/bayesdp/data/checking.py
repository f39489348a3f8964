"""A table before it is learned from: everything that is wrong with it at once, and what is done about each.

    cells        →  kinds (`tables.cells`), declared or seen      →  readings that the model keeps
    identifiers  →  left out unless they are asked for
    gaps         →  as declared (`tables.missing`), else to be decided; rows without a target are left out
    target       →  `target.read_target`

What is done because of what the records look like stands among the sentences that are declared public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from bayesdp.data.dataset import Task
from bayesdp.data.preparation.declared import Declared
from bayesdp.data.recipe import OneHot, TableRecipe
from bayesdp.data.table import Column, Table, listed
from bayesdp.data.tables.cells import Mask, guess, parse, plain_numbers
from bayesdp.data.tables.duplicates import different_cells, different_rows
from bayesdp.data.tables.features import LEAST_ROWS, Features, gaps
from bayesdp.data.tables.findings import Finding, Findings, Option, refuse_problems
from bayesdp.data.tables.missing import columns, kinds, rules
from bayesdp.data.tables.reading import MISSING, Reading, cleaned
from bayesdp.data.target import MOST_GUESSED_CLASSES, Target, read_target
from bayesdp.errors import InputError, refuse


class Wanted(Protocol):
    """What a user said of a table: see `data.load`."""

    @property
    def target(self) -> str | None: ...
    @property
    def task(self) -> Task | None: ...
    @property
    def categories(self) -> Sequence[str]: ...
    @property
    def drop(self) -> Sequence[str]: ...
    @property
    def keep(self) -> Sequence[str]: ...
    @property
    def read(self) -> Sequence[str]: ...
    @property
    def missing(self) -> Sequence[str]: ...
    @property
    def unlabelled(self) -> bool: ...
    @property
    def person(self) -> str | None: ...
    @property
    def declared(self) -> Declared: ...


@dataclass(frozen=True)
class Checked:
    """What was found in `source`, and, where nothing is left to decide, the table as it is learned from.

    `table` has every row of the source, gaps filled; `kept` says which rows are used, and `target` has a value for each
    of these. `public` are sentences on what was declared, or chosen by looking at the records.
    """

    source: Table
    findings: tuple[Finding, ...]
    table: Table
    readings: tuple[Reading, ...]
    kept: Mask
    target: Target | None
    public: tuple[str, ...]

    def require_settled(self) -> None:
        """Refuse a table about which something is left to decide, with all of it in one sentence."""
        refuse_problems(self.source, self.findings)


def checked(table: Table, wanted: Wanted) -> Checked:
    """Look at every column once. Bad input: an option that names no column, or contradicts another: `InputError`."""
    target = "" if wanted.target is None else table.need("target", wanted.target)
    drop, keep = columns(table, "drop", wanted.drop), columns(table, "keep", wanted.keep)
    declared = dict(kinds(table, wanted.read))
    every, single = rules(table, wanted.missing)
    known = wanted.declared
    # Who knows the range or the levels of a column wants it, and levels are texts, of numbers too.
    keep = (*keep, *(name for name in (*known.ranges, *known.vocabularies) if name in table.names and name != target))
    categories = columns(table, "categories", wanted.categories)
    categories += tuple(name for name in known.vocabularies if name in table.names and name != target)
    for argument, names in (("categories", categories), ("drop", drop), ("keep", keep), ("missing", tuple(single))):
        if target and target in names:
            raise refuse(argument, target, "to name other columns than the target")
    for name in categories:
        if declared.setdefault(name, "text") != "text":
            raise refuse("read", f"{name}={declared[name]}", "to be left out for a column of categories")
    if wanted.person is not None and table.need("person", wanted.person) in (target, *categories):
        raise refuse("person", wanted.person, "to name a column that is not learned from")
    names = tuple(name for name in table.names if name not in (target, wanted.person, *drop))
    if not names:
        raise table.unfit(f"to have a column to learn from{f' besides {target!r}' if target else ''}", "none")
    # Numbers are parsed once, whoever asks for them later.
    plain = {name: plain_numbers(table.columns[name]) for name in table.names if declared.get(name) != "text"}
    numbers: dict[str, Column] = {name: values for name, values in plain.items() if values is not None}
    parsed = replace(table, columns={**table.columns, **numbers})
    findings, different = Findings(), different_rows(parsed)
    if different < len(table):
        count = len(table) - different
        words = f"{count:,} row{'s are' if count > 1 else ' is'} the same as another in every cell"
        findings.tell("", words, "All are learned from: whoever has two rows may lose twice as much")
    look = Features(table, parsed, different, declared, single, every, keep, tuple(known.vocabularies), findings)
    readings = tuple(one for name in names if (one := look.read(name)) is not None)
    if not readings and not findings.problems:
        refusal = table.unfit("to have a column to learn from", "likely identifiers only")
        findings.problem(
            "", "no column to learn from is left", refusal, *(Option("keep", one) for one in look.left_out)
        )
    read, kept = parsed, np.ones(len(table), bool)
    if not findings.problems:
        read, kept = cleaned(parsed, readings)
        gone = len(kept) - int(kept.sum())
        if gone:
            findings.tell("", f"{gone:,} row{'s lack' if gone > 1 else ' lacks'} a value", "Such rows are left out")
    found = None
    if target and not wanted.unlabelled:
        found, kept = _target(table, parsed, target, wanted, look, kept)
    if not findings.problems and kept.sum() < LEAST_ROWS:
        findings.problem("", f"{int(kept.sum())} rows are left", _too_few(table, int(kept.sum())))
    public = _public(look, bool(wanted.read or wanted.missing or wanted.keep))
    return Checked(table, tuple(findings.all), read, readings, kept, found, public)


def _target(
    table: Table, parsed: Table, name: str, wanted: Wanted, look: Features, kept: Mask
) -> tuple[Target | None, Mask]:
    """What is to be learned, and the rows that have it among those that are `kept`."""
    cells, findings, declared = parsed.columns[name], look.findings, look.kinds.get(name)
    seen = guess(cells)
    classes = wanted.task == "classification" or name in wanted.declared.vocabularies
    if declared is None and seen.misfits and not classes:
        few = different_cells(cells) <= MOST_GUESSED_CLASSES and wanted.task is None
        option = Option("task", "classification") if few else Option("read", f"{name}=number")
        row = next(row for row, cell in enumerate(cells) if cell in seen.misfits)
        refusal = table.unfit(
            f"to hold either numbers or texts in column {name!r}",
            f"a text in {table.place(row)} beside numbers",
            f"Correct the cell, or give {option.argument}",
        )
        words = f"numbers and other texts to learn, the first in {table.place(row)}"
        findings.problem(name, words, refusal, option, examples=listed(seen.misfits, 3))
        return None, kept
    kind = declared or (
        "text" if seen.misfits or seen.kind not in ("number", "decimal-comma", "boolean") else seen.kind
    )
    column, absent = cells, gaps(cells, kind, declared is not None)
    # Truth values keep their words, which are the names of the classes.
    if kind not in ("text", "boolean") and not (kind == "number" and isinstance(cells, np.ndarray)):
        column = parse(cells, kind).values
    if absent.any():
        count = int(absent.sum())
        findings.tell(name, f"no value to learn in {count:,} row{'s' * (count > 1)}", "Such rows are left out")
    kept = kept & ~absent
    rows = np.flatnonzero(kept)
    try:
        if len(rows) < LEAST_ROWS:
            raise _too_few(table, len(rows))
        only = Table(table.source, {name: column}, table.place).only(rows)
        task, levels = wanted.declared.task_of(name, wanted.task), wanted.declared.vocabularies.get(name)
        target = read_target(only, name, task, levels, texts=kind in ("text", "boolean"))
    except InputError as refusal:
        findings.problem(name, f"cannot be learned: {str(refusal).rstrip('.')}", refusal)
        return None, kept
    values = np.zeros(len(kept))
    values[rows] = target.values
    return replace(target, values=values), kept


def _too_few(table: Table, rows: int) -> InputError:
    return table.unfit(
        f"to hold at least {LEAST_ROWS} records to train and test with",
        str(rows),
        "So few can neither be learned from nor hide each other",
    )


def _public(look: Features, declared: bool) -> tuple[str, ...]:
    sentences = []
    if look.seen:
        written = ", ".join(look.seen[:8]) + (f" and {len(look.seen) - 8} more" if len(look.seen) > 8 else "")
        sentences.append(f"How columns are written was seen by looking at the records, and is public: {written}.")
    if look.left_out:
        sentences.append(
            "Left out as likely identifiers, which was seen by looking at the records: "
            f"{listed(tuple(look.left_out), 8)}."
        )
    if declared:
        sentences.append("How columns are read, and what is done where there is no value, was declared and is public.")
    return tuple(sentences)


def with_readings(recipe: TableRecipe, readings: tuple[Reading, ...]) -> TableRecipe:
    """The recipe for tables that are first read so: whatever text may be missing has a category for that."""
    fills = {one.name: one.fill or MISSING for one in readings if one.missing is not None and one.kind == "text"}
    columns = tuple(
        replace(one, categories=(*one.categories, fills[one.name]))
        if isinstance(one, OneHot) and one.name in fills and fills[one.name] not in one.categories
        else one
        for one in recipe.columns
    )
    return replace(recipe, columns=columns, readings=readings)
