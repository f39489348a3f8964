"""A table with every problem that `check` knows, through the command line: checked, trained on, predicted."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pytest
from hospital_table import hospital, write_hospital

from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.report import read

QUICK = (
    "--model",
    "logistic",
    "--noise-multiplier",
    2,
    "--steps",
    5,
    "--engine",
    "rdp",
    "--holdout",
    0,
    "--members",
    0,
)


@pytest.fixture
def patients(tmp_path):
    return write_hospital(tmp_path / "patients.csv")


def options_in(shown):
    """The last line of what `check` prints, as a shell would take it."""
    return shlex.split(shown.rstrip().splitlines()[-1])


def test_a_table_with_every_problem_trains_with_the_options_that_check_suggests(cli, patients, tmp_path):
    found = cli("check", patients, "--target", "back")
    assert found.code == 0
    words = " ".join(found.out.split())
    assert "Sensitive: this list is computed from private records" in words
    for told in (
        "3 rows are the same as another in every cell",
        "'patient id': another value in every row: a likely identifier. The column is left out.",
        "'age': no value in 36 rows, the first in line 7. To be decided: --missing indicator.",
        "'admitted': dates with the day first. Read as days since 2000-01-01.",
        "'discharged': dates. Read as days since 2000-01-01.",
        "'rounds at': times. Read as hours since midnight.",
        "'weight': numbers with decimal commas.",
        "'cost': numbers with separators between thousands.",
        "'saturation': numbers with percent signs.",
        "'ill before': truth values in words. Read as 1 and 0.",
        "'lab': numbers and other texts, the first in line 5 ('<2', 'hemolysed').",
        "'ward': numbers and other texts, the first in line 2 ('north').",
        "'notes': text of many values: 190 different ones.",
        "'town': text of many values: 40 different ones. Each is a feature.",
        "'empty': no value in any row.",
        "'country': the same value in every row.",
        "'back': no value to learn in 13 rows. Such rows are left out.",
    ):
        assert told in words, told

    # Without them: all problems in one line, and nothing is written.
    refused = cli("train", patients, "--target", "back", *QUICK, "--out", tmp_path / "run").refused()
    assert "got 7 problems: (1) 'age': no value in 36 rows" in refused
    assert "hemolysed" not in refused  # a message may end up in a log
    for problem in found.out.split("To be decided: ")[1:-1]:
        assert shlex.split(problem.partition(".")[0])[-1].replace("'", "") in refused
    assert not (tmp_path / "run").exists()

    # With them, as they are printed.
    suggested = options_in(found.out)
    assert "has to be decided" in cli("check", patients, "--target", "back", *suggested).out
    done = cli("train", patients, "--target", "back", *suggested, *QUICK, "--seed", 0, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "Table (sensitive): 'patient id': another value in every row" in told
    public = " ".join(read(tmp_path / "run" / "report.json").preprocessing)
    assert "Left out as likely identifiers, which was seen by looking at the records: 'patient id'." in public
    assert "'admitted' (dates with the day first)" in public
    assert "How columns are read, and what is done where there is no value, was declared and is public." in public
    # How many lack a value is said to the owner alone.
    assert not any(str(count) in public for count in (36, 18, 24, 13))


def test_what_was_seen_in_training_holds_for_further_records(cli, patients, tmp_path):
    options = options_in(cli("check", patients, "--target", "back").out)
    plan = (*options, *QUICK, "--seed", 0, "--out", tmp_path / "run")
    assert cli("train", patients, "--target", "back", *plan).code == 0
    recipe = json.loads((tmp_path / "run" / "model.json").read_text())["recipe"]
    assert {one["name"]: one["kind"] for one in recipe["readings"]}["admitted"] == "day-first"

    # Three people of whom little is known, one of them from elsewhere; written as the training table is.
    new = {name: cells[:3] for name, cells in hospital().items() if name != "back"}
    new["town"] = ["elsewhere", *new["town"][1:]]
    new["age"], new["lab"], new["blood"] = ["", "40", "40"], ["lost", "5.1", ""], ["A", "", "B"]
    found = cli("predict", tmp_path / "run", write_hospital(tmp_path / "new.csv", new), "--key", "patient id")
    assert found.code == 0
    lines = list(csv.reader(found.out.splitlines()))
    assert lines[0] == ["patient id", "prediction", "probability of no", "probability of yes"]
    assert [line[0] for line in lines[1:]] == ["P100000", "P100007", "P100014"]
    assert "1 record has a category in column 'town' that the model does not know" in found.err
    assert np.allclose(np.array([line[2:] for line in lines[1:]], float).sum(1), 1, atol=1e-5)
    # A date that is written otherwise is refused with its line, not read as another one.
    new["admitted"] = ["2020-01-01", *new["admitted"][1:]]
    refused = cli("predict", tmp_path / "run", write_hospital(tmp_path / "odd.csv", new)).refused()
    assert "to hold dates with the day first in column 'admitted'" in refused
    assert "got a text in line 2" in refused
    assert "Expected --key to name a column" in cli("predict", tmp_path / "run", patients, "--key", "nobody").refused()


def test_rows_that_lack_a_value_can_be_left_out(cli, tmp_path):
    table = {name: cells for name, cells in hospital().items() if name in ("age", "blood", "back")}
    patients = write_hospital(tmp_path / "patients.csv", table)
    plan = ("--missing", "drop", "--target", "back", *QUICK, "--seed", 0)
    done = cli("train", patients, *plan, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    kept = [row for row in zip(*table.values(), strict=True) if row[0] != "NA" and "" not in row]
    counted = [int(word.replace(",", "")) for word in done.out.replace(":", "").split() if word.isdigit()]
    assert counted[0] + counted[1] == len(kept)  # to train on, and to test on
    # The sixth has no age: nobody can be told what it lost.
    refused = cli("train", patients, *plan, "--watch", 6, "--out", tmp_path / "other").refused()
    assert "Expected --watch to name a record that is used" in refused
    source = DataSource.given(str(patients), target="back", missing=("drop",), scale="none")
    job = SGDJob(data=source, model="logistic", noise_multiplier=2, steps=5, holdout=0, members=0, watch=(8, 2), seed=0)
    watched = prepare(job).watched_records
    assert watched.x[:, 0].tolist() == [float(table["age"][7]), float(table["age"][1])]
    found = cli("predict", tmp_path / "run", patients)
    lines = list(csv.reader(found.out.splitlines()))
    assert len(lines) == 1 + len(table["age"])
    assert lines[6] == ["", "", ""]
    assert lines[1][0] in ("yes", "no")
    assert "records lack a value that the model needs, and got no prediction" in found.err


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"empty": [""] * 403}, (), "to have a value in column 'empty', got none in any row"),
        ({"code": [f"c{number % 201}" for number in range(403)]}, (), "got 201 in 403 rows"),
        ({"back": ["yes"] * 403}, (), "to have at least two different values in DATA="),
        ({"back": [""] * 403}, (), "to hold at least 10 records to train and test with, got 0"),
        ({}, ("--missing", "guess"), "Expected --missing to be drop, indicator or value"),
        ({}, ("--missing", "height=drop"), "Expected --missing to name a column"),
        ({}, ("--missing", "age=value:old"), "to put in what column 'age' can hold: numbers"),
        ({}, ("--missing", "back=drop"), "Expected --missing to name other columns than the target"),
        ({}, ("--missing", "drop", "--missing", "value"), "to be said once, got two for all columns"),
        ({}, ("--read", "age=length"), "Expected --read to be COLUMN=KIND with one of the kinds number, decimal-comma"),
        ({}, ("--read", "age=time", "--missing", "drop"), "to hold times in column 'age', got none"),
        ({}, ("--read", "age"), "Expected --read to be of the form COLUMN=WORD"),
        ({}, ("--keep", "height"), "Expected --keep to name a column"),
        ({}, ("--drop", "age,height"), "Expected --drop to name a column"),
    ],
)
def test_what_cannot_be_learned_from_is_one_line_and_leaves_nothing(cli, tmp_path, changes, options, said):
    table = {name: cells for name, cells in hospital().items() if name in ("age", "ill before", "back")}
    table["age"] = [cell if cell != "NA" else "50" for cell in table["age"]]
    patients = write_hospital(tmp_path / "patients.csv", table | changes)
    assert said in cli("train", patients, "--target", "back", *options, *QUICK, "--out", tmp_path / "run").refused()
    assert not (tmp_path / "run").exists()


def test_lists_of_columns_are_given_with_commas_or_one_by_one(cli, patients):
    together = cli("check", patients, "--target", "back", "--drop", "notes,empty,town", "--categories", "ward,blood")
    apart = [word for name in ("notes", "empty", "town") for word in ("--drop", name)]
    assert (
        together.out
        == cli("check", patients, "--target", "back", *apart, "--categories", "ward", "--categories", "blood").out
    )
    rules = cli("check", patients, "--target", "back", "--missing", "age=drop,blood=value", "--json").json
    assert not any(one["problem"] and one["column"] in ("age", "blood") for one in rules)
    assert any(one["problem"] and one["column"] == "weight" for one in rules)
