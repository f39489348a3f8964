"""What a guarantee looks like in a terminal: a table, plain sentences, and the fine print.

A number is never shown without saying which ε it is. Numbers are rounded towards the promise that is kept.
Nothing here needs colour or a terminal; a pipe gets the same text at 80 columns.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.accountant import Curve
    from bayesdp.guarantee import Guarantee
    from bayesdp.report import Intervals

AUDIENCES = {"dp": "everybody", "bdp": "people like those in the data", "per-instance": "one record"}
SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Shares of people at which a curve is shown, as far as the witnesses support them."""

PARAMETERS = 20
"""How many parameters of a posterior a terminal shows."""

_ATTACKER = "attacker: how sure of the truth about a record one who starts undecided can become, on average."
_SENSITIVE = (
    "\nSensitive: the Bayesian and per-instance numbers are computed from private data. Do not publish them; the DP "
    "number may be published."
)


_ABOVE = "Where a number is above the DP number, the DP number holds as well and is the better one."

SEEDED = "The noise came from a given seed: this run is reproducible, NOT PRIVATE."


def metric(name: str, value: float) -> str:
    """What a model achieves, in words."""
    return f"{name}: {100 * value:.1f} %" if "accuracy" in name else f"{name}: {value:.4g}"


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
    """The table, a sentence for each guarantee, and the fine print; `record` names the one of "per-instance".

    Without the fine print only what makes a number no theorem is said.
    """
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
        table.add_row(whom, loss, up(one.delta, 3), share, percent(one.attacker_success()))
    out = _console()
    out.print()
    out.print(table)
    out.print(f"\n{_ATTACKER}{_SENSITIVE if any(one.sensitive for one in values) else ''}")
    if any(one.epsilon > values[0].epsilon for one in values if values[0].notion == "dp"):
        out.print(_ABOVE)
    if not fine_print:
        for one in values:
            for caveat in one.caveats:
                out.print(f"\nNot proved: the {one.label}. {caveat}")
        return
    out.print()
    for one in values:
        out.print(_item(str(one)))
    for one in values:
        out.print(f"\nFine print of the {one.label}")
        for sentence in one.assumptions:
            out.print(_item(sentence))


def curve(values: Curve) -> None:
    """Share of people → Bayesian ε, all lines valid at once."""
    from bayesdp.convert import attacker_success

    out = _console()
    out.print()
    out.print(f"Whichever share you pick, at δ = {up(values.delta, 3)} (all lines hold together; sensitive)\n")
    table = _table("share of people", "Bayesian ε", "attacker")
    for share in shares(values):
        loss = values.at(share)
        table.add_row(f"{100 * share:g} %", up(loss, 5), percent(attacker_success(loss, values.delta)))
    out.print(table)


def shares(values: Curve) -> list[float]:
    """Those of `SHARES` at which the curve says something; else the most that it speaks for."""
    said = [share for share in SHARES if values.at(share) < float("inf")]
    return said or [float(values.coverage[-1])]


def most_exposed(rows: Iterable[tuple[str, float]], delta: float) -> None:
    """The records with the largest per-instance ε: a list that is itself private."""
    from bayesdp.convert import attacker_success

    out = _console()
    out.print()
    out.print(f"Most exposed records, at δ = {up(delta, 3)} (sensitive: names and numbers)\n")
    table = _table("record", "per-instance ε", "attacker")
    for name, loss in rows:
        table.add_row(plain(name, 40), up(loss, 5), percent(attacker_success(loss, delta)))
    out.print(table)


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
        table.add_row(plain(values.names[place], 40), *numbers)
    out.print(table)
    if len(kept) < len(values.names):
        out.print(f"\nThese are {len(kept)} of {len(values.names)}, farthest from zero; the report has all.")
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
    _console().print(text, soft_wrap=True)


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


def _console() -> Console:
    # Names come from files: they must not be read as markup, and numbers need no colours.
    return Console(highlight=False, markup=False, emoji=False)


def _table(*heads: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right")
    return table


def _item(text: str) -> Padding:
    grid = Table.grid(padding=(0, 1))
    grid.add_row("•", text)
    return Padding(grid, (0, 0, 0, 1))
