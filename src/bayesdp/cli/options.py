"""Options that several commands share: the same word means the same thing everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesdp.errors import InputError

NoiseMultiplier = Annotated[
    float | None,
    typer.Option(
        "--noise-multiplier", metavar="Z", help="Standard deviation of the noise divided by the clip norm, e.g. 1.1."
    ),
]
SamplingRate = Annotated[
    float | None,
    typer.Option(
        "--sampling-rate",
        metavar="Q",
        help="Chance that a record enters a step (Poisson sampling), e.g. 0.01; 1 is no sampling.",
    ),
]
# A float, so that 1e4 can be typed; the library asks for a whole number.
Steps = Annotated[float | None, typer.Option("--steps", metavar="N", help="Number of noisy steps, e.g. 1000.")]
Delta = Annotated[
    float,
    typer.Option("--delta", metavar="D", help="The δ, in (0, 1): far below one over the number of records, e.g. 1e-5."),
]
Epsilon = Annotated[float, typer.Option("--epsilon", metavar="E", help="The DP ε, e.g. 2.")]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="pld|rdp|moments|advanced",
        help="How steps are added up; pld is the tightest, the others are for comparison.",
    ),
]
Adjacency = Annotated[
    str,
    typer.Option(
        "--adjacency",
        metavar="add-remove|replace-one",
        help="What differs between two neighbouring data sets: a record more or less, or one exchanged.",
    ),
]
Phases = Annotated[
    list[str] | None,
    typer.Option(
        "--phase",
        metavar="Z,Q,N",
        help="N more steps with noise multiplier Z and sampling rate Q; repeat it for a mix, "
        "e.g. --phase 2,0.01,500 --phase 1,0.01,100.",
    ),
]
Orders = Annotated[
    str | None,
    typer.Option(
        "--orders",
        metavar="A,B,…",
        help="Rényi orders > 1, fixed before the run, e.g. 2,4,8,16,32. Chosen well when left out.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON list of guarantees and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Seed of the random draws.")]


def order_list(text: str | None) -> list[float] | None:
    """The numbers of `--orders`; the accountant checks their values."""
    return None if text is None else numbers("--orders", text)


def numbers(option: str, text: str, count: int | None = None) -> list[float]:
    """Numbers separated by commas; `count` of them when given. Anything else gets `InputError`."""
    expected = "numbers" if count is None else f"{count} numbers"
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or count not in (None, len(values)):
        raise InputError(f"Expected {option} to be {expected} separated by commas, got {option}={text!r}.")
    return values
