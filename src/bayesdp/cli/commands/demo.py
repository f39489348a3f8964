"""`bayesdp demo`: the whole way once, on data that is built in."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

from bayesdp.cli import options, shared_options, terminal
from bayesdp.cli.learning import carry_out, seed_of, start_jax

FOLDER = "bayesdp-demo"

Out = Annotated[
    Path | None,
    options.output("--out", "FOLDER", f"Where the files go. If left out: {FOLDER}, or {FOLDER}-2 and so on."),
]


def demo(out: Out = None, seed: shared_options.Seed = None, json: options.Json = False) -> None:
    """
    Train a model on 569 patients' data privately, and see what that promises to whom.

    A linear model learns to tell benign tumours from malignant ones. What its training promises everybody, people like
    these patients, and one of them is printed as a table and written as a page that opens in a browser.

    For example:
      bayesdp demo
      bayesdp demo --out try
    """
    start_jax()

    from bayesdp.jobs import demo as experiment
    from bayesdp.jobs.prepared_sgd import prepare
    from bayesdp.learn.loop.run_folder import RunFolder

    folder = _free() if out is None else out
    RunFolder(folder).check_free()
    with terminal.waiting("Loading the records and calibrating the noise"):
        prepared = prepare(experiment.job(seed_of(seed)))
    carry_out(prepared, folder, json=json)


def _free() -> Path:
    names = (Path(FOLDER if number == 1 else f"{FOLDER}-{number}") for number in count(1))
    return next(name for name in names if not name.exists())
