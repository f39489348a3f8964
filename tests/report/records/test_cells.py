"""Cells of a CSV that a spreadsheet would run."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.report.records.cells import escaped, unescaped
from bayesdp.report.records.table import RecordTable


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "'"])
def test_formulas_are_texts(cell):
    assert escaped(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-1.5", "+3", "-inf", "1e-5", "nurse", "", "a=b"])
def test_numbers_and_words_stay(cell):
    assert escaped(cell) == cell


@given(st.text())
def test_what_is_written_is_what_is_read(cell):
    assert unescaped(escaped(cell)) == cell


def test_a_table_of_records_runs_nothing_and_comes_back(tmp_path):
    table = RecordTable(
        title="t", ids=("=cmd()", "'quoted", "Ann"), epsilon=(0.1, 0.2, 0.3), delta=1e-5, direction="remove"
    )
    path = table.write(tmp_path / "records.csv")
    with path.open() as file:
        cells = [row[0] for row in csv.reader(file)]
    assert not any(cell.startswith("=") for cell in cells)
    assert RecordTable.read(path) == table
