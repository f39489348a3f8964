"""A column of the user's table that is not learned from: people's own budgets, or the groups they are in."""

from __future__ import annotations

from pathlib import Path

from bayesdp import errors
from bayesdp.data.table import Table
from bayesdp.data.table_file import TABLE_ENDINGS, read_table
from bayesdp.jobs.data_source import DataSource


def table_with(argument: str, column: str, source: DataSource) -> Table:
    """The table of `source`, which has this column.

    Bad input: data that are no table of one's own, or a column that is not there; `argument` asked for it.
    """
    path = Path(source.name)
    if source.named or path.suffix.lower() not in TABLE_ENDINGS:
        raise errors.refuse(argument, column, "to be left out unless the data are a table")
    table = read_table(path)
    table.need(argument, column)
    return table
