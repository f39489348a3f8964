"""`bayesdp reproduce`: redo a figure of the papers."""

from __future__ import annotations

from pathlib import Path

from bayesdp import errors
from bayesdp.cli import options, show
from bayesdp.errors import InputError


def reproduce(
    name: options.Figure = None,
    out: options.Out = Path("results"),
    seed: options.Seed = 0,
    listing: options.Listing = False,
) -> None:
    r"""
    Redo a figure of the papers, in their way and in the sound way side by side.

    Writes NAME.csv (the numbers), NAME.png and NAME.svg (the picture). Needs matplotlib:
    pip install "bayesdp\[plot]".

    For example:
      bayesdp reproduce --list
      bayesdp reproduce bdp-fig1 --out results
    """
    from bayesdp import experiments

    if listing:
        show.pairs([(known, experiments.load(known).TITLE) for known in experiments.MODULES])
        return
    if name is None:
        raise InputError(f"Expected NAME to be one of {', '.join(experiments.MODULES)}, got none. See --list.")
    experiments.load(name)

    from bayesdp.experiments import run

    with show.waiting(f"Computing {name}"):
        files = run.reproduce(name, out, errors.whole("--seed", seed, least=0))
    for file in files:
        print(file)
