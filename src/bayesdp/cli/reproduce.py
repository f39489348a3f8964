"""`bayesdp reproduce`: redo a figure of the papers."""

from __future__ import annotations

from pathlib import Path

from bayesdp import errors
from bayesdp.cli import options, show, train_options
from bayesdp.errors import InputError


def reproduce(
    name: options.Figure = None,
    out: options.Out = Path("results"),
    seed: options.Seed = 0,
    full: options.Full = False,
    data_dir: train_options.DataDir = None,
    listing: options.Listing = False,
) -> None:
    r"""
    Redo a figure or table of the papers, in their way and in the sound way side by side.

    Writes NAME.csv (the numbers), NAME.png and NAME.svg (the picture). Those that train take some minutes on two
    cores; --full trains at the paper's size instead, which takes hours, and writes NAME-full.csv and so on. Needs
    matplotlib: pip install "bayesdp\[plot]".

    For example:
      bayesdp reproduce --list
      bayesdp reproduce bdp-fig1 --out results
      bayesdp reproduce bdp-mnist --data-dir ~/data
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
        files = run.reproduce(name, out, errors.whole("--seed", seed, least=0), full=full, data_dir=data_dir)
    for file in files:
        print(file)
