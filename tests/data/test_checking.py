"""A table as a whole: its target, its rows, and what is said of them."""

import numpy as np
import pytest

import bayesdp.data as data
from bayesdp.errors import InputError

ROWS = 60


def write(path, y, **columns):
    columns = {"age": [20 + row % 31 for row in range(ROWS)], **columns, "y": y}
    lines = ["\t".join(map(str, line)) for line in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(["\t".join(columns), *lines]) + "\n", encoding="utf-8")
    return path


def found(path, **options):
    return {one.column: one for one in data.check(path, target="y", **options).findings}


def test_nothing_to_say(tmp_path):
    path = write(tmp_path / "a.tsv", ["yes", "no"] * 30)
    assert data.check(path, target="y").findings == ()
    assert data.load(path, target="y").findings == ()
    assert data.check(path).target is None


def test_rows_without_a_target_are_left_out_and_said(tmp_path):
    y = [("" if row % 6 == 0 else ("no", "yes")[row % 2]) for row in range(ROWS)]
    path = write(tmp_path / "a.tsv", y)
    assert str(found(path)["y"]) == "'y': no value to learn in 10 rows. Such rows are left out."
    loaded = data.load(path, target="y", test_share=0, scale="none")
    assert len(loaded.x) == 50
    assert loaded.classes == ("no", "yes")
    # Where a record stands in the file is still known, and the others' coins are what they were.
    assert loaded.places.tolist() == [row for row in range(ROWS) if row % 6]
    assert np.array_equal(loaded.x[:, 0], [20 + row % 31 for row in range(ROWS) if row % 6])
    whole = data.load(write(tmp_path / "b.tsv", ["no", "yes"] * 30), target="y", seed=3)
    half = data.load(path, target="y", seed=3)
    assert set(half.places[: len(half.x)]) <= set(whole.places[: len(whole.x)])
    # How many there were is not among the sentences that are published.
    assert not any("10" in sentence for sentence in half.public_beside_size)


@pytest.mark.parametrize(
    ("y", "options", "task", "classes"),
    [
        (["1,5", "2,5", "3,25"] * 20, {}, "regression", ()),
        ([f"{1000 + row:,}" for row in range(ROWS)], {}, "regression", ()),
        (["Yes", "NO"] * 29 + ["NA", "Yes"], {}, "classification", ("NO", "Yes")),
        (["1", "2", "other"] * 20, {"task": "classification"}, "classification", ("1", "2", "other")),
        ([*map(str, range(100, 159)), "lost"], {"read": ["y=number"]}, "regression", ()),
    ],
)
def test_targets_are_read_like_other_columns(tmp_path, y, options, task, classes):
    loaded = data.load(write(tmp_path / "a.tsv", y), target="y", **options)
    assert (loaded.task, loaded.classes) == (task, classes)
    if task == "regression":
        assert np.isfinite(loaded.y).all()


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (["1", "2", "other"] * 20, ["--task classification"]),
        ([*map(str, range(100, 159)), "lost"], ["--read y=number"]),
        (["one"] * ROWS, []),
        ([""] * ROWS, []),
        ([f"person {row}" for row in range(ROWS)] * 2, []),
    ],
)
def test_targets_that_have_to_be_decided(tmp_path, y, options):
    many = [20 + row % 31 for row in range(len(y))]
    path = tmp_path / "a.tsv"
    path.write_text("age\ty\n" + "".join(f"{age}\t{one}\n" for age, one in zip(many, y, strict=True)))
    if len(y) > ROWS:  # as many classes as there are people, two rows each
        path.write_text(path.read_text() + "".join(f"30\tperson {row}\n" for row in range(60, 120)))
    problem = found(path)["y"]
    assert problem.is_problem
    assert [str(option) for option in problem.options] == options
    with pytest.raises(InputError):
        data.load(path, target="y")


def test_all_problems_are_told_at_once(tmp_path):
    path = write(tmp_path / "a.tsv", ["one"] * ROWS, gap=["", *range(1, ROWS)], empty=[""] * ROWS)
    with pytest.raises(InputError) as refused:
        data.load(path, target="y")
    words = str(refused.value)
    assert "got 3 problems: (1) 'gap': no value in 1 row, the first in line 2" in words
    assert "(2) 'empty': no value in any row: give drop=('empty',); (3) 'y': cannot be learned" in words


def test_too_few_rows_are_left(tmp_path):
    path = write(tmp_path / "a.tsv", ["yes", "no"] * 30, gap=["", *[""] * (ROWS - 10), *range(9)])
    with pytest.raises(InputError, match="at least 10 records to train and test with, got 9"):
        data.load(path, target="y", missing="drop")


def test_options_that_contradict_each_other(tmp_path):
    path = write(tmp_path / "a.tsv", ["yes", "no"] * 30)
    for options, message in (
        ({"categories": ["age"], "read": ["age=number"]}, "read to be left out for a column of categories"),
        ({"keep": ["y"]}, "keep to name other columns than the target"),
        ({"missing": ["y=drop"]}, "missing to name other columns than the target"),
        ({"missing": 3}, "missing to be a list of rules"),
    ):
        with pytest.raises(InputError, match=message):
            data.check(path, target="y", **options)
    with pytest.raises(InputError, match=r"to be a table that ends in \.csv, \.tsv"):
        data.check(tmp_path / "a.npz")


def test_whoever_is_a_person_is_not_learned_from_and_has_fewer_rows_where_some_lack_a_value(tmp_path):
    who = [f"person {row // 3}" for row in range(ROWS)]
    gaps = [5 if row % 3 or row < 3 else "" for row in range(ROWS)]
    path = write(tmp_path / "a.tsv", ["yes", "no"] * 30, who=who, gap=gaps)
    assert "who" not in found(path, person="who", missing=["drop"])
    loaded = data.load(path, target="y", person="who", missing="drop", test_share=0)
    assert loaded.feature_names == ("age", "gap")
    owners = np.bincount(loaded.people.owner)
    assert owners[0] == 3
    assert (owners[1:] == 2).all()
