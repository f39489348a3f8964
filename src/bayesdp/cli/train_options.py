"""The words of learning on the command line: every option of `train`, once; `fit` takes what fits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesdp.cli.options import Parser, number

DATA = "Which records"
MODEL = "What is learned, and how"
PLAN = "How noise is added"
WITNESSES = "For whom it is accounted"
OUTPUT = "What comes out"


def option(panel: str, name: str, metavar: str, text: str, parser: Parser = None) -> Any:
    return typer.Option(name, metavar=metavar, help=text, parser=parser, rich_help_panel=panel)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A data set by name (digits, breast-cancer, adult, abalone, mnist, cifar10, svhn), or a file of your own: "
        "CSV, Parquet or NPZ.",
    ),
]

# --- the records ------------------------------------------------------------------------------------------------

Target = Annotated[str | None, option(DATA, "--target", "COLUMN", "The column of a file to learn, e.g. income.")]
Task = Annotated[
    str | None,
    option(DATA, "--task", "NAME", "classification or regression, where the guess from the target is not right."),
]
Drop = Annotated[
    list[str] | None, option(DATA, "--drop", "COLUMN", "A column of a file to leave out, e.g. name; may be repeated.")
]
Categories = Annotated[
    list[str] | None,
    option(
        DATA, "--categories", "COLUMN", "A column of numbers that are names of categories, e.g. zip; may be repeated."
    ),
]
Scale = Annotated[
    str | None,
    option(DATA, "--scale", "NAME", "standard (taken if left out: means and scales are then public) or none."),
]
TestShare = Annotated[
    float | None,
    option(DATA, "--test-share", "P", "Share of a file's records that is kept for testing, e.g. 0.2.", number),
]
Features = Annotated[
    str | None,
    option(DATA, "--features", "NAME", "scattering: turn images into features on which a linear model goes far."),
]
DataDir = Annotated[
    Path | None, option(DATA, "--data-dir", "FOLDER", "Where files of named data sets are, e.g. ~/data.")
]
NoDownload = Annotated[bool, option(DATA, "--no-download", " ", "Do not fetch a named data set that is not there.")]

# --- the model --------------------------------------------------------------------------------------------------

Model = Annotated[
    str | None,
    option(MODEL, "--model", "NAME", "logistic (linear), mlp, cnn or lenet5. If left out: by the kind of records."),
]
Optimizer = Annotated[str, option(MODEL, "--optimizer", "NAME", "adam or sgd.")]
LearningRate = Annotated[
    float | None, option(MODEL, "--learning-rate", "R", "Of the optimiser, e.g. 0.05. Chosen if left out.", number)
]
Momentum = Annotated[float | None, option(MODEL, "--momentum", "M", "Of --optimizer sgd, e.g. 0.9.", number)]

# --- the plan ---------------------------------------------------------------------------------------------------

Epsilon = Annotated[
    float | None,
    option(PLAN, "--epsilon", "E", "The DP ε to keep, e.g. 2: the noise is calibrated to it.", number),
]
NoiseMultiplier = Annotated[
    float | None,
    option(
        PLAN,
        "--noise-multiplier",
        "Z",
        "Instead of --epsilon: standard deviation of the noise divided by the clip norm, e.g. 1.1.",
        number,
    ),
]
Delta = Annotated[
    float | None,
    option(
        PLAN,
        "--delta",
        "D",
        "The δ, below one over the number of records, e.g. 1e-5, which is taken if left out where that is so.",
        number,
    ),
]
ClipNorm = Annotated[
    str | None,
    option(
        PLAN,
        "--clip-norm",
        "C",
        "The largest distance that one record may move the sum, e.g. 1; none for no limit, with --noise-std: then "
        "nothing is promised to everybody (DP).",
    ),
]
NoiseStd = Annotated[
    float | None,
    option(PLAN, "--noise-std", "S", "With --clip-norm none: standard deviation of the noise, e.g. 5.", number),
]
SamplingRate = Annotated[
    float | None,
    option(PLAN, "--sampling-rate", "Q", "Chance that a record enters a step (Poisson), e.g. 0.05.", number),
]
BatchSize = Annotated[
    float | None,
    option(PLAN, "--batch-size", "B", "Instead of --sampling-rate: records in a step on average, e.g. 512.", number),
]
Steps = Annotated[float | None, option(PLAN, "--steps", "N", "Number of noisy steps, e.g. 200.", number)]
Epochs = Annotated[
    float | None,
    option(PLAN, "--epochs", "N", "Instead of --steps: how often a record is seen on average, e.g. 20.", number),
]
Schedule = Annotated[
    str,
    option(
        PLAN,
        "--schedule",
        "NAME",
        "Noise over the steps: constant, or typical (more at first, when everybody is clipped: at the same DP ε it is "
        "gentler on typical people).",
    ),
]
Budget = Annotated[
    float | None,
    option(PLAN, "--epsilon-budget", "E", "Stop before the step that would pass this DP ε, e.g. 3.", number),
]

# --- the witnesses ----------------------------------------------------------------------------------------------

Audit = Annotated[
    float | None,
    option(
        WITNESSES,
        "--audit",
        "N",
        "How many records are held out of the training data to speak for outsiders, e.g. 2000; 0 for none.",
        number,
    ),
]
Members = Annotated[
    float | None,
    option(WITNESSES, "--members", "N", "How many training records speak for members, e.g. 2000; 0 for none.", number),
]
Watch = Annotated[
    str | None,
    option(
        WITNESSES,
        "--watch",
        "N,N,…",
        "Records whose own guarantee is wanted: their numbers in the file, from 1, e.g. 17,42; a text file with a "
        "number in each line; or, for train, everyone.",
    ),
]
FilterEpsilon = Annotated[
    float | None,
    option(
        PLAN,
        "--filter-epsilon",
        "E",
        "Leave a record out once its own steps add up to this DP ε, e.g. 1: everybody is then promised that ε, however "
        "much the plan costs in the worst case.",
        number,
    ),
]
Refresh = Annotated[
    float | None,
    option(
        PLAN,
        "--refresh",
        "K",
        "With --watch everyone or --filter-epsilon: measure all records every K steps, e.g. 10, and clip each at what "
        "was measured in between; if left out, at every step.",
        number,
    ),
]
KeepIterates = Annotated[
    float | None,
    option(
        WITNESSES,
        "--keep-iterates",
        "K",
        "Keep the parameters before every Kth step, e.g. 1, so that the command instance can tell any record's own "
        "guarantee later.",
        number,
    ),
]
Coverage = Annotated[
    float,
    option(
        WITNESSES,
        "--coverage",
        "P",
        "Share of people that the Bayesian guarantee speaks for, fixed before the run, e.g. 0.9.",
        number,
    ),
]

# --- the output -------------------------------------------------------------------------------------------------

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
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder that training wrote.")]
