"""`bayesdp report`: what a run promised, once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesdp import errors
from bayesdp.cli import options, show
from bayesdp.cli import train_options as words

Page = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where the page goes: a name that ends in .html; if left out, report.html in RUN.",
        rich_help_panel="What comes out",
    ),
]


def report(run: words.RunFolder, out: Page = None, json: options.Json = False) -> None:
    """
    Print what a run promised, and write its page anew from report.json.

    The page is one HTML file that opens offline. It is sensitive: it holds losses record by record.

    For example:
      bayesdp report run
      bayesdp report run --out promises.html
    """
    from bayesdp.report import read, write

    source = run / "report.json"
    if not source.is_file():
        raise errors.refuse("run", str(run), "to be a folder with a finished run, which has a report.json")
    found = read(source)
    if out is not None and (out.suffix.lower() not in (".html", ".htm") or out.exists()):
        raise errors.refuse("out", str(out), "to be a new file that ends in .html")
    page = write(found, out or run / "report.html")
    if json:
        show.guarantees(found.guarantees, json=True)
        return
    show.line(f"{found.title}, {found.created}.")
    if found.seeded:
        show.line(show.SEEDED)
    if found.posterior is not None:
        show.posterior(found.posterior, seeded=found.seeded)
    for name, value in found.metrics.items():
        if value is not None:
            show.line(show.metric(name, value))
    show.guarantees(found.guarantees)
    show.line(f"\nThe page: {page}")
