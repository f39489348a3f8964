"""`check`: a list for the owner's eyes, options to paste, and nothing written."""

from __future__ import annotations

import os

import pytest
from people_files import people, write_people


@pytest.fixture
def table(tmp_path):
    columns = people()
    columns["hours"][4] = ""
    return write_people(tmp_path / "people.csv", columns)


def test_a_list_and_the_options_that_settle_it(cli, table):
    before = sorted(os.listdir(table.parent)), table.read_bytes()
    found = cli("check", table, "--target", "rich")
    assert (found.code, found.err) == (0, "")
    words = " ".join(found.out.split())
    assert "240 rows, 5 columns. Sensitive: this list is computed from private records and not paid for." in words
    assert "'hours': no value in 1 row, the first in line 6. To be decided: --missing indicator." in words
    assert "To be decided: 1. These options decide it:" in words
    assert found.out.rstrip().splitlines()[-1] == "--missing indicator"
    assert (sorted(os.listdir(table.parent)), table.read_bytes()) == before


def test_nothing_left_to_decide(cli, table, tmp_path):
    write_people(tmp_path / "good.csv")
    assert "Nothing was found that needs a word." in cli("check", tmp_path / "good.csv", "--target", "rich").out
    assert "Nothing was found" in cli("check", table, "--target", "rich", "--missing", "hours=value").out
    assert "learned from as it is" in cli("check", table, "--target", "rich", "--missing", "drop").out
    one_class = write_people(tmp_path / "one.csv", {**people(), "rich": ["yes"] * 240})
    assert "To be decided: 1, in the table itself." in cli("check", one_class, "--target", "rich").out


def test_as_json(cli, table):
    (found,) = cli("check", table, "--target", "rich", "--json").json
    assert found == {
        "column": "hours",
        "found": "no value in 1 row, the first in line 6",
        "problem": True,
        "done": None,
        "options": ["--missing indicator"],
        "sensitive": True,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.csv"], "to be a readable file"),
        (["digits"], "Expected DATA to be a table that ends in .csv, .tsv, .parquet, .pq"),
        (["people.csv", "--target", "poor"], "Expected --target to name a column"),
        (["people.csv", "--missing", "mean"], "Expected --missing to be drop, indicator or value"),
        (["people.csv", "--keep", "name"], "Expected --keep to name a column"),
    ],
)
def test_what_cannot_be_checked(cli, table, monkeypatch, arguments, said):
    monkeypatch.chdir(table.parent)
    assert said in cli("check", *arguments).refused()
