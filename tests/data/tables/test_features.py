"""The columns to learn from: identifiers, kinds and gaps, each found and told."""

import numpy as np
import pytest

import bayesdp.data as data

ROWS = 60


def write(path, **columns):
    columns = {
        "age": [20 + row % 31 for row in range(ROWS)],
        **columns,
        "y": [("no", "yes")[r % 2] for r in range(ROWS)],
    }
    lines = [";".join(map(str, line)) for line in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([";".join(columns), *lines]) + "\n", encoding="utf-8")
    return path


def told(path, column, **options):
    """What is found in a column, and whether it is a problem."""
    found = data.check(path, target="y", **options)
    return [
        (one.found, one.is_problem, [str(option) for option in one.options])
        for one in found.findings
        if one.column == column
    ]


@pytest.mark.parametrize(
    ("name", "cells", "is_identifier"),
    [
        ("name", [f"person {row}" for row in range(ROWS)], True),
        ("code", [f"{row:04}-x" for row in range(ROWS)], True),
        ("patient_id", [1000 + 7 * row for row in range(ROWS)], True),
        ("Nr", [1000 + 7 * row for row in range(ROWS)], True),
        ("customerID", [1000 + 7 * row for row in range(ROWS)], True),
        ("count", list(range(1, ROWS + 1)), True),
        ("count", list(reversed(range(ROWS))), True),
        ("name", [f"person {row // 2}" for row in range(ROWS)], False),
        ("patient_id", [row // 2 for row in range(ROWS)], False),
        ("wage", [1000 + 7 * row for row in range(ROWS)], False),
        ("length", [row / 7 for row in range(ROWS)], False),
        ("born", [f"2024-{1 + row // 28:02}-{1 + row % 28:02}" for row in range(ROWS)], False),
        ("idea", [1000 + 7 * row for row in range(ROWS)], False),
    ],
)
def test_likely_identifiers_are_left_out_unless_asked_for(tmp_path, name, cells, is_identifier):
    path = write(tmp_path / "a.csv", **{name: cells})
    words = "another value in every row: a likely identifier"
    assert (told(path, name)[:1] == [(words, False, [f"--keep {name}"])]) == is_identifier
    loaded = data.load(path, target="y")
    assert any(feature.startswith(name) for feature in loaded.feature_names) != is_identifier
    assert (
        any("likely identifiers" in sentence and repr(name) in sentence for sentence in loaded.public) == is_identifier
    )
    kept = data.load(path, target="y", keep=[name])
    assert any(feature.startswith(name) for feature in kept.feature_names)
    assert not any("likely identifiers" in sentence for sentence in kept.public)


def test_a_row_that_is_there_twice_hides_no_identifier(tmp_path):
    names = [f"person {row}" for row in range(ROWS)]
    path = write(tmp_path / "a.csv", name=names)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[3]]) + "\n")
    assert told(path, "name")[0][0].endswith("a likely identifier")
    assert told(path, "")[0][0] == "1 row is the same as another in every cell"


def test_what_most_rows_share_is_no_identifier(tmp_path):
    """Ages from 1 to 20 and one more column that follows: 20 different rows of 400, no two of them of one age."""
    path = tmp_path / "a.csv"
    rows = [f"{1 + row % 20};{('no', 'yes')[row % 2]}" for row in range(400)]
    path.write_text("\n".join(["age;y", *rows]) + "\n")
    assert not any("identifier" in found for found, *_ in told(path, "age"))


def test_whole_numbers_that_differ_are_named_and_learned_from(tmp_path):
    path = write(tmp_path / "a.csv", wage=[1000 + 7 * row for row in range(ROWS)])
    assert told(path, "wage") == [("another whole number in every row", False, ["--drop wage"])]


LAB = "--read lab=number --missing indicator"


@pytest.mark.parametrize(
    ("odd", "found", "options"),
    [
        (lambda row: "lost" if row == 4 else row % 9, "numbers and other texts, the first in line 6", LAB),
        (
            lambda row: "north" if row % 2 else row % 9,
            "numbers and other texts, the first in line 3",
            "--categories lab",
        ),
        (lambda row: "" if row == 4 else row % 9, "no value in 1 row, the first in line 6", "--missing indicator"),
        (lambda row: "inf" if row == 4 else row % 9, "numbers that are too large or infinite", LAB),
        (
            lambda row: "later" if row == 4 else "2024-01-05",
            "dates and other texts, the first in line 6",
            "--read lab=date --missing indicator",
        ),
        (lambda row: "NA", "no value in any row", "--drop lab"),
    ],
)
def test_what_has_to_be_decided_is_settled_by_what_is_suggested(tmp_path, odd, found, options):
    path = write(tmp_path / "a.csv", lab=map(odd, range(ROWS)))
    words = options.split()
    (first,) = told(path, "lab")
    assert first == (found, True, [" ".join(words[i : i + 2]) for i in range(0, len(words), 2)])
    given = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(option[2:], []).append(value)
    assert not any(problem for _, problem, _ in told(path, "lab", **given))
    assert len(data.load(path, target="y", **given).x)


def test_what_is_said_wins_over_what_is_seen(tmp_path):
    path = write(
        tmp_path / "a.csv", when=["01/02/2024"] * 30 + ["03/04/2024"] * 30, big=["1,234"] * 30 + ["2,345"] * 30
    )
    seen = data.load(path, target="y", test_share=0, scale="none")
    assert told(path, "when") == [("dates with the day first", False, ["--read when=month-first"])]
    said = data.load(path, target="y", test_share=0, scale="none", read=["when=month-first", "big=decimal-comma"])
    days = {name: of.x[0, of.feature_names.index("when")] for name, of in (("seen", seen), ("said", said))}
    assert days == {"seen": 8766 + 31, "said": 8766 + 1}
    assert (seen.x[0, 2], said.x[0, 2]) == (1234, np.float32(1.234))
    assert any("'when' (dates with the day first)" in sentence for sentence in seen.public)
    assert not any("seen by looking" in sentence for sentence in said.public)


def test_indicators_are_for_all_columns_or_for_those_named(tmp_path):
    path = write(
        tmp_path / "a.csv", pay=["" if row == 4 else row % 9 for row in range(ROWS)], job=["cook", "nurse"] * 30
    )
    every = data.load(path, target="y", missing="indicator", test_share=0)
    # One for each column of numbers and a category for each of texts, whether or not somebody lacks a value.
    assert every.feature_names == ("age", "pay", "job=cook", "job=nurse", "job=(missing)", "age missing", "pay missing")
    assert every.x[4, 1] == 0
    assert every.x[:, -1].tolist() == [float(row == 4) for row in range(ROWS)]
    assert not every.x[:, [4, 5]].any()
    named = data.load(path, target="y", missing=["pay=indicator"], test_share=0)
    assert named.feature_names == ("age", "pay", "job=cook", "job=nurse", "pay missing")
    # The mean is that of the values that there are.
    there = [row % 9 for row in range(ROWS) if row != 4]
    assert named.recipe.columns[1].mean == pytest.approx(np.mean(there))
    filled = data.load(path, target="y", missing="value:5", test_share=0, scale="none")
    assert filled.x[4, 1] == 5
    assert "job=5" in filled.feature_names
    texts = data.load(path, target="y", missing="value:unknown", test_share=0, scale="none")
    assert "job=unknown" in texts.feature_names
    assert texts.x[4, 1] == 0


def test_a_column_of_which_no_training_record_has_a_value(tmp_path):
    """Statistics of nothing: the column says nothing, and nothing breaks."""
    split = data.load(write(tmp_path / "a.csv", pay=[1] * ROWS), target="y", seed=0)
    tested = set(split.places[len(split.x) :])
    pay = [row % 5 if row in tested else "" for row in range(ROWS)]
    path = write(tmp_path / "b.csv", pay=pay, job=[("cook" if row in tested else "") for row in range(ROWS)])
    loaded = data.load(path, target="y", missing="indicator", seed=0)
    assert loaded.feature_names == ("age", "pay", "job=(missing)", "age missing", "pay missing")
    assert not loaded.x[:, 1].any()
    assert loaded.x[:, [2, 4]].all()
