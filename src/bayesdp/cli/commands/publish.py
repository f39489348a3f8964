"""`bayesdp publish`: what of a run may be published, as a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesdp.cli import shared_options, terminal
from bayesdp.rounding import up

Bundle = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Where the bundle goes: a new or empty folder.",
        rich_help_panel="What comes out",
    ),
]
IntendedUse = Annotated[
    str, typer.Option("--intended-use", metavar="TEXT", help="What the model is for, in your words: public.")
]
Contact = Annotated[str, typer.Option("--contact", metavar="TEXT", help="Whom to ask, in your words: public.")]


def publish(run: shared_options.RunFolder, out: Bundle, intended_use: IntendedUse = "", contact: Contact = "") -> None:
    """
    Make a bundle of a run that may be published.

    It holds the model, a page and a model card with the DP guarantee, a list of what was left out and why, and a
    checksum of each file. Nothing in it depends on the data but what the guarantee covers, what was paid for
    (--metrics-share of train) and what was declared public; every file is looked through for the run's other numbers
    before it is written.

    For example:
      bayesdp publish run --out bundle
      bayesdp verify bundle
      bayesdp predict bundle new.csv
    """
    from bayesdp.publish.publishing import publish as make

    release = make(run, out, intended_use=intended_use, contact=contact)
    one = release.guarantee
    terminal.uncut(f"Bundle: {out}  (DP ε = {up(one.epsilon)} at δ = {up(one.delta)}; all of it may be published)")
    if release.paid is None:
        terminal.line("Test metrics were left out: none were paid for (--metrics-share of train).")
    if release.num_records is None:
        terminal.line(
            "The number of records was taken from the data: the guarantee takes it to be public, and the plan gives it "
            "away. Train with --num-records to declare another."
        )
    for sentence in release.declared:
        terminal.line(f"Public because it was declared so: {sentence}")
    terminal.uncut("Next:")
    terminal.uncut(f"  bayesdp verify {out}  (every file, and the ε from the plan)")
    terminal.uncut(f"  bayesdp predict {out} FILE  (the model on further records)")
