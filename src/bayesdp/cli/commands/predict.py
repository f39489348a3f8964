"""`bayesdp predict`: a trained model or a fitted posterior on further records."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from bayesdp.cli import shared_options, terminal
from bayesdp.cli.options import number
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

Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="P",
        help="Of two classes, predict the second where its probability is at least P, e.g. 0.3; 0.5 if left out.",
        parser=number,
    ),
]
Public = Annotated[
    bool,
    typer.Option(
        "--public",
        metavar=" ",
        help="The predictions are to be published: refuse a file with records that the run was made with. Their data "
        "must be where they were.",
    ),
]


Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="A column of the records to carry along as the first of the predictions, e.g. id.",
        rich_help_panel="What comes out",
    ),
]


def predict(
    run: shared_options.RunFolder,
    data: File,
    threshold: Threshold = None,
    public: Public = False,
    out: Predictions = None,
    key: Key = None,
    trust_code: shared_options.TrustCode = False,
) -> None:
    """
    Use a trained model on the records of a file.

    One line for each record: the class and the probability of every class, or the number in the target's own
    units; of a posterior, the mean over its draws. The file needs the columns that the model was trained on, in any
    order; others are left alone. Categories that the model does not know are counted and said.

    A line is a function of that record's own features: about records that were trained on, held out or tested on,
    predictions are as secret as the records, and no guarantee covers them. Of other records the model's part may be
    published with the model. --public refuses a file in which such a record is found.

    For example:
      bayesdp predict run new.csv
      bayesdp predict run new.csv --out predictions.csv
      bayesdp predict run new.csv --key id
      bayesdp predict run new.csv --threshold 0.3 --public
    """
    if out is not None and out.exists():
        raise refuse("out", str(out), "to be a new file", "It is there already: choose another name.")

    from bayesdp.jobs.predict import predict as answer
    from bayesdp.jobs.predict import remarks
    from bayesdp.report.records.cells import escaped
    from bayesdp.storage import replace

    found = answer(run, data, key=key, threshold=threshold, public=public, trust_code=trust_code)
    lines = [[escaped(cell) for cell in line] for line in found]
    for remark in remarks(run, data, trust_code=trust_code):
        terminal.remark(remark)
    if out is None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
        return
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    replace(out, text.getvalue().encode(), private=False)
    terminal.line(f"{len(lines) - 1:,} predictions: {out}")
