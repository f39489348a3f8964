"""`bayesdp check`: everything that is wrong with a table at once, and the options that settle it."""

from __future__ import annotations

from typing import Annotated, Any

from bayesdp.cli import options, terminal
from bayesdp.cli.learning import LISTS
from bayesdp.cli.option_groups import spread
from bayesdp.cli.shared_options import RecordOptions

Json = Annotated[bool, options.output("--json", " ", "Print a JSON list of what was found and nothing else.")]


@spread
def check(*, records: RecordOptions, json: Json = False) -> None:
    r"""
    Tell everything that is wrong with a table, before it is learned from.

    DATA is a CSV, TSV or Parquet file. It is read once, as train and fit would read it with the same options, and
    nothing is written: each thing that was found is listed with what is done about it and the option that changes that.
    What has to be decided comes with an option that decides it: the last line has all of these, to be pasted behind
    train or fit.

    The list is computed from private records: it is for their owner's eyes, like the table itself.

    For example:
      bayesdp check patients.csv --target outcome
      bayesdp check patients.csv --target outcome --missing indicator --drop notes
    """
    from bayesdp.data import check as look
    from bayesdp.data.preparation.declared import typed
    from bayesdp.data.tables.findings import SENSITIVE, suggested

    said: dict[str, Any] = {name: tuple(getattr(records, name) or ()) for name in LISTS}
    said |= {"person": records.person, "unlabelled": records.target is None}
    known = typed(records.bounds or (), records.levels or (), records.bounds_file)
    said |= {"bounds": known.bounds, "levels": known.levels}
    found = look(records.data, target=records.target, task=records.task, **said)
    if json:
        terminal.json_list([one.to_dict() for one in found.findings])
        return
    rows, columns = len(found.source), len(found.source.names)
    terminal.line(f"{records.data}: {rows:,} rows, {columns:,} columns. {SENSITIVE}\n")
    for one in found.findings:
        terminal.item(str(one))
    pasted = " ".join(map(str, suggested(found.findings)))
    problems = sum(one.is_problem for one in found.findings)
    if not found.findings:
        terminal.line("Nothing was found that needs a word.")
    elif not problems:
        terminal.line("\nNothing has to be decided: the table can be learned from as it is.")
    elif pasted:
        terminal.line(f"\nTo be decided: {problems}. These options decide it:\n")
        terminal.uncut(pasted)
    else:
        terminal.line(f"\nTo be decided: {problems}, in the table itself.")
