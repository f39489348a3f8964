"""Noise and rates that a file says for each step, and the page of what was found."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest
from norm_files import distances, write_csv
from pyarrow import parquet

import bayesdp as bd
from bayesdp.report import read

NORMS = distances(steps=4, records=140)
NOISE, RATES = np.array([1.0, 1.0, 2.0, 2.0]), np.array([0.1, 0.1, 0.1, 0.2])
NAMES = [f"r{i}" for i in range(140)]
END = ["--clip-norm", "1", "--delta", "1e-5", "--json"]


@pytest.fixture
def files(tmp_path):
    columns = np.column_stack([NORMS, NOISE, RATES])
    names = [*NAMES, "noise_multiplier", "sampling_rate"]
    write_csv(tmp_path / "a.csv", columns, names)
    np.savez(tmp_path / "a.npz", norms=NORMS, noise_multiplier=NOISE, sampling_rate=RATES)
    parquet.write_table(pyarrow.table(dict(zip(names, columns.T, strict=True))), tmp_path / "a.parquet")
    return tmp_path


def test_each_format_says_the_same_as_the_accountants(cli, files):
    dp, people = bd.WorstCaseAccountant(), bd.BayesianAccountant(cap=1.0)
    for row, z, q in zip(NORMS, NOISE, RATES, strict=True):
        dp.step(noise_multiplier=z, sampling_rate=q)
        people.step(row, noise_std=z, sampling_rate=q)
    for name in ("a.csv", "a.npz", "a.parquet"):
        found = cli("account", files / name, *END).json
        assert found[0]["epsilon"] == pytest.approx(dp.epsilon(1e-5))
        assert found[1]["epsilon"] == pytest.approx(people.guarantee(1e-5).epsilon)


def test_single_precision_is_rounded_to_what_costs_more(cli, files):
    names = [*NAMES, "noise_multiplier"]
    columns = np.column_stack([NORMS, np.full(4, 1.1)]).astype(np.float32)
    parquet.write_table(pyarrow.table(dict(zip(names, columns.T, strict=True))), files / "single.parquet")
    dp = bd.WorstCaseAccountant()
    dp.step(noise_multiplier=1.1, sampling_rate=1.0, steps=4)
    assert (
        dp.epsilon(1e-5) < cli("account", files / "single.parquet", *END).json[0]["epsilon"] < dp.epsilon(1e-5) * 1.001
    )


def test_page(cli, files):
    (files / "groups.txt").write_text("a\n" * 70 + "b\n" * 70)
    answer = cli("account", files / "a.csv", "--groups", files / "groups.txt", "--report", files / "page.json", *END)
    found = read(files / "page.json")
    assert [one.to_dict() for one in found.guarantees] == answer.json[:3]
    assert found.settings.noise_std == (1.0, 2.0)
    assert found.groups is not None
    cli("account", files / "a.csv", "--report", files / "page.html", *END)
    assert "accounted for" in (files / "page.html").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--noise-std", "1"], "from options or from the column 'noise_multiplier', got both"),
        (["--sampling-rate", "0.5"], "to be left out beside a column of that name"),
        (["--report", "page.pdf"], "to end in .html or .json"),
    ],
)
def test_what_is_said_twice_is_refused(cli, files, more, words):
    assert words in cli("account", files / "a.csv", *END, *more).refused()


def test_a_column_of_the_wrong_length(cli, tmp_path):
    np.savez(tmp_path / "a.npz", norms=NORMS, noise_std=NOISE[:2])
    assert "to hold noise_std as an array of 4 numbers" in cli("account", tmp_path / "a.npz", *END).refused()
