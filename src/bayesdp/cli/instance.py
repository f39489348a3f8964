"""`bayesdp instance`: what a run cost single records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bayesdp import errors
from bayesdp.cli import show
from bayesdp.cli import train_options as words
from bayesdp.cli.learning import records as numbers_of
from bayesdp.cli.learning import start_jax
from bayesdp.rounding import down, up

if TYPE_CHECKING:
    from bayesdp.report.record_table import RecordTable

SHOWN = 10
"""Records in the terminal."""

Wanted = Annotated[
    str | None,
    words.option(
        words.DATA,
        "--records",
        "N,N,…",
        "Which records: numbers in the file, from 1; a text file with a number in each line; or everyone. If left out, "
        "those that the run watched.",
    ),
]
Out = Annotated[
    Path | None,
    words.option(
        words.OUTPUT,
        "--out",
        "FILE",
        "Where the whole table goes: a new file that ends in .parquet, .csv or .json, or .html for a page.",
    ),
]

Json = Annotated[
    bool, words.option(words.OUTPUT, "--json", " ", "Print the rows of the table as JSON and nothing else.")
]


def instance(run: words.RunFolder, records: Wanted = None, out: Out = None, json: Json = False) -> None:
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

    from bayesdp.learn.exposure import exposure

    wanted = None if records is None else numbers_of(records, "--records")
    with _measuring() as progress:
        table = exposure(run, wanted, progress)
    if out is not None:
        _write(table, out)
    if json:
        show.json_list(table.rows())
        return
    _tell(table, out)


def _write(table: RecordTable, out: Path) -> None:
    from bayesdp.report.records_page import write_page

    if out.suffix.lower() in (".html", ".htm"):
        write_page(table, out)
    else:
        table.write(out)


def _tell(table: RecordTable, out: Path | None) -> None:
    from bayesdp.convert import attacker_success

    count = len(table.ids)
    show.line(f"{table.title}: {count:,} {'record' if count == 1 else 'records'}, at δ = {up(table.delta, 3)}.")
    if table.seeded:
        show.line(show.SEEDED)
    if table.dp_epsilon is not None:
        below = sum(loss < table.dp_epsilon for loss in table.epsilon) / count
        show.line(
            f"DP ε, for everybody: {up(table.dp_epsilon, 5)}. Below it: {down(100 * below, 3)} % of these records."
        )
    show.line("")
    rows = [
        (
            str(row["id"]),
            up(float(row["epsilon"]), 5),
            show.percent(attacker_success(float(row["epsilon"]), table.delta)),
            str(row["direction"]),
            *([show.plain(str(row["class"]), 16)] if table.label else []),
            *(["right" if row["correct"] else "wrong"] if table.correct else []),
        )
        for row in table.rows()[:SHOWN]
    ]
    heads = ["record", "per-instance ε", "attacker", "direction"]
    heads += ["class"] if table.label else []
    heads += ["model is"] if table.correct else []
    show.table(heads, rows)
    if count > SHOWN:
        alike = sum(loss == table.epsilon[0] for loss in table.epsilon)
        share = f" {alike:,} share the largest value." if alike > SHOWN else ""
        show.line(f"\nThe {SHOWN} most exposed of {count:,}.{share}")
    show.line("\nSensitive: computed from private data, not for publication.")
    for sentence in table.how:
        show.item(sentence)
    if out is not None:
        show.uncut(f"\nThe whole table: {out}")
    elif count > SHOWN:
        show.line("\nThe whole table: --out records.html, .parquet, .csv or .json")


@contextlib.contextmanager
def _measuring() -> Iterator[Callable[[float], None]]:
    with show.waiting("Loading and measuring the records") as bar:
        [task] = bar.task_ids

        def done(share: float) -> None:
            bar.update(task, total=1.0, completed=share)

        yield done
