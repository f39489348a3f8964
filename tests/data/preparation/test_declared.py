"""What is declared beforehand: read from the command line and from files, and refused where it makes no sense."""

import json

import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.data.preparation.declared import Declared, middle_and_scale, typed
from bayesdp.data.table import Table


def test_words_of_the_command_line():
    known = typed(["age=0,110", "a=b=-1e3,2"], ["smoker=no, yes"])
    assert known.ranges == {"age": (0.0, 110.0), "a=b": (-1000.0, 2.0)}
    assert known.vocabularies == {"smoker": ("no", "yes")}


def test_files_in_both_forms(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"age": [0, 110], "smoker": ["no", "yes"]}))
    (tmp_path / "a.csv").write_text("column,low,high,levels\nage,0,110,\nsmoker,,,no|yes\n")
    (tmp_path / "b.csv").write_text("column,low,high\nage,0,110\n")
    assert (
        typed([], [], tmp_path / "a.json")
        == typed([], [], tmp_path / "a.csv")
        == typed(["age=0,110"], ["smoker=no,yes"])
    )
    assert typed([], ["smoker=no,yes"], tmp_path / "b.csv") == typed(["age=0,110"], ["smoker=no,yes"])


@pytest.mark.parametrize(
    ("bounds", "levels", "said"),
    [
        (["age=5,5"], [], "low below high for 'age'"),
        (["age=5,1"], [], "low below high for 'age'"),
        (["age=0,inf"], [], "low below high for 'age'"),
        (["age=0,1e19"], [], "low below high for 'age'"),
        (["age=nan,1"], [], "low below high for 'age'"),
        (["age"], [], "to read COLUMN=LOW,HIGH"),
        (["age=0"], [], "to read COLUMN=LOW,HIGH"),
        (["=0,1"], [], "to read COLUMN=LOW,HIGH"),
        ([], ["smoker"], "to read COLUMN=LEVEL,LEVEL"),
        ([], ["smoker="], "different levels for 'smoker'"),
        ([], ["smoker=a,a"], "different levels for 'smoker'"),
        (["age=0,1", "age=0,2"], [], "each column once"),
        (["age=0,1"], ["age=a"], "each column once"),
    ],
)
def test_what_makes_no_sense(bounds, levels, said):
    with pytest.raises(InputError, match=said):
        typed(bounds, levels)


@pytest.mark.parametrize(
    "text", ["[]", "3", "{", '{"age": 3}', '{"age": [1, "a"]}', '{"age": [1, 2, 3]}', '{"age": []}']
)
def test_files_of_another_form(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match="a JSON object of"):
        typed([], [], tmp_path / "a.json")
    (tmp_path / "a.csv").write_text("name,low,high\nage,0,1\n")
    with pytest.raises(InputError, match="a JSON object of"):
        typed([], [], tmp_path / "a.csv")
    with pytest.raises(InputError, match="readable file"):
        typed([], [], tmp_path / "none.json")


def test_columns_must_be_there_and_be_numbers_for_a_range():
    table = Table("t", {"age": np.arange(3.0), "job": ["a", "b", "c"]}, str)
    Declared((("age", 0, 1),), (("job", ("a",)),)).check(table, (), ())
    for known, left_out, categories, said in (
        (Declared((("agee", 0, 1),)), (), (), "Did you mean 'age'"),
        (Declared((("job", 0, 1),)), (), ("job",), "columns of numbers"),
        (Declared((("age", 0, 1),)), (), ("age",), "columns of numbers"),
        (Declared((("age", 0, 1),)), ("age",), (), "columns that are used"),
        (Declared((), (("jobs", ("a",)),)), (), (), "to name a column"),
    ):
        with pytest.raises(InputError, match=said):
            known.check(table, left_out, categories)


def test_a_uniform_value_gets_standard_deviation_one():
    middle, scale = middle_and_scale(0, 110)
    assert middle == 55
    assert (np.linspace(0, 110, 100_001) / scale).std() == pytest.approx(1, rel=1e-4)
