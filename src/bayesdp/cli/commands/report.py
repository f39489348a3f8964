"""`bayesdp report`: what a run promised, once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesdp import errors
from bayesdp.cli import options, shared_options, terminal

if TYPE_CHECKING:
    from bayesdp.report import Report

Page = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where the page goes: a name that ends in .html; if left out, report.html in RUN.",
        rich_help_panel="What comes out",
    ),
]


def report(run: shared_options.RunFolder, out: Page = None, json: options.Json = False) -> None:
    """
    Print what a run promised, and write its page anew from report.json.

    The page is one HTML file that opens offline. It is sensitive: it holds losses record by record.

    For example:
      bayesdp report run
      bayesdp report run --out promises.html
    """
    from bayesdp.jobs.derived_again import check_derived
    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.report import read, write

    folder = RunFolder(run)
    found = read(folder.need(folder.report))
    check_derived(folder, found)
    if out is not None and (out.suffix.lower() not in (".html", ".htm") or out.exists()):
        raise errors.refuse("out", str(out), "to be a new file that ends in .html")
    if out is None:
        with folder.locked(wait=True):
            page = write(found, folder.page)
            folder.seal(page)
    else:
        page = write(found, out)
    if json:
        terminal.guarantees(found.guarantees, json=True)
        return
    with terminal.speaking_of(found.guarantees[0].unit):
        _tell(found, page)


def _tell(found: Report, page: Path) -> None:
    terminal.line(f"{found.title}, {found.created}.")
    if found.seeded:
        terminal.line(terminal.SEEDED)
    if found.posterior is not None:
        terminal.posterior(found.posterior, seeded=found.seeded)
    for name, value in found.metrics.items():
        if value is not None:
            terminal.line(terminal.metric(name, value))
    if found.confusion is not None:
        terminal.confusion(found.confusion)
    if found.paid is not None:
        terminal.paid(found.paid, seeded=found.seeded)
    terminal.guarantees(found.guarantees)
    if found.shift is not None and found.shift.warns:
        terminal.shifted()
    if found.groups is not None:
        terminal.groups(found.groups, found.delta)
    terminal.line(f"\nThe page: {page}")
