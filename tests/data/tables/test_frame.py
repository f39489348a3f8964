"""Data frames: pandas where it is installed, and anything of the same form."""

import datetime

import numpy as np
import pytest

import bayesdp.data as data
from bayesdp.data.tables.frame import Frame, frame_table
from bayesdp.errors import InputError


class Plain:
    """The least that a frame has."""

    def __init__(self, **columns):
        self._columns = columns

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]

    def __len__(self):
        return len(next(iter(self._columns.values())))


def test_columns_of_every_kind():
    found = frame_table(
        Plain(
            age=np.array([1, 2]),
            pay=np.array([1.5, np.nan]),
            job=np.array(["cook", None], object),
            some=np.array([1, None], object),
            ill=np.array([True, False]),
            born=np.array(["2024-01-01", "NaT"], "datetime64[ns]"),
            seen=np.array(["2024-01-01T06:00", "2024-01-02"], "datetime64[m]"),
            day=np.array([datetime.date(2024, 1, 1), None], object),
        )
    )
    assert found.columns["age"].tolist() == [1, 2]
    assert np.isnan(found.columns["pay"][1])
    assert found.columns["job"] == ["cook", ""]
    assert found.columns["some"][0] == 1
    assert np.isnan(found.columns["some"][1])
    assert found.columns["ill"] == ["True", "False"]
    assert found.columns["born"] == found.columns["day"] == ["2024-01-01", ""]
    assert found.columns["seen"] == ["2024-01-01T06:00:00", "2024-01-02"]
    assert found.place(0) == "row 1"


def test_a_frame_is_loaded_like_its_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "age": pandas.array([20 + row % 50 for row in range(59)] + [None], "Int64"),
            "job": pandas.Categorical(["cook", "nurse", "guard"] * 20),
            "day": pandas.date_range("2024-01-01", periods=60),
            "ill": [True, False, None] * 20,
            "rich": ["yes", "no"] * 30,
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    of_frame = data.load(frame, target="rich", missing="indicator", seed=1)
    of_file = data.load(tmp_path / "people.csv", target="rich", missing="indicator", seed=1)
    assert np.array_equal(of_frame.x, of_file.x)
    assert of_frame.recipe == of_file.recipe
    assert (of_frame.name, of_frame.task) == ("DataFrame", "classification")
    assert isinstance(frame, Frame)
    with pytest.raises(InputError, match="Expected data='DataFrame' to have nothing left to decide"):
        data.load(frame, target="rich")
    assert [one.column for one in data.check(frame, target="rich").findings if one.is_problem] == ["age", "ill"]


def test_frames_that_are_none():
    two = Plain()
    two._columns = {1: np.arange(3), "1": np.arange(3)}
    with pytest.raises(InputError, match="2 columns called '1'"):
        frame_table(two)
    with pytest.raises(InputError, match="got complex128 in column 'a'"):
        frame_table(Plain(a=np.array([1j])))
    with pytest.raises(InputError, match="at least one row, got none"):
        frame_table(Plain(a=np.array([])))
    assert not isinstance("people.csv", Frame)
    assert not isinstance(np.zeros((2, 2)), Frame)
