"""`bayesdp ledger`: what was spent on one data set, by all runs together."""

from __future__ import annotations

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesdp import errors
from bayesdp.cli import options, terminal
from bayesdp.rounding import up

if TYPE_CHECKING:
    from bayesdp.guarantee import Guarantee
    from bayesdp.ledger import Ledger

DELTA = 1e-5

Asked = Annotated[
    str,
    typer.Argument(metavar="ASK", help="show: what it comes to; verify: is it whole; export: every line as JSON."),
]
Where = Annotated[Path, typer.Argument(metavar="LEDGER", help="The file of --ledger, or the folder of a run.")]
Delta = Annotated[
    float | None,
    options.output("--delta", "D", "The δ of the sum; the ledger's own if left out.", options.number),
]
Json = Annotated[bool, options.output("--json", " ", "Print the guarantees as a JSON list and nothing else.")]


def ledger(ask: Asked, ledger: Where, delta: Delta = None, json: Json = False) -> None:
    """
    Say what all runs on one data set have cost together, and whether their ledger is whole.

    "train" and "fit" charge a run to --ledger before its first step; every folder of a run has a ledger of its own. The
    sum holds also where a run was planned after looking at the results of those before. A ledger is sensitive.

    For example:
      bayesdp ledger show people.ledger
      bayesdp ledger verify run
      bayesdp ledger export people.ledger
    """
    errors.one_of("ask", ask, ("show", "verify", "export"))

    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.ledger import Ledger

    folder = RunFolder.open(ledger) if ledger.is_dir() else None
    book = Ledger.existing(ledger if folder is None else folder.journal)
    if ask == "export":
        print(json_format.dumps([line._asdict() for line in book.lines()], allow_nan=False, indent=1))
        return
    if ask == "verify":
        checked = 0 if folder is None else folder.check_all()
        terminal.line(f"Whole: {len(book.lines())} lines{f', {checked} files' if folder else ''}.")
        return
    known = book.terms.delta if delta is None else delta
    _show(book, DELTA if known is None else known, json=json)


def _show(book: Ledger, delta: float, *, json: bool) -> None:
    total = book.total()
    found = total.guarantees(delta)
    if json:
        terminal.guarantees(found, json=True)
        return
    rows = [(str(i), one.what, one.run, _steps(one), _alone(one, delta)) for i, one in enumerate(total.charges, 1)]
    terminal.table(("", "what", "run", "charged for", f"DP ε at δ = {up(delta, 3)}"), rows)
    terminal.line("")
    for one in found:
        terminal.line(_sentence(one, len(rows)))
    fixed = total.dp(delta, adaptive=False).epsilon
    if math.isfinite(fixed) and len(rows) > 1:
        terminal.line(f"If all runs were planned before the first result was seen: DP ε {up(fixed, 5)}.")
    budget = book.terms.budget
    if budget is not None:
        terminal.line(f"Budget: DP ε {budget:g} at δ = {up(book.terms.delta or delta, 3)}.")
    looks = sum(bool(one.looks) for one in total.charges)
    if looks:
        terminal.line(
            f"Not paid for: {looks} run{'s' if looks > 1 else ''} showed how well the model does on test records, "
            "without noise. What was chosen by looking at that, no guarantee speaks for with these records."
        )
    told = sum(note.get("covered") is False for note in book.notes())
    if told:
        terminal.line(f"Not paid for: {told} answers to requests to forget were computed from private data.")
    people = len({one.source for one in total.charges})
    if people > 1:
        terminal.line(f"The runs were on {people} versions of the data: who is in one of them pays less than all this.")


def _alone(one: Any, delta: float) -> str:
    from bayesdp.ledger import Total

    return up(Total((one,), {}, {}).dp(delta, adaptive=False).epsilon, 5)


def _steps(one: Any) -> str:
    if not one.steps:
        return "no bound" if math.isinf(one.epsilon) else "a release"
    words = f"{sum(n for _, _, n in one.steps):,} steps"
    return words if one.selection is None else f"the best of {one.selection.expected:.3g} times {words} on average"


def _sentence(one: Guarantee, runs: int) -> str:
    whole = f"All {runs} runs together" if runs > 1 else "Altogether"
    if one.notion == "dp":
        return f"{whole}: {one.label} {up(one.epsilon, 5)} at δ = {up(one.delta, 3)}, for everybody."
    whom = "the watched records" if one.notion == "per-instance" else f"{100 * (one.coverage or 0):.4g} % of people"
    better = " (no better than for everybody)" if one.no_better else ""
    return f"{whole}: {one.label} {up(one.epsilon, 5)} at δ = {up(one.delta, 3)}, for {whom}{better} (sensitive)."
