"""What a guarantee looks like in a terminal: a table, plain sentences, and the fine print.

A number is never shown without saying which ε it is. Numbers are rounded towards the promise that is kept.
Nothing here needs colour or a terminal; a pipe gets the same text at 80 columns.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bayesdp.rounding import down, up
from bayesdp.unit import Unit, spoken

if TYPE_CHECKING:
    from bayesdp.accountant import Curve
    from bayesdp.attacker import AttackerBounds
    from bayesdp.guarantee import Guarantee
    from bayesdp.report import GroupLosses, Intervals
    from bayesdp.report.paid import PaidMetrics
    from bayesdp.report.quality import Confusion

AUDIENCES = {"dp": "everybody", "bdp": "people like those in the data", "per-instance": "one record"}
SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Shares of people at which a curve is shown, as far as the witnesses support them."""

CLASSES = 12
"""A larger confusion matrix is in the report only."""

PARAMETERS = 20
"""How many parameters of a posterior a terminal shows."""

_ATTACKER = "attacker: how sure of the truth about a record this row allows one who starts undecided to become."
_SENSITIVE = (
    "\nSensitive: the Bayesian and per-instance numbers are computed from private data. Do not publish them; the DP "
    "number may be published."
)


_unit: ContextVar[Unit] = ContextVar("unit", default="record")

NAMED = (
    "A per-instance number is a promise to each record that was named before the run. Of one that is picked out "
    "afterwards because its number is large, nothing is promised (H19)."
)

SEEDED = "The noise came from a given seed: this run is reproducible, NOT PRIVATE."


def metric(name: str, value: float) -> str:
    """What a model achieves, in words."""
    from bayesdp.report.quality import is_share

    # A small share, such as a standard deviation of one, needs its digits.
    return f"{name}: {100 * value:.1f} %" if is_share(name) and "deviation" not in name else f"{name}: {value:.4g}"


def percent(share: float) -> str:
    """An attacker's success in percent, never below it."""
    return f"{up(100 * share, 3)} %"


def plain(name: str, width: int = 24) -> str:
    """A name from a file, cut to `width` and without characters that would move the cursor."""
    text = "".join(letter if letter.isprintable() else "?" for letter in name)
    return text if len(text) <= width else text[: width - 1] + "…"


def json_list(values: Sequence[dict[str, Any]]) -> None:
    """A list of plain dicts as strict JSON on stdout."""
    print(json_format.dumps(list(values), allow_nan=False, indent=2))


def guarantees(values: Sequence[Guarantee], *, record: str = "", json: bool = False, fine_print: bool = True) -> None:
    """The table, a sentence for each guarantee, and the fine print; `record` says whom "per-instance" is for.

    Without the fine print only what makes a number no theorem is said.
    """
    from bayesdp import everybody

    values = everybody.beside(values)
    if json:
        json_list([one.to_dict() for one in values])
        return
    table = _table("for whom", "privacy loss", "at δ", "share", "attacker")
    for column in table.columns[1:]:
        column.no_wrap = True
    for one in values:
        whom = f"{AUDIENCES[one.notion]}{': ' + plain(record) if record and one.notion == 'per-instance' else ''}"
        share = "-" if one.notion == "per-instance" or one.coverage is None else f"{down(100 * one.coverage, 4)} %"
        loss = f"{one.label} = {up(one.epsilon, 5)}"
        if one.no_better:
            # In two lines, so that a narrow terminal has room for the other columns.
            share, loss = "-", everybody.shown(one.epsilon, one.dp_epsilon).replace("than for ", "than for\n")
        table.add_row(whom, loss, up(one.delta, 3), share, percent(everybody.capped(one).attacker_success()))
    out = _console()
    out.print()
    out.print(table)
    out.print(f"\n{_ATTACKER}{_SENSITIVE if any(one.sensitive for one in values) else ''}")
    for one in values:
        if one.attacker is not None:
            out.print(_right_guesses(one.attacker))
    if not fine_print:
        for one in values:
            for caveat in one.doubts:
                out.print(f"\nNot proved: the {one.label}. {caveat}")
        return
    out.print()
    for one in values:
        out.print(_item(str(one)))
    for one in values:
        out.print(f"\nFine print of the {one.label}")
        for sentence in one.assumptions:
            out.print(_item(sentence))


def _right_guesses(bounds: AttackerBounds) -> str:
    """What the plan allows an attacker on average over its results, exactly: another reading than ε and δ give."""
    from bayesdp.attacker import SHOWN

    found = ", ".join(f"{percent(bounds.true_positive_rate(rate))} at {100 * rate:g} %" for rate in SHOWN)
    return (
        f"\nOn average over all results of this plan, whoever starts undecided guesses right at most "
        f"{percent(bounds.right)} of the time: an advantage of {percent(bounds.advantage)} over a coin. A test of "
        f"presence (or absence) finds at most so many true cases, by its rate of false alarms: {found}."
    )


def curve(values: Curve) -> None:
    """Share of people → Bayesian ε, all lines valid at once."""
    from bayesdp import everybody
    from bayesdp.convert import attacker_success

    out = _console()
    out.print()
    said = shares(values)
    if all(everybody.wins(values.at(share), values.dp) for share in said):
        # One sentence for as many equal lines.
        out.print(f"Whichever share of people you pick: {everybody.shown(values.at(said[-1]), values.dp)}.")
        return
    out.print(f"Whichever share you pick, at δ = {up(values.delta, 3)} (all lines hold together; sensitive)\n")
    table = _table("share of people", "Bayesian ε", "attacker")
    won = [share for share in said if everybody.wins(values.at(share), values.dp)]
    for share in [one for one in said if one not in won[1:]]:
        loss = values.at(share)
        sure = attacker_success(everybody.least(loss, values.dp), values.delta)
        more = " and more" if share in won[:1] and len(won) > 1 else ""
        table.add_row(f"{100 * share:g} %{more}", everybody.shown(loss, values.dp), percent(sure))
    out.print(table)


def groups(values: GroupLosses, delta: float) -> None:
    """Bayesian ε by group, all lines valid at once."""
    from bayesdp import everybody

    out = _console()
    share = f"{down(100 * values.coverage, 4)} %"
    told = [one for one in values.epsilon if one is not None]
    few = f"too few witnesses to speak for: {values.needed:,} of a kind are needed for {share} of its people"
    out.print()
    if not told:
        out.print(f"By group: each has {few}. They have what everybody has.")
        return
    out.print(f"Bayesian ε of {share} of each group, at δ = {up(delta, 3)} (all lines hold together; sensitive)\n")
    grid = _table("group", "witnesses", "Bayesian ε")
    for place, (name, loss) in enumerate(zip(values.names, values.epsilon, strict=True)):
        counts = " + ".join(f"{each[place]:,}" for each in values.witnesses.values())
        grid.add_row(plain(name), counts, "too few" if loss is None else everybody.shown(loss, values.dp))
    out.print(grid)
    if len(told) < len(values.epsilon):
        out.print(
            f"\nToo few witnesses to speak for the group: {values.needed:,} of a kind are needed for {share} of its "
            "people. They have what everybody has."
        )


def confusion(values: Confusion) -> None:
    """Which classes were taken for which, as a table of test records."""
    if len(values.classes) > CLASSES:
        return
    out = _console()
    out.print("\nTest records by their class (rows) and by what they were taken for (sensitive)\n")
    grid = _table("true class", *(plain(name, 12) for name in values.classes), "recall", "precision")
    each = zip(values.classes, values.counts, values.recall, values.precision, strict=True)
    for name, counts, found, right in each:
        shown = ("-" if one is None else f"{100 * one:.1f} %" for one in (found, right))
        grid.add_row(plain(name), *(f"{one:,}" for one in counts), *shown)
    out.print(grid)


def paid(values: PaidMetrics, *, seeded: bool) -> None:
    """What of the quality may be published."""
    out = _console()
    verdict = "NOT PRIVATE: seeded" if seeded else "may be published"
    out.print(f"\nCounts over the test records with noise, for DP ε = {up(values.epsilon)} of theirs ({verdict}):")
    for name, value in values.metrics().items():
        out.print(_item(metric(name, value)))


def shifted() -> None:
    """That outsiders and members differ (sensitive)."""
    from bayesdp.report.shift import WARNING

    _console().print(f"\nWarning (sensitive): {WARNING}")


def shares(values: Curve) -> list[float]:
    """Those of `SHARES` at which the curve says something; else the most that it speaks for."""
    said = [share for share in SHARES if values.at(share) < float("inf")]
    return said or [float(values.coverage[-1])]


def most_exposed(rows: Iterable[tuple[str, float]], delta: float, dp: float | None = None) -> None:
    """The records with the largest per-instance ε: a list that is itself private, and no promise to its first."""
    from bayesdp import everybody
    from bayesdp.convert import attacker_success

    out = _console()
    out.print()
    out.print(f"Most exposed records, at δ = {up(delta, 3)} (sensitive: names and numbers)\n")
    table = _table("record", "per-instance ε", "attacker")
    for name, loss in rows:
        sure = attacker_success(everybody.least(loss, dp), delta)
        table.add_row(plain(name, 40), everybody.shown(loss, dp), percent(sure))
    out.print(table)
    out.print(f"\n{NAMED}")


def posterior(values: Intervals, *, seeded: bool) -> None:
    """Mean and interval of each parameter; beside them, marked, those of a posterior that is not private."""
    from bayesdp.report.derived import farthest

    kept = farthest(values, PARAMETERS)
    beside, level = values.non_private, f"{100 * values.probability:g} %"
    out = _console()
    out.print()
    out.print(f"Posterior: mean and central {level} interval{' (NOT PRIVATE: seeded)' if seeded else ''}\n")
    table = _table("parameter", "mean", "from", "to", *(("NOT PRIVATE: mean", "from", "to") if beside else ()))
    for place in kept:
        parts = [values] if beside is None else [values, beside]
        numbers = [_number(one[place]) for part in parts for one in (part.mean, part.low, part.high)]
        mark = " (?)" if values.doubts and values.doubts[place] else ""
        table.add_row(f"{plain(values.names[place], 40)}{mark}", *numbers)
    out.print(table)
    if len(kept) < len(values.names):
        out.print(f"\nThese are {len(kept)} of {len(values.names)}, farthest from zero; the report has all.")
    if values.doubted:
        out.print(f"\n(?) {len(values.doubted)} of {len(values.names)} intervals are not to be believed:")
        for why in sorted({why for words in values.doubts for why in words.split("; ") if why}):
            out.print(f"    {why} ({sum(why in words for words in values.doubts)})")
    out.print()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Words and numbers under heads."""
    grid = _table(*heads)
    for row in rows:
        grid.add_row(*row)
    _console().print(grid)


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Two columns of words."""
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*row)
    _console().print(grid)


def line(text: str) -> None:
    """One paragraph."""
    _console().print(text)


def item(text: str) -> None:
    """One sentence of a list."""
    _console().print(_item(text))


def uncut(text: str) -> None:
    """One line with a path in it, which is not broken: it can be copied."""
    Console(highlight=False, markup=False, emoji=False).print(text, soft_wrap=True)


def remark(text: str) -> None:
    """Words beside the answer, on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def waiting(what: str) -> Iterator[Progress]:
    """A bar on stderr that goes away when done; nothing at all where stderr is not a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        bar.add_task(what, total=None)
        yield bar


class _Speaker(Console):
    """A console that speaks of people where these are the unit of privacy."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(spoken(text, _unit.get()), **how)


@contextmanager
def speaking_of(unit: Unit) -> Iterator[None]:
    """What is said meanwhile is about records, or about people; paths, which `uncut` prints, stay as they are."""
    before = _unit.set(unit)
    try:
        yield
    finally:
        _unit.reset(before)


def _console() -> Console:
    # Names come from files: they must not be read as markup, and numbers need no colours.
    return _Speaker(highlight=False, markup=False, emoji=False)


def _table(*heads: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right")
    return table


def _item(text: str) -> Padding:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("•", text)
    return Padding(grid, (0, 0, 0, 1))
