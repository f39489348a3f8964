"""The words of accounting on the command line, once, so that the same word means the same thing in every command.

Those of learning are in `shared_options`, `train_options` and `fit_options`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesdp import errors

_PLAN = "How noise is added"
_METHOD = "How it is accounted for"
_WITNESSES = "Witnesses"
_OUTPUT = "What comes out"

Parser = Callable[[str], float] | None


def number(text: str) -> float:
    """Any number, so that 1e4 steps can be typed; the library says which numbers it takes."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


def plan(name: str, metavar: str, text: str, parser: Parser = number) -> Any:
    return typer.Option(name, metavar=metavar, help=text, parser=parser, rich_help_panel=_PLAN)


def _method(name: str, metavar: str, text: str, parser: Parser = None) -> Any:
    return typer.Option(name, metavar=metavar, help=text, parser=parser, rich_help_panel=_METHOD)


def _witnesses(name: str, metavar: str | None, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=_WITNESSES)


def output(name: str, metavar: str, text: str, parser: Parser = None) -> Any:
    return typer.Option(name, metavar=metavar, help=text, parser=parser, rich_help_panel=_OUTPUT)


# --- the plan ---------------------------------------------------------------------------------------------------

Epsilon = Annotated[float, plan("--epsilon", "E", "The DP ε to keep, e.g. 2.")]
EpsilonOrNone = Annotated[float | None, plan("--epsilon", "E", "The DP ε to keep, e.g. 2.")]
Attacker = Annotated[
    float | None,
    plan(
        "--attacker",
        "P",
        "Instead of --epsilon: how often an attacker who starts undecided may be right, e.g. 0.55 (a coin is right "
        "half of the time).",
    ),
]
Advantage = Annotated[
    float | None,
    plan("--advantage", "A", "Instead of --epsilon: how far true positives may exceed false positives, e.g. 0.1."),
]
Delta = Annotated[
    float, plan("--delta", "D", "The δ, in (0, 1): well below one over the number of records, e.g. 1e-5.")
]
NoiseMultiplier = Annotated[
    float | None,
    plan("--noise-multiplier", "Z", "Standard deviation of the noise divided by the clip norm, e.g. 1.1."),
]
NoiseStd = Annotated[
    float | None,
    plan("--noise-std", "S", "Standard deviation of the noise, in the unit of the distances, e.g. 1.5."),
]
ClipNorm = Annotated[
    float | None,
    plan(
        "--clip-norm",
        "C",
        "The largest distance there can be, e.g. 1. Without it nothing is promised to everybody (DP).",
    ),
]
SamplingRate = Annotated[
    float, plan("--sampling-rate", "Q", "Chance that a record enters a step (Poisson sampling), e.g. 0.01.")
]
SamplingRateOrNone = Annotated[
    float | None,
    plan("--sampling-rate", "Q", "Chance that a record enters a step (Poisson sampling), e.g. 0.01; 1 is everybody."),
]
Steps = Annotated[float | None, plan("--steps", "N", "Number of noisy steps, e.g. 1000.")]
TotalSteps = Annotated[
    float | None,
    plan(
        "--total-steps",
        "N",
        "Planned number of steps, e.g. 1000: more rows are an error. Needed for --composition holder.",
    ),
]
Phases = Annotated[
    list[str] | None,
    plan(
        "--phase",
        "Z,Q,N",
        "N more steps with noise multiplier Z and sampling rate Q; repeat it for a mix, "
        "e.g. --phase 2,0.01,500 --phase 1,0.01,100.",
        parser=None,
    ),
]

# --- the method -------------------------------------------------------------------------------------------------

Engine = Annotated[str, _method("--engine", "NAME", "pld (the tightest), or for comparison rdp, moments or advanced.")]
Adjacency = Annotated[
    str,
    _method(
        "--adjacency",
        "NAME",
        "What neighbouring data sets differ in: add-remove (a record more or less) or replace-one.",
    ),
]
Orders = Annotated[
    str | None,
    _method("--orders", "A,B,…", "Rényi orders > 1, fixed before the run, e.g. 2,4,8,16. Chosen for you if left out."),
]
Coverage = Annotated[
    float | None,
    _method(
        "--coverage",
        "P",
        "Share of people that the Bayesian guarantee speaks for, fixed before looking, e.g. 0.9, which is taken "
        "if left out, or less where the records are too few.",
        parser=number,
    ),
]
Failure = Annotated[
    float,
    _method("--failure", "F", "Chance that the share is wrong (holdout) or one estimate is (holder, product).", number),
]
Composition = Annotated[
    str,
    _method(
        "--composition",
        "NAME",
        "How Bayesian costs add up: holdout; or as in the papers holder, or product (unsound).",
    ),
]
Estimator = Annotated[
    str | None,
    _method(
        "--estimator",
        "NAME",
        "Bound on a mean for holder and product: betting (taken if left out), bernstein, kl, hoeffding or "
        "student-t (a heuristic).",
    ),
]

# --- the witnesses ----------------------------------------------------------------------------------------------

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Distances: rows are steps, columns records. CSV, NPZ or Parquet.")
]
Members = Annotated[
    Path | None,
    _witnesses(
        "--members",
        "FILE",
        "Distances of records that were trained on, e.g. inside.csv. Without it the Bayesian guarantee speaks for "
        "outsiders only.",
    ),
]
Groups = Annotated[
    Path | None,
    _witnesses(
        "--groups",
        "FILE",
        "The group of each record, e.g. groups.txt: a line each, in the order of FILE's records and then of those of "
        "--members. Also a Bayesian number for each group, all valid together (holdout).",
    ),
]
ArrayName = Annotated[str | None, _witnesses("--array", "NAME", "Which array of an NPZ with several, e.g. norms.")]
Header = Annotated[
    bool | None,
    _witnesses(
        "--header/--no-header",
        " ",
        "Whether the first line of a CSV names the records. If left out: when it holds no number.",
    ),
]

# --- the output -------------------------------------------------------------------------------------------------

ReportPage = Annotated[
    Path | None, output("--report", "FILE", "Write a page that opens offline, e.g. page.html; .json for the numbers.")
]
Json = Annotated[bool, output("--json", " ", "Print a JSON list of guarantees and nothing else.")]
Curve = Annotated[
    bool, output("--curve", " ", "Also the Bayesian ε of several shares of people, valid together (holdout).")
]
Unit = Annotated[
    str, output("--unit", "NAME", "record, or person where each column of FILE is a person with several rows.")
]
Top = Annotated[
    float | None,
    output("--top", "N", "Also the N most exposed records, e.g. 5: sensitive, and no promise to these.", number),
]
Seed = Annotated[float, output("--seed", "S", "Seed of the random draws: the same seed, the same output.", number)]
Out = Annotated[Path, output("--out", "FOLDER", "Where the files go; made if missing.")]
Full = Annotated[bool, output("--full", " ", "The paper's own size, where the usual one is smaller: hours.")]
Listing = Annotated[bool, output("--list", " ", "List the figures and leave.")]
Figure = Annotated[str | None, typer.Argument(metavar="NAME", help="Which figure, e.g. bdp-fig1: see --list.")]


def order_list(text: str | None) -> list[float] | None:
    """The numbers of `--orders`; the accountant checks their values."""
    return None if text is None else numbers("orders", text)


def numbers(name: str, text: str, count: int | None = None) -> list[float]:
    """Numbers separated by commas; `count` of them when given. Anything else gets `InputError`."""
    expected = "numbers" if count is None else f"{count} numbers"
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or count not in (None, len(values)):
        raise errors.refuse(name, text, f"to be {expected} separated by commas", got=str(errors.Argument(name, text)))
    return values
