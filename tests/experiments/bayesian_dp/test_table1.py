"""Table I of S1: its lines are those of the runs, and of the last step."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from s1_problem import STEPS

from bayesdp import convert
from bayesdp.errors import InputError
from bayesdp.experiments.bayesian_dp import table1
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.run import reproduce, write_csv


@pytest.fixture
def folder(rows: list[dict[str, Any]], tmp_path: Path) -> Path:
    write_csv(tmp_path / "bdp-mnist.csv", rows)
    return tmp_path


def test_rows_are_the_papers_and_those_of_the_last_step(folder: Path, rows: list[dict[str, Any]]) -> None:
    table = table1.compute(results=folder)
    assert {row["dataset"] for row in table} == {"MNIST"}
    assert [row["line"] for row in table[3:]] == list(table1.LINES)
    printed = {row["line"]: row["attacker"] for row in table[:3]}
    assert printed["S1 Table I: no privacy"] == 1
    assert printed["S1 Table I: DP"] == pytest.approx(0.8984, abs=5e-5)
    assert printed["S1 Table I: BDP"] == pytest.approx(0.6502, abs=5e-5)
    (ours,) = pick(table, line="recipe, BDP sound: 90 % of people")
    (run,) = pick(rows, run="recipe", way="sound", coverage=0.9, step=STEPS)
    assert ours["epsilon"] == pytest.approx(run["epsilon"], rel=1e-9)


def test_printed_attacker_of_cifar10() -> None:
    eps = table1.PRINTED[1]
    assert convert.attacker_success(eps.dp) == pytest.approx(0.9997, abs=5e-5)
    assert convert.attacker_success(eps.bdp) == pytest.approx(0.6248, abs=5e-5)


def test_reproduce_reads_the_folder_that_it_writes_to(folder: Path) -> None:
    (folder / "bdp-mnist.csv").rename(folder / "bdp-mnist-full.csv")
    with pytest.raises(InputError, match="bayesdp reproduce bdp-mnist or"):
        reproduce("bdp-table1", folder)
    files = reproduce("bdp-table1", folder, full=True)
    assert [file.name for file in files] == [f"bdp-table1-full.{kind}" for kind in ("csv", "png", "svg")]
    with files[0].open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 3 + len(table1.LINES)
