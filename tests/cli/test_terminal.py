"""The program as a program: the real console script, pipes, narrow and colourless terminals, files it writes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from norm_files import distances, write_csv

import bayesdp.cli
from bayesdp import Guarantee
from bayesdp.cli import terminal
from bayesdp.jobs import demo
from bayesdp.report import read

EPSILON = ["epsilon", "--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "10", "--delta", "1e-5"]


def program(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", "from bayesdp.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def test_console_script_is_this_program():
    (script,) = entry_points(group="console_scripts", name="bayesdp")
    assert script.load() is bayesdp.cli.main
    path = Path(sys.executable).with_name("bayesdp")
    done = subprocess.run([path, *EPSILON, "--engine", "rdp", "--json"], capture_output=True, timeout=60, check=True)
    assert done.stderr == b""
    (found,) = json.loads(done.stdout)
    assert Guarantee.from_dict(found).notion == "dp"


def test_bad_input_of_the_real_program():
    done = program("account", "nowhere.csv", "--noise-std", "1", "--delta", "1e-5")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"bayesdp: Expected FILE='nowhere.csv' to be a readable file")


def test_a_terminal_without_greek_letters_gets_no_traceback():
    done = program(*EPSILON, PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"DP ? = " in done.stdout


def test_a_pipe_that_closes_early_is_no_error():
    command = [sys.executable, "-c", "from bayesdp.cli import main; main()", *EPSILON, "--engine", "rdp"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 1


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_output_fits_the_terminal(cli, tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    path = write_csv(tmp_path / "a.csv", distances(steps=2, records=3), ["ann", "b" * 90, "eve"])
    out = cli(
        "account", path, "--noise-std", 1, "--clip-norm", 1, "--delta", "1e-5", "--curve", "--top", 3, "--orders", "4,8"
    ).out
    assert max(map(len, out.splitlines())) <= columns
    assert "\x1b" not in out
    # Two steps: the Bayesian and the per-instance number are no better than the DP one, and say so in any width.
    assert "DP ε = " in out
    assert out.count("no better than for") >= 2
    assert "everybody: DP ε " in out
    if columns >= 80:
        assert "people like those in the data " in out.splitlines()[5]


def test_progress_only_where_someone_looks(cli, tmp_path):
    path = write_csv(tmp_path / "a.csv", distances(steps=2, records=3))
    assert cli("account", path, "--noise-std", 1, "--delta", "1e-5", "--orders", "4").err == ""


def test_demo_tells_three_stories(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bayesdp-demo").mkdir()  # of an earlier time: left alone
    result = cli("demo", "--seed", 0)
    assert result.code == 0
    report = read(tmp_path / "bayesdp-demo-2" / "report.json")
    assert report.metrics["test accuracy"] > 0.9
    everybody, alike, one = report.guarantees
    for words in (
        "everybody",
        f"DP ε = {terminal.up(everybody.epsilon, 5)}",
        f"Bayesian ε = {terminal.up(alike.epsilon, 5)}",
    ):
        assert words in result.out
    assert f"one record: number {demo.PATIENT}" in result.out
    assert f"per-instance ε = {terminal.up(one.epsilon, 5)}" in result.out
    assert "share of people" in result.out
    assert "NOT PRIVATE" in result.out
    # What it is meant to show: typical people, and that patient, are better off than the worst case.
    assert 1.99 < everybody.epsilon <= 2
    assert max(alike.epsilon, one.epsilon) < 0.9 * everybody.epsilon
    assert not list((tmp_path / "bayesdp-demo").iterdir())


def test_reproduce_lists_and_writes(cli, tmp_path):
    listed = cli("reproduce", "--list").out
    assert all(f"bdp-fig{n}" in listed for n in range(1, 5))
    result = cli("reproduce", "bdp-fig4", "--out", tmp_path / "made", "--seed", 1)
    files = [Path(line) for line in result.out.splitlines()]
    assert result.err == ""
    assert sorted(file.name for file in files) == ["bdp-fig4.csv", "bdp-fig4.png", "bdp-fig4.svg"]
    assert all(file.parent == tmp_path / "made" and file.stat().st_size > 0 for file in files)
    with files[0].open(newline="") as file:
        assert "epsilon" in next(csv.reader(file))
