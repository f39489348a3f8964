"""`bayesdp study`: train again and again to learn what a run's plan costs named records, a priori."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesdp import errors
from bayesdp.cli import options, show
from bayesdp.cli import train_options as words
from bayesdp.cli.learning import INTERRUPTED, start_jax
from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.learn.prepared import Prepared
    from bayesdp.learn.study_result import StudyResult

STUDY = "How the study is made"

SHOWN = 30
"""Lines of the table that a terminal shows."""

Records = Annotated[
    str,
    words.option(
        words.WITNESSES,
        "--records",
        "N,N,…|FILE",
        "The records: their numbers in the data, from 1, e.g. 17,42; or a file with one number per line. Members of "
        "the training data and others alike.",
    ),
]
Runs = Annotated[float, words.option(STUDY, "--runs", "N", "Runs on each data set, e.g. 10.", options.number)]
Every = Annotated[
    float,
    words.option(
        STUDY,
        "--every",
        "K",
        "Measure the records every K steps only, and charge the clip norm in between: faster, and larger.",
        options.number,
    ),
]
Direction = Annotated[
    str,
    words.option(
        words.WITNESSES,
        "--direction",
        "NAME",
        "both; or remove (with the record against without it) or add (the other way round) alone.",
    ),
]
Ray = Annotated[
    str | None,
    words.option(STUDY, "--ray", "ADDRESS", "Spread the runs over a Ray cluster; local starts one on this machine."),
]
Failure = Annotated[
    float,
    words.option(
        words.WITNESSES, "--failure", "F", "Chance that an end of a record's interval is wrong.", options.number
    ),
]
Seed = Annotated[
    float | None,
    words.option(
        STUDY,
        "--seed",
        "S",
        "Draw the noise of all runs from this seed, e.g. 0. None of them is private.",
        options.number,
    ),
]
Out = Annotated[
    Path | None,
    words.option(words.OUTPUT, "--out", "FOLDER", "Where the study is kept; if left out, study in RUN."),
]
Json = Annotated[bool, options.output("--json", " ", "Print the table as a JSON list and nothing else.")]


def study(
    run: words.RunFolder,
    *,
    records: Records,
    runs: Runs = 10,
    every: Every = 1,
    direction: Direction = "both",
    failure: Failure = 0.05,
    ray: Ray = None,
    out: Out = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    r"""
    Train the plan of a run many times over and say what it costs named records.

    RUN is the folder of a finished "train": its plan, model, data and initial parameters are taken. Every record needs
    runs with it and runs without it. For each an ε as lower, estimate and upper: the upper one is certified, and from
    ten runs it is as a rule the worst case. The study's own runs are thrown away: none of them may be published.

    Interrupted, the same command goes on with what is missing.

    For example:
      bayesdp study run --records 17,42
      bayesdp study run --records hard.txt --runs 50 --ray local --json
    """
    start_jax()

    from bayesdp.learn.job import Job
    from bayesdp.learn.study import Study
    from bayesdp.learn.unfinished import job_of

    job = job_of(run)
    if not isinstance(job, Job):
        raise errors.refuse("run", str(run), "to be a run of train", "A study of fit is not made yet.")
    numbers = _numbers(records)
    with show.waiting("Loading the records"):
        ready = _prepared(job, numbers)
    plan = Study(
        ready.plan,
        runs=errors.whole("--runs", runs, least=1),
        every=errors.whole("--every", every, least=1),
        direction=direction,
        failure=failure,
        seed=None if seed is None else errors.whole("--seed", seed, least=0),
    )
    members, outsiders, names = _split(ready, numbers)
    folder = out or run / "study"
    try:
        with _watching() as progress:
            result = plan.run(
                ready.predictor.loss(),
                ready.params,
                (ready.data.x, ready.data.y),
                members=members,
                outsiders=outsiders,
                names=names,
                folder=folder,
                progress=progress,
                ray=ray,
            )
    except KeyboardInterrupt:
        show.remark("\nInterrupted. Nothing is lost: the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None
    with show.waiting("Accounting"):
        table = result.table
    result.write(folder / "table.csv")
    if json:
        show.json_list([_plain(line) for line in table])
        return
    _tell(result, folder)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of --records, from the option itself or from a file. Bad input: none, repeats, or no numbers."""
    path = Path(text)
    if path.is_file():
        lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
        text = ",".join(line for line in lines if line and not line.startswith("#"))
    found = tuple(errors.whole("--records", one, least=1) for one in options.numbers("--records", text))
    if len(set(found)) < len(found):
        raise errors.refuse("--records", text, "to name each record once")
    return found


def _prepared(job: Any, numbers: tuple[int, ...]) -> Prepared:
    from bayesdp.learn.prepared import prepare

    return prepare(dataclasses.replace(job, watch=numbers))


def _split(ready: Prepared, numbers: tuple[int, ...]) -> tuple[list[int], Any, list[str]]:
    """Rows of the members, the outsiders' records, and what they are called: members first."""
    import numpy as np

    places = ready.data.places
    total = len(ready.data.x) + len(ready.data.x_test)
    where = {int(place): i for i, place in enumerate(np.arange(total) if places is None else places)}
    rows = [where.get(number - 1, total) for number in numbers]
    inside = [i for i, row in enumerate(rows) if row < len(ready.data.x)]
    outside = [i for i, row in enumerate(rows) if row >= len(ready.data.x)]
    assert ready.watch is not None
    others = tuple(part[np.array(outside)] for part in ready.watch) if outside else None
    return [rows[i] for i in inside], others, [f"number {numbers[i]}" for i in (*inside, *outside)]


@contextmanager
def _watching() -> Iterator[Callable[[float], None]]:
    """A bar on stderr for the share of the work that is done."""
    with show.waiting("Training") as bar:
        yield lambda share: bar.update(bar.task_ids[0], total=1.0, completed=share)


def _tell(result: StudyResult, folder: Path) -> None:
    from bayesdp.learn.study_result import BETWEEN

    facts = result.facts
    steps = "at every step" if facts.every == 1 else f"every {facts.every} steps, {BETWEEN}"
    show.line(
        f"{facts.runs} runs of {len(facts.noise)} steps on each data set, records measured {steps}. Per-instance ε at "
        f"δ = {up(facts.delta, 3)}, most exposed first (sensitive):\n"
    )
    rows = [
        (
            f"{line['record']} ({line['role']})",
            line["direction"],
            down(line["lower"], 3),
            f"{line['estimate']:.3g}",
            up(line["upper"], 4),
            up(line["worst"], 4),
        )
        for line in result.table[:SHOWN]
    ]
    show.table(("record", "direction", "lower", "estimate", "upper", "worst case"), rows)
    for sentence in _meaning(result):
        show.line(sentence)
    show.line("")
    show.uncut(f"All lines: {folder / 'table.csv'}  (sensitive, like the whole folder)")


def _meaning(result: StudyResult) -> list[str]:
    facts = result.facts
    certified = sum(line["certified"] for line in result.table)
    verdict = (
        f"\nThese {facts.runs} runs certify less than the worst case for {certified} of {len(result.table)} lines."
        if certified
        else f"\nThese {facts.runs} runs certify no more than the worst case, for any of these records."
    )
    order, log_runs = result.runs_needed
    return [
        f"{verdict} To certify half of it at order {order:g}, where its Rényi ε is read off, takes about "
        f"{_count(log_runs)} runs (E9).",
        "\nremove: with the record against without it; add: the other way round. upper: certified for a further run "
        f"of the plan, wrong with probability at most {facts.failure:g} for each record. estimate: the runs' own "
        "averages, too low on average, no guarantee. lower: what no number of runs can bring the certified value below "
        "(wrong as rarely); it does not say what an attacker learns. The study's runs must not be published.",
    ]


def _count(log_runs: float) -> str:
    """A number of runs from its logarithm."""
    return f"{math.ceil(math.exp(log_runs)):,}" if log_runs < math.log(1e6) else f"10^{log_runs / math.log(10):.0f}"


def _plain(line: dict[str, Any]) -> dict[str, Any]:
    return {name: "inf" if isinstance(value, float) and math.isinf(value) else value for name, value in line.items()}
