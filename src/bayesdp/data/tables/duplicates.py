"""Rows that are the same in every cell, by a hash of each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayesdp.data.table import Column, Table

_MIX = np.uint64(0x9E3779B97F4A7C15)


def different_rows(table: Table) -> int:
    """How many rows there are that differ: two of them have the same hash of 64 bits with no chance worth naming."""
    rows = np.zeros(len(table), np.uint64)
    for cells in table.columns.values():
        # Multiplied between columns, so that the order of cells counts.
        rows = (rows ^ (rows >> np.uint64(29))) * _MIX + _hashed(cells)
    return len(np.unique(rows))


def different_cells(cells: Column) -> int:
    """How many different values a column has, those that are not there aside."""
    if isinstance(cells, np.ndarray):
        return len(np.unique(cells[~np.isnan(cells)]))
    return len(set(cells) - {""})


def _hashed(cells: Column) -> npt.NDArray[np.uint64]:
    if isinstance(cells, np.ndarray):
        bits = np.ascontiguousarray(cells, np.float64).view(np.uint64)
        return np.asarray((bits ^ (bits >> np.uint64(32))) * _MIX)
    return np.fromiter(map(hash, cells), np.int64, len(cells)).view(np.uint64)
