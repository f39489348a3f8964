"""`bayesdp study`: train again and again to learn what a run's plan costs named records, a priori."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bayesdp import errors
from bayesdp.cli import options, shared_options, terminal
from bayesdp.cli.learning import INTERRUPTED, start_jax
from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.accountant.repeated_runs.truncation import Truncation as TruncationPlan
    from bayesdp.jobs.data_source import Labelled
    from bayesdp.jobs.prepared_sgd import PreparedSGD
    from bayesdp.learn.study.result import StudyResult

STUDY = "How the study is made"

SHOWN = 30
"""Lines of the table that a terminal shows."""

Records = Annotated[
    str,
    shared_options.option(
        shared_options.WITNESSES,
        "--records",
        "N,N,…|FILE",
        "The records: their numbers in the data, from 1, e.g. 17,42; or a file with one number per line. Members of "
        "the training data and others alike.",
    ),
]
Runs = Annotated[float, shared_options.option(STUDY, "--runs", "N", "Runs on each data set, e.g. 10.", options.number)]
Every = Annotated[
    float,
    shared_options.option(
        STUDY,
        "--every",
        "K",
        "Measure the records every K steps only, and charge the clip norm in between: faster, and larger.",
        options.number,
    ),
]
Direction = Annotated[
    str,
    shared_options.option(
        shared_options.WITNESSES,
        "--direction",
        "NAME",
        "both; or remove (with the record against without it) or add (the other way round) alone.",
    ),
]
Ray = Annotated[
    str | None,
    shared_options.option(
        STUDY, "--ray", "ADDRESS", "Spread the runs over a Ray cluster; local starts one on this machine."
    ),
]
Failure = Annotated[
    float,
    shared_options.option(
        shared_options.WITNESSES,
        "--failure",
        "F",
        "Chance that an end of a record's interval is wrong.",
        options.number,
    ),
]
Truncation = Annotated[
    float | None,
    shared_options.option(
        STUDY,
        "--truncation",
        "E",
        "Also certify this ε, fixed beforehand, by counting the runs that cost more (H21); how many it takes is told.",
        options.number,
    ),
]
TruncationDelta = Annotated[
    float | None,
    shared_options.option(
        STUDY,
        "--truncation-delta",
        "D",
        "The δ aimed at with it, e.g. 0.001; the run's own if left out, which takes very many runs.",
        options.number,
    ),
]
Seed = Annotated[
    float | None,
    shared_options.option(
        STUDY,
        "--seed",
        "S",
        "Draw the noise of all runs from this seed, e.g. 0. None of them is private.",
        options.number,
    ),
]
Out = Annotated[
    Path | None,
    shared_options.option(
        shared_options.OUTPUT, "--out", "FOLDER", "Where the study is kept; if left out, study in RUN."
    ),
]
Json = Annotated[bool, options.output("--json", " ", "Print the table as a JSON list and nothing else.")]


def study(
    run: shared_options.RunFolder,
    *,
    records: Records,
    runs: Runs = 10,
    every: Every = 1,
    direction: Direction = "both",
    failure: Failure = 0.05,
    truncation: Truncation = None,
    truncation_delta: TruncationDelta = None,
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
      bayesdp study run --records 17 --runs 4000 --truncation 0.5 --truncation-delta 0.002
    """
    start_jax()

    from bayesdp.jobs.prepared_sgd import prepare
    from bayesdp.jobs.resume import read_job
    from bayesdp.jobs.sgd_job import SGDJob
    from bayesdp.learn.loop.run_folder import RunFolder
    from bayesdp.learn.study.study import Study

    place = RunFolder(run)
    job = read_job(place)
    if not isinstance(job, SGDJob):
        raise errors.refuse("run", str(run), "to be a run of train", "A study of fit is not made yet.")
    if job.data.person is not None:
        hint = "A study of a run by people is not made yet."
        raise errors.refuse("run", str(run), "to be a run without --person", hint)
    numbers = _numbers(records)
    with terminal.waiting("Loading the records"):
        prepared = prepare(dataclasses.replace(job, watch=numbers))
    plan = Study(
        prepared.plan,
        runs=errors.whole("runs", runs, least=1),
        every=errors.whole("every", every, least=1),
        direction=direction,
        failure=failure,
        truncation=_truncation(truncation, truncation_delta, prepared.plan.delta),
        seed=None if seed is None else errors.whole("seed", seed, least=0),
    )
    if plan.truncation is not None:
        terminal.remark(
            f"ε = {plan.truncation.epsilon:g} at δ = {up(plan.truncation.delta)} takes {plan.runs_needed:,} runs on "
            f"each data set that cost no record more than its budget; these {plan.runs:,} certify δ = "
            f"{up(plan.least_delta or 1.0)} at best (H21)."
        )
    subjects = _split(prepared, numbers)
    folder = out or place.study
    try:
        with _watching() as progress:
            result = plan.run(
                prepared.model.loss(),
                prepared.params,
                prepared.trained_on,
                members=subjects.members,
                outsiders=subjects.outsiders,
                names=subjects.names,
                folder=folder,
                progress=progress,
                ray=ray,
            )
    except KeyboardInterrupt:
        terminal.remark("\nInterrupted. Nothing is lost: the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None
    with terminal.waiting("Accounting"):
        table = result.table
    result.write(folder / "table.csv")
    if json:
        terminal.json_list([_plain(line) for line in table])
        return
    _tell(result, folder)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of --records, from the option itself or from a file. Bad input: none, repeats, or no numbers."""
    path = Path(text)
    if path.is_file():
        lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
        text = ",".join(line for line in lines if line and not line.startswith("#"))
    found = tuple(errors.whole("records", one, least=1) for one in options.numbers("records", text))
    if len(set(found)) < len(found):
        raise errors.refuse("records", text, "to name each record once")
    return found


def _truncation(epsilon: float | None, delta: float | None, usual: float) -> TruncationPlan | None:
    from bayesdp.accountant.repeated_runs.truncation import Truncation as TruncationPlan

    if epsilon is None:
        if delta is not None:
            raise errors.refuse("truncation_delta", delta, f"to be left out without {errors.named('truncation')}")
        return None
    return TruncationPlan(epsilon, usual if delta is None else delta)


class _Subjects(NamedTuple):
    """Rows of the members, the outsiders' records, and what they are called: members first."""

    members: list[int]
    outsiders: Labelled | None
    names: list[str]


def _split(prepared: PreparedSGD, numbers: tuple[int, ...]) -> _Subjects:
    import numpy as np

    from bayesdp.jobs.data_source import Labelled

    places, size = prepared.data.places, len(prepared.data.x)
    total = size + len(prepared.data.x_test)
    where = {int(place): i for i, place in enumerate(np.arange(total) if places is None else places)}
    rows = [where.get(number - 1, total) for number in numbers]
    inside = [i for i, row in enumerate(rows) if row < size]
    outside = [i for i, row in enumerate(rows) if row >= size]
    records = prepared.watched_records
    assert isinstance(records, Labelled)  # runs by people are refused
    others = Labelled(records.x[outside], records.y[outside]) if outside else None
    return _Subjects([rows[i] for i in inside], others, [f"number {numbers[i]}" for i in (*inside, *outside)])


@contextmanager
def _watching() -> Iterator[Callable[[float], None]]:
    """A bar on stderr for the share of the work that is done."""
    with terminal.waiting("Training") as bar:
        yield lambda share: bar.update(bar.task_ids[0], total=1.0, completed=share)


def _tell(result: StudyResult, folder: Path) -> None:
    from bayesdp.learn.study.result import BETWEEN

    facts = result.facts
    steps = "at every step" if facts.every == 1 else f"every {facts.every} steps, {BETWEEN}"
    terminal.line(
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
    terminal.table(("record", "direction", "lower", "estimate", "upper", "worst case"), rows)
    _tell_truncation(result)
    for sentence in _meaning(result):
        terminal.line(sentence)
    terminal.line("")
    terminal.uncut(f"All lines: {folder / 'table.csv'}  (sensitive, like the whole folder)")


def _tell_truncation(result: StudyResult) -> None:
    facts = result.facts
    if facts.truncation is None:
        return
    terminal.line(
        f"\nBy truncation, ε = {facts.truncation.epsilon:g} as fixed beforehand; certified δ, wrong with probability "
        f"at most {facts.failure:g} for each record (sensitive):\n"
    )
    rows = [
        (
            f"{line['record']} ({line['role']})",
            line["direction"],
            up(line["truncation_delta"], 3),
            f"{line['runs_cut']:,} of {facts.runs:,}",
        )
        for line in result.table[:SHOWN]
    ]
    terminal.table(("record", "direction", "δ", "runs that cost more"), rows)


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
        f"\n{terminal.NAMED}",
    ]


def _count(log_runs: float) -> str:
    """A number of runs from its logarithm."""
    return f"{math.ceil(math.exp(log_runs)):,}" if log_runs < math.log(1e6) else f"10^{log_runs / math.log(10):.0f}"


def _plain(line: dict[str, Any]) -> dict[str, Any]:
    return {name: "inf" if isinstance(value, float) and math.isinf(value) else value for name, value in line.items()}
