"""What cells mean, and what a column seems to hold."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdp.data.tables.cells import KINDS, Guess, guess, is_absent, meaning, parse, ways_of_writing


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        ("number", "1234.5", 1234.5),
        ("number", "1,234.5", 1234.5),
        ("number", "1,234,567", 1234567),
        ("number", "1 234.5", 1234.5),
        ("number", "1'234", 1234),
        ("number", "-2,500", -2500),
        ("number", "12 %", 12),
        ("number", "12.5%", 12.5),
        ("number", "1e3", 1000),
        ("decimal-comma", "1234,5", 1234.5),
        ("decimal-comma", "1.234,5", 1234.5),
        ("decimal-comma", "1.234.567", 1234567),
        ("decimal-comma", "7", 7),
        ("decimal-comma", "-0,25", -0.25),
        ("decimal-comma", "12,5 %", 12.5),
        ("date", "2000-01-01", 0),
        ("date", "2000-02-01", 31),
        ("date", "1999-12-31 12:00", -0.5),
        ("date", "2000-01-01T06:00:00Z", 0.25),
        ("date", "2000/1/3", 2),
        ("day-first", "03.01.2000", 2),
        ("day-first", "1/2/2000", 31),
        ("day-first", "2.1.2000 12:00", 1.5),
        ("month-first", "1/3/2000", 2),
        ("time", "14:30", 14.5),
        ("time", "0:00:36", 0.01),
        ("boolean", "Yes", 1),
        ("boolean", "FALSE", 0),
        ("boolean", "nein", 0),
        ("boolean", "1", 1),
    ],
)
def test_what_a_cell_stands_for(kind, cell, value):
    assert meaning(cell, kind) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("number", "1,5"),
        ("number", "12,34,567"),
        ("number", "0,123"),  # nobody separates the thousands of nought
        ("number", "five"),
        ("number", "5 kg"),
        ("decimal-comma", "3.5"),
        ("decimal-comma", "1,2,3"),
        ("decimal-comma", ""),
        ("date", "2000-02-30"),
        ("date", "01.02.2000"),
        ("date", "20000101"),
        ("day-first", "13/13/2000"),
        ("month-first", "13/1/2000"),
        ("time", "25:00"),
        ("time", "12:60"),
        ("boolean", "maybe"),
    ],
)
def test_what_it_does_not_stand_for(kind, cell):
    assert math.isnan(meaning(cell, kind))


@given(st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2500, 1, 1)))
def test_days_are_counted_alike_in_every_way_of_writing(moment):
    moment = moment.replace(microsecond=0)
    days = (moment - datetime.datetime(2000, 1, 1)) / datetime.timedelta(days=1)
    for kind, form in (("date", "%Y-%m-%d"), ("day-first", "%d.%m.%Y"), ("month-first", "%m/%d/%Y")):
        year = f"{moment:{form}}".replace(str(moment.year), f"{moment.year:04}")
        assert meaning(f"{year} {moment:%H:%M:%S}", kind) == pytest.approx(days, abs=1e-9)


@given(st.floats(-1e12, 1e12).map(lambda one: round(one, 3)))
def test_separators_change_no_number(value):
    grouped = f"{value:,.3f}"
    assert meaning(grouped, "number") == value
    turned = grouped.replace(",", " ").replace(".", ",").replace(" ", ".")
    assert meaning(turned, "decimal-comma") == value


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        (["1", "2.5", "NA"], Guess("number")),
        (["1", "2.5", "1e400"], Guess("number")),
        (["1,234", "2,500", "3"], Guess("number", plain=False)),
        (["12 %", "13 %"], Guess("number", plain=False)),
        (["1,5", "2,25", "3"], Guess("decimal-comma", plain=False)),
        (["0,125", "1,250"], Guess("decimal-comma", plain=False)),
        (["2024-01-01", "", "2024-02-01 10:00"], Guess("date", plain=False)),
        (["01.02.2024", "28.02.2024"], Guess("day-first", plain=False)),
        (["01/02/2024", "02/28/2024"], Guess("month-first", plain=False)),
        (["9:15", "10:00"], Guess("time", plain=False)),
        (["yes", "No", "n/a"], Guess("boolean", plain=False)),
        (["yes", "no", "sometimes"], Guess("text")),
        (["red", "blue"], Guess("text")),
        (["", "NA"], Guess("text")),
        ([*map(str, range(9)), "old"], Guess("number", plain=False, misfits=("old",))),
        (["1", "2", "north", "south"], Guess("text", plain=False, misfits=("north", "south"))),
        ([*["2024-01-01"] * 9, "soon"], Guess("date", plain=False, misfits=("soon",))),
    ],
)
def test_what_a_column_seems_to_hold(cells, found):
    assert guess(cells) == found


def test_an_array_holds_numbers():
    cells = np.array([1.0, np.nan, 2e18])
    assert guess(cells) == Guess("number")
    values, misfits = parse(cells, "number")
    assert np.array_equal(values, cells, equal_nan=True)
    assert misfits.tolist() == [False, False, True]
    assert parse(cells, "date").misfits.tolist() == [True, False, True]
    assert parse(np.array([0.0, 1.0, 2.0, np.nan]), "boolean").misfits.tolist() == [False, False, True, False]


def test_a_column_is_parsed_with_its_gaps_and_misfits():
    values, misfits = parse(["1,5", "NA", "old", "1e30"], "decimal-comma")
    assert values[0] == 1.5
    assert np.isnan(values[1:3]).all()
    assert misfits.tolist() == [False, False, True, True]
    assert not parse(["1", "nan", "3"], "number").misfits.any()


def test_ways_of_writing_are_named():
    assert ways_of_writing(["1,000", "2 %"]) == "numbers with percent signs and separators between thousands"
    assert ways_of_writing(["1,000"]) == "numbers with separators between thousands"
    assert ways_of_writing(["1", "2"]) == "numbers"


def test_every_kind_is_told_apart_from_nothing():
    assert all(is_absent(word) for word in ("", "NA", "NaN", "?", "null", "N/A"))
    assert not any(is_absent(word) for word in ("0", "no", "nobody"))
    assert KINDS[-1] == "text"
