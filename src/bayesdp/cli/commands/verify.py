"""`bayesdp verify`: whether a published bundle is whole, and its ε follows from its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesdp.cli import options, terminal
from bayesdp.rounding import up

Folder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder that publish wrote; or that of a run.")]


def verify(run: Folder, json: options.Json = False) -> None:
    """
    Check a published bundle: every file, and the DP ε from the plan.

    Each file has the checksum of the manifest, and none is there besides; the DP ε is computed anew from noise,
    rates and steps; page and card say what the release says. Exit code 0: all of it holds. Checksums notice accidents,
    not forgery: compare the manifest's digest with one that reached you another way.

    For example:
      bayesdp verify bundle
    """
    from bayesdp.publish.verify import verify as check

    found = check(run)
    if json:
        terminal.json_list([vars(found)])
        return
    if found.files:
        terminal.line(f"{found.files} files are as they were written.")
    terminal.line(
        f"DP ε = {up(found.epsilon)} at δ = {up(found.delta)} is what the release states; computed anew from the plan: "
        f"{up(found.recomputed)}."
    )
    for remark in found.remarks:
        terminal.line(remark)
    if found.digest:
        terminal.uncut(f"SHA-256 of the manifest: {found.digest}")
