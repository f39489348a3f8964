"""Rows and cells that are there more than once."""

import numpy as np

from bayesdp.data.table import Table
from bayesdp.data.tables.duplicates import different_cells, different_rows


def rows(**columns):
    return different_rows(Table("the table", columns, str))


def test_rows_differ_in_any_cell():
    assert rows(a=["x", "x", "y"], b=np.array([1.0, 1.0, 1.0])) == 2
    assert rows(a=["x", "x", "x"], b=np.array([1.0, 2.0, 1.0])) == 2
    # The same cells in another order are another row, and so are large tables of few values.
    assert rows(a=["x", "y"], b=["y", "x"]) == 2
    assert rows(a=np.array([1.0, 2.0]), b=np.array([2.0, 1.0])) == 2
    many = np.arange(10_000.0)
    assert rows(a=many % 100, b=many // 100) == 10_000
    assert rows(a=many % 100, b=many % 50) == 100
    assert rows(a=np.array([np.nan, np.nan])) == 1


def test_cells_that_are_not_there_do_not_count():
    assert different_cells(["a", "", "b", "a"]) == 2
    assert different_cells(np.array([1.0, np.nan, 1.0])) == 1
