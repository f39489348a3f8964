"""`bayesdp instance`: what a run cost single records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bayesdp import errors
from bayesdp.cli import shared_options, terminal
from bayesdp.cli.learning import start_jax, whom
from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.report.records.table import RecordTable

SHOWN = 10
"""Records in the terminal."""

Wanted = Annotated[
    str | None,
    shared_options.option(
        shared_options.DATA,
        "--records",
        "N,N,…",
        "Which records: numbers in the file, from 1; a text file with a number in each line; or everyone. If left out, "
        "those that the run watched. Of a run with --person, names of people.",
    ),
]
Out = Annotated[
    Path | None,
    shared_options.option(
        shared_options.OUTPUT,
        "--out",
        "FILE",
        "Where the whole table goes: a new file that ends in .parquet, .csv or .json, or .html for a page.",
    ),
]

Json = Annotated[
    bool,
    shared_options.option(
        shared_options.OUTPUT, "--json", " ", "Print the rows of the table as JSON and nothing else."
    ),
]


def instance(run: shared_options.RunFolder, records: Wanted = None, out: Out = None, json: Json = False) -> None:
    r"""
    Say what a run of train cost single records: the per-instance ε of each.

    Records that the run watched (train --watch) are known step by step. Others are told from the iterates that the run
    kept (train --keep-iterates); without them only what everybody is promised is known. The answer is sensitive.

    For example:
      bayesdp instance run
      bayesdp instance run --records 17,42
      bayesdp instance run --records everyone --out records.html
    """
    if out is not None and (out.suffix.lower() not in (".parquet", ".csv", ".json", ".html", ".htm") or out.exists()):
        raise errors.refuse("out", str(out), "to be a new file that ends in .parquet, .csv, .json or .html")
    start_jax()

    from bayesdp.jobs.record_losses import exposure
    from bayesdp.jobs.sgd_job import SGDJob
    from bayesdp.learn.loop.run_folder import RunFolder

    by_name = records is not None and SGDJob.read(RunFolder(run)).data.person is not None
    wanted = None if records is None else whom(records, "--records", named=by_name)
    with _measuring() as progress:
        table = exposure(run, wanted, progress)
    if out is not None:
        _write(table, out)
    if json:
        terminal.json_list(table.rows())
        return
    with terminal.speaking_of(table.unit):
        _tell(table, out)


def _write(table: RecordTable, out: Path) -> None:
    from bayesdp.report.records.page import write_page

    if out.suffix.lower() in (".html", ".htm"):
        write_page(table, out)
    else:
        table.write(out)


def _tell(table: RecordTable, out: Path | None) -> None:
    from bayesdp import everybody
    from bayesdp.convert import attacker_success

    count = len(table.ids)
    terminal.line(f"{table.title}: {count:,} {'record' if count == 1 else 'records'}, at δ = {up(table.delta, 3)}.")
    if table.seeded:
        terminal.line(terminal.SEEDED)
    if table.dp_epsilon is not None:
        below = sum(loss < table.dp_epsilon for loss in table.epsilon) / count
        terminal.line(
            f"DP ε, for everybody: {up(table.dp_epsilon, 5)}. Below it: {down(100 * below, 3)} % of these records."
        )
    if table.tied > 1:
        order = "; they stand in the order of what they cost by themselves" if table.exposure else ""
        terminal.line(f"{table.tied:,} records tie at the DP value{order}.")
    terminal.line("")
    rows = [
        (
            str(row["id"]),
            everybody.shown(float(row["epsilon"]), table.dp_epsilon),
            terminal.percent(attacker_success(everybody.least(float(row["epsilon"]), table.dp_epsilon), table.delta)),
            str(row["direction"]),
            *([terminal.plain(str(row["class"]), 16)] if table.label else []),
            *(["right" if row["correct"] else "wrong"] if table.correct else []),
        )
        for row in table.rows()[:SHOWN]
    ]
    heads = ["record", "per-instance ε", "attacker", "direction"]
    heads += ["class"] if table.label else []
    heads += ["model is"] if table.correct else []
    terminal.table(heads, rows)
    if count > SHOWN:
        terminal.line(f"\nThe {SHOWN} most exposed of {count:,}.")
    terminal.line(f"\n{terminal.NAMED}")
    terminal.line("\nSensitive: computed from private data, not for publication.")
    for sentence in table.how:
        terminal.item(sentence)
    if out is not None:
        terminal.uncut(f"\nThe whole table: {out}")
    elif count > SHOWN:
        terminal.line("\nThe whole table: --out records.html, .parquet, .csv or .json")


@contextlib.contextmanager
def _measuring() -> Iterator[Callable[[float], None]]:
    with terminal.waiting("Loading and measuring the records") as bar:
        [task] = bar.task_ids

        def done(share: float) -> None:
            bar.update(task, total=1.0, completed=share)

        yield done
