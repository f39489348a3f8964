"""`bayesdp reproduce`: redo a figure of the papers."""

from __future__ import annotations

from pathlib import Path

from bayesdp import errors
from bayesdp.cli import options, shared_options, terminal


def reproduce(
    name: options.Figure = None,
    out: options.Out = Path("results"),
    seed: options.Seed = 0,
    full: options.Full = False,
    data_dir: shared_options.DataDir = None,
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
        terminal.pairs([(known, experiments.load(known).title) for known in experiments.MODULES])
        return
    if name is None:
        raise errors.refuse("name", None, f"to be one of {', '.join(experiments.MODULES)}", "See --list.", got="none")
    experiments.load(name)

    from bayesdp.experiments import run

    with terminal.waiting(f"Computing {name}"):
        files = run.reproduce(name, out, errors.whole("seed", seed, least=0), full=full, data_dir=data_dir)
    for file in files:
        print(file)
