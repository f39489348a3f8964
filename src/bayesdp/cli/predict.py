"""`bayesdp predict`: a trained model or a fitted posterior on further records."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated

import typer

from bayesdp.cli import show
from bayesdp.cli import train_options as words
from bayesdp.errors import refuse

File = Annotated[str, typer.Argument(metavar="DATA", help="Records with the columns of training: CSV, Parquet or NPZ.")]
Predictions = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where the predictions go, e.g. predictions.csv: a new file. If left out, they are printed.",
        rich_help_panel="What comes out",
    ),
]


def predict(run: words.RunFolder, data: File, out: Predictions = None) -> None:
    """
    Use a trained model on the records of a file.

    One line for each record: the class and the probability of every class, or the number in the target's own
    units; of a posterior, the mean over its draws. The file needs the columns that the model was trained on, in any
    order; others are left alone. What comes out says nothing more about the training data than the model does.

    For example:
      bayesdp predict run new.csv
      bayesdp predict run new.csv --out predictions.csv
    """
    if out is not None and out.exists():
        raise refuse("out", str(out), "to be a new file", "It is there already: choose another name.")

    from bayesdp.learn.predictions import predict as answer

    lines = answer(run, data)
    if out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    with out.open("x", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    show.line(f"{len(lines) - 1:,} predictions: {out}")
