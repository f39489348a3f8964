"""Columns as they are read in training and again for further records."""

import json

import numpy as np
import pytest

from bayesdp.data.table import Table
from bayesdp.data.tables.reading import MISSING, Reading, cleaned
from bayesdp.errors import InputError


def table(**columns):
    return Table("the table", columns, lambda row: f"line {row + 2}")


def test_gaps_are_filled_as_declared():
    cells = table(age=["20", "", "40"], job=["cook", "", "nurse"])
    read, kept = cleaned(cells, [Reading("age", "number", missing="value"), Reading("job", "text", missing="value")])
    assert read.columns["age"].tolist() == [20, 0, 40]
    assert read.columns["job"] == ["cook", MISSING, "nurse"]
    assert read.absent["age"].tolist() == read.absent["job"].tolist() == [False, True, False]
    assert kept.all()
    read, kept = cleaned(cells, [Reading("age", "number", missing="indicator", fill="30")])
    assert read.columns["age"].tolist() == [20, 30, 40]
    assert kept.all()
    assert list(read.columns) == ["age"]
    read, kept = cleaned(cells, [Reading("job", "text", missing="drop"), Reading("age", "number", missing="value")])
    assert kept.tolist() == [True, False, True]


def test_what_was_seen_is_asked_of_further_records_and_what_was_declared_is_not():
    cells = table(lab=["4.5", "lost"])
    with pytest.raises(InputError, match=r"numbers in column 'lab', got a text in line 3. Correct the cell"):
        Reading("lab", "number", missing="value").read(cells)
    assert Reading("lab", "number", declared=True, missing="value").read(cells).absent.tolist() == [False, True]
    with pytest.raises(InputError, match="a value in every cell, got none in line 3, column 'lab'"):
        Reading("lab", "number", declared=True).read(cells)
    with pytest.raises(InputError, match="a value in every cell, got none in line 3, column 'job'"):
        Reading("job", "text").read(table(job=["cook", ""]))
    with pytest.raises(InputError, match=r"finite numbers up to 1e\+18 in column 'pay', got inf in line 2"):
        Reading("pay", "number").read(table(pay=["inf", "3"]))
    assert Reading("pay", "number", declared=True, missing="value").read(table(pay=["inf", "3"])).absent[0]


def test_columns_of_numbers_can_be_texts():
    assert Reading("zip", "text").read(table(zip=np.array([12.0, 7.5]))).column == ["12", "7.5"]
    assert Reading("zip", "text").read(table(zip=["007"])).column == ["007"]


def test_a_reading_is_a_plain_value():
    reading = Reading("age", "day-first", declared=True, missing="indicator", fill="01.01.2020")
    assert Reading.from_dict(json.loads(json.dumps(reading.to_dict()))) == reading
    assert Reading("age", "number").centred
    assert not reading.centred
    assert not Reading("job", "text").centred
    for fill in ("old", "inf", "1e30"):
        with pytest.raises(InputError, match="to put in what column 'age' can hold: numbers"):
            Reading("age", "number", missing="value", fill=fill)
    with pytest.raises(InputError, match="kind to be one of 'number'"):
        Reading("age", "length")


def test_columns_that_are_not_there():
    with pytest.raises(InputError, match="columns that the model was trained on: 'age', got none called 'age'"):
        cleaned(table(job=["cook"]), [Reading("age", "number")])
