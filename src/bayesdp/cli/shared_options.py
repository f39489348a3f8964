"""The words of learning on the command line, once: what `train` and `fit` share, in groups.

Each group is a dataclass whose fields are options; `option_groups.spread` makes them the command's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesdp.cli import options
from bayesdp.cli.options import Parser, number

DATA = "Which records"
MODEL = "What is learned, and how"
PLAN = "How noise is added"
WITNESSES = "For whom it is accounted"
OUTPUT = "What comes out"


def option(panel: str, name: str, metavar: str, text: str, parser: Parser = None) -> Any:
    return typer.Option(name, metavar=metavar, help=text, parser=parser, rich_help_panel=panel)


DataDir = Annotated[
    Path | None, option(DATA, "--data-dir", "FOLDER", "Where files of named data sets are, e.g. ~/data.")
]
Out = Annotated[
    Path, option(OUTPUT, "--out", "FOLDER", "Where the model, the report and all else go: a new or empty folder.")
]
Seed = Annotated[
    float | None,
    option(
        OUTPUT,
        "--seed",
        "S",
        "Draw the noise from this seed, e.g. 0: the run can be repeated, and is therefore not private.",
        number,
    ),
]
LedgerFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        "--ledger",
        "FILE",
        "Charge the run to this ledger before its first step, e.g. people.ledger: one for all runs on the same data; "
        "begun where there is none.",
    ),
]
LedgerBudget = Annotated[
    float | None,
    option(
        OUTPUT,
        "--ledger-budget",
        "E",
        "The DP ε that all runs of a new ledger may come to at the δ of the first, e.g. 4.",
        number,
    ),
]
Moved = Annotated[
    bool,
    option(
        OUTPUT,
        "--moved",
        " ",
        "The folder was moved to another disk, and no copy of it goes on elsewhere: my word for it.",
    ),
]
TrustCode = Annotated[
    bool,
    option(
        OUTPUT, "--trust-code", " ", "Run the model.py that lies in RUN, which can do whatever you can: read it before."
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder that training wrote.")]


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """Which records are learned from."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A data set by name (digits, breast-cancer, adult, abalone, mnist, cifar10, svhn), or a file of your "
            "own: CSV, TSV, Parquet or NPZ.",
        ),
    ]
    target: Annotated[str | None, option(DATA, "--target", "COLUMN", "The column of a file to learn, e.g. income.")] = (
        None
    )
    task: Annotated[
        str | None,
        option(DATA, "--task", "NAME", "classification or regression, where the guess from the target is not right."),
    ] = None
    drop: Annotated[
        list[str] | None,
        option(DATA, "--drop", "COLUMN,…", "Columns of a file to leave out, e.g. name,phone; may be repeated."),
    ] = None
    keep: Annotated[
        list[str] | None,
        option(
            DATA,
            "--keep",
            "COLUMN,…",
            "Columns to learn from although they have another value in every row, like an identifier.",
        ),
    ] = None
    categories: Annotated[
        list[str] | None,
        option(
            DATA,
            "--categories",
            "COLUMN,…",
            "Columns of numbers that are names of categories, e.g. zip; may be repeated.",
        ),
    ] = None
    read: Annotated[
        list[str] | None,
        option(
            DATA,
            "--read",
            "COLUMN=KIND",
            "How a column is written: number, decimal-comma, date, day-first, month-first, time, boolean or text; what "
            "is none of that kind counts as missing. If left out, what all cells are is seen. May be repeated.",
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        option(
            DATA,
            "--missing",
            "RULE",
            "What is done where there is no value: drop (the row), indicator (one more feature) or value (the middle "
            "of the scale), or value:V. For one column age=indicator; may be repeated.",
        ),
    ] = None
    scale: Annotated[
        str | None,
        option(
            DATA,
            "--scale",
            "NAME",
            "How columns of a file that are not declared are scaled: private (taken if left out: ranges and levels "
            "cost a share of ε), public-statistics (exact means and levels, which are then public) or none.",
        ),
    ] = None
    scale_share: Annotated[
        float | None,
        option(DATA, "--scale-share", "P", "The share of ε for --scale private, e.g. 0.1.", number),
    ] = None
    bounds: Annotated[
        list[str] | None,
        option(
            DATA,
            "--bounds",
            "COLUMN=LOW,HIGH",
            "The range of a column as known beforehand, e.g. age=0,110: it costs nothing. May be repeated.",
        ),
    ] = None
    levels: Annotated[
        list[str] | None,
        option(
            DATA,
            "--levels",
            "COLUMN=LEVEL,…",
            "The levels of a column of texts, or the classes of the target, as known beforehand, e.g. smoker=no,yes. "
            "May be repeated.",
        ),
    ] = None
    bounds_file: Annotated[
        Path | None,
        option(
            DATA,
            "--bounds-file",
            "FILE",
            "Bounds and levels by column: JSON, or CSV with the columns column, low, high and perhaps levels (a|b).",
        ),
    ] = None
    test_share: Annotated[
        float | None,
        option(DATA, "--test-share", "P", "Share of a file's records that is kept for testing, e.g. 0.2.", number),
    ] = None
    person: Annotated[
        str | None,
        option(
            DATA,
            "--person",
            "COLUMN",
            "The column that says whose row each is, e.g. patient, where people have several: all promises are then "
            "about a person with all their rows. In an NPZ, an array.",
        ),
    ] = None
    rows_per_person: Annotated[
        float | None,
        option(
            DATA,
            "--rows-per-person",
            "N",
            "How many rows of a person are used at most, a public number; of more, so many are drawn at random. 10 if "
            "left out.",
            number,
        ),
    ] = None
    data_dir: DataDir = None
    no_download: Annotated[
        bool, option(DATA, "--no-download", " ", "Do not fetch a named data set that is not there.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The plan, the witnesses and the accounting of whatever is learned: fields of every job."""

    epsilon: Annotated[
        float | None,
        option(PLAN, "--epsilon", "E", "The DP ε to keep, e.g. 2: the noise is calibrated to it.", number),
    ] = None
    delta: Annotated[
        float | None,
        option(
            PLAN,
            "--delta",
            "D",
            "The δ, below one over the number of records, e.g. 1e-5, which is taken if left out where that is so.",
            number,
        ),
    ] = None
    noise_multiplier: Annotated[
        float | None,
        option(
            PLAN,
            "--noise-multiplier",
            "Z",
            "Instead of --epsilon: standard deviation of the noise divided by the clip norm, e.g. 1.1.",
            number,
        ),
    ] = None
    noise_kind: Annotated[
        str | None,
        option(
            PLAN,
            "--noise",
            "KIND",
            "lattice, which is taken if left out where sums are clipped: whole numbers, whose last bits tell nothing "
            "of anybody; or float, a little faster, for research: guarantees then say so.",
        ),
    ] = None
    sampling_rate: Annotated[
        float | None,
        option(PLAN, "--sampling-rate", "Q", "Chance that a record enters a step (Poisson), e.g. 0.05.", number),
    ] = None
    batch_size: Annotated[
        float | None,
        option(
            PLAN, "--batch-size", "B", "Instead of --sampling-rate: records in a step on average, e.g. 512.", number
        ),
    ] = None
    steps: Annotated[float | None, option(PLAN, "--steps", "N", "Number of noisy steps, e.g. 200.", number)] = None
    epochs: Annotated[
        float | None,
        option(PLAN, "--epochs", "N", "Instead of --steps: how often a record is seen on average, e.g. 20.", number),
    ] = None
    holdout: Annotated[
        float | None,
        option(
            WITNESSES,
            "--holdout",
            "N",
            "How many records are held out of the training data to speak for outsiders, e.g. 2000; 0 for none.",
            number,
        ),
    ] = None
    members: Annotated[
        float | None,
        option(
            WITNESSES, "--members", "N", "How many training records speak for members, e.g. 2000; 0 for none.", number
        ),
    ] = None
    num_records: Annotated[
        float | None,
        option(
            PLAN,
            "--num-records",
            "N",
            "How many records (with --person, people) DATA has, a test set of its own not counted, e.g. 50000: said "
            "independently of the data, "
            "so that nothing depends on their true number. If left out, that is taken and declared public.",
            number,
        ),
    ] = None
    groups: Annotated[
        str | None,
        option(
            WITNESSES,
            "--groups",
            "COLUMN",
            "A column of your table, e.g. ward: the report says what its groups are promised; classes if left out.",
        ),
    ] = None
    watch: Annotated[
        str | None,
        option(
            WITNESSES,
            "--watch",
            "N,N,…",
            "Records whose own guarantee is wanted: their numbers in the file, from 1, e.g. 17,42; a text file with a "
            "number in each line; or, for train, everyone. With --person, names of people as that column has them.",
        ),
    ] = None
    coverage: Annotated[
        float,
        option(
            WITNESSES,
            "--coverage",
            "P",
            "Share of people that the Bayesian guarantee speaks for, fixed before the run, e.g. 0.9.",
            number,
        ),
    ] = 0.9
    adjacency: options.Adjacency = "add-remove"
    engine: options.Engine = "pld"
    seed: Seed = None
