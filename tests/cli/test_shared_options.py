"""What cannot be trained: each gets one line on stderr, exit code 2, and no folder is made or touched."""

from __future__ import annotations

import os

import numpy as np
import pytest
from people_files import people, write_people

PLAN = ("--epsilon", "2", "--engine", "rdp")
DECLARED = ("--bounds", "age=0,100", "--bounds", "hours=0,80", "--bounds", "wage=0,90000")


@pytest.fixture
def shelf(tmp_path):
    """Files that are broken in one way each, and one that is not."""
    columns = people()
    hole = {name: list(cells) for name, cells in columns.items()}
    hole["hours"][4] = "nan"
    write_people(tmp_path / "people.csv")
    write_people(tmp_path / "nan.csv", hole)
    write_people(tmp_path / "one-class.csv", {**columns, "rich": ["yes"] * 240})
    write_people(tmp_path / "few.csv", {name: cells[:9] for name, cells in columns.items()})
    write_people(tmp_path / "names.csv", {"name": [f"person {i // 2}" for i in range(240)], **columns})
    np.savez(tmp_path / "nan.npz", x=np.where(np.eye(60, 4), np.nan, 1.0), y=np.arange(60) % 2)
    np.savez(tmp_path / "tiny-images.npz", x=np.zeros((60, 8, 8), np.uint8), y=np.arange(60) % 2)
    (tmp_path / "garbage.parquet").write_bytes(b"no table")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["digitz", *PLAN], "Expected DATA to be one of 'digits', 'breast-cancer'"),
        (["digitz", *PLAN], "Did you mean 'digits'?"),
        (["nowhere.csv", "--target", "rich", *PLAN], "to be a readable file"),
        (["garbage.parquet", "--target", "rich", *PLAN], "to be a Parquet file"),
        (["people.csv", *PLAN], "Expected --target to name the column of"),
        (["people.csv", "--target", "income", *PLAN], "Expected --target to name a column of"),
        (["people.csv", "--target", "rich", "--drop", "agee", *PLAN], "Expected --drop to name a column of"),
        (["people.csv", "--target", "rich", "--task", "guess", *PLAN], "Expected --task to be one of"),
        (["people.csv", "--target", "rich", "--scale", "log", *PLAN], "Expected --scale to be one of"),
        (["people.csv", "--target", "rich", "--bounds", "age=110,0", *PLAN], "Expected low below high for 'age'"),
        (["people.csv", "--target", "rich", "--bounds", "age", *PLAN], "Expected --bounds to read COLUMN=LOW,HIGH"),
        (["people.csv", "--target", "rich", "--bounds", "agee=0,9", *PLAN], "Expected --bounds to name a column of"),
        (["people.csv", "--target", "rich", "--bounds", "trade=0,9", *PLAN], "'trade', a column of texts"),
        (
            ["people.csv", "--target", "rich", "--bounds-file", "no.json", *PLAN],
            "Expected --bounds-file='no.json' to be",
        ),
        (["people.csv", "--target", "rich", "--levels", "rich=yes", *PLAN], "at least two classes in --levels"),
        (["people.csv", "--target", "rich", "--levels", "trade=a,a", *PLAN], "different levels for 'trade'"),
        (["people.csv", "--target", "rich", "--scale-share", "2", *PLAN], "Expected --scale-share to be"),
        (
            ["people.csv", "--target", "rich", "--scale", "private", "--epsilon", "0.1", "--delta", "1e-5"],
            "Declare --bounds for all columns or for most",
        ),
        (
            ["people.csv", "--target", "rich", "--scale", "private", *DECLARED, "--epsilon", "0.1", "--delta", "1e-5"],
            "(--levels='rich=no,yes')",
        ),
        (["breast-cancer", "--bounds", "mean area=0,1", *PLAN], "to be left out for DATA='breast-cancer'"),
        (["people.csv", "--target", "rich", "--test-share", "1", *PLAN], "Expected --test-share to be"),
        (["people.csv", "--target", "rich", "--features", "deep", *PLAN], "Expected --features to be one of"),
        (["people.csv", "--target", "rich", "--features", "scattering", *PLAN], "Expected images to make scattering"),
        (["nan.csv", "--target", "rich", *PLAN], "column 'hours'"),
        (["nan.npz", *PLAN], "in record 0"),
        (["one-class.csv", "--target", "rich", *PLAN], "to have at least two different values"),
        (["few.csv", "--target", "rich", *PLAN], "to hold at least 10 records"),
        (["names.csv", "--target", "rich", *PLAN], "Leave the column out (--drop 'name')"),
        (["breast-cancer", "--target", "y", *PLAN], "to be left out for DATA='breast-cancer'"),
        (["mnist", "--no-download", "--data-dir", ".", *PLAN], "The download is switched off"),
        (["breast-cancer", "--data-dir", "nowhere", "--model", "resnet", *PLAN], "Expected --model to be one of"),
        (["breast-cancer", "--model", "lenet5", *PLAN], "Expected --model to be one for a table, got --model='lenet5'"),
        (["tiny-images.npz", "--model", "lenet5", *PLAN], "Expected --model to be one for images of 8 x 8 pixels"),
        (["breast-cancer"], "Expected --epsilon, the DP ε to keep, or --noise-multiplier, got neither"),
        (["breast-cancer", *PLAN, "--noise-multiplier", "1"], "Expected --epsilon or --noise-multiplier, got both"),
        (["breast-cancer", "--epsilon", "0"], "Expected --epsilon to be a finite number > 0"),
        (["breast-cancer", "--epsilon", "two"], "'two' is not a number"),
        (
            ["breast-cancer", "--epsilon", "1e-9", "--delta", "1e-12", "--engine", "moments"],
            "Expected an epsilon within reach, got --epsilon=1e-09",
        ),
        (["breast-cancer", *PLAN, "--delta", "0.01"], "Expected --delta to be below one over the number of training"),
        (["breast-cancer", *PLAN, "--delta", "0"], "Expected --delta to be a finite number > 0 and < 1"),
        (["breast-cancer", *PLAN, "--batch-size", "500"], "Expected --batch-size to be at most 455, the number of"),
        (["breast-cancer", *PLAN, "--batch-size", "5", "--sampling-rate", "0.1"], "--batch-size to be left out beside"),
        (
            ["breast-cancer", *PLAN, "--steps", "5", "--epochs", "2"],
            "Expected --epochs to be left out beside --steps=5",
        ),
        (["breast-cancer", *PLAN, "--steps", "0"], "Expected --steps to be a whole number >= 1"),
        (
            ["breast-cancer", *PLAN, "--steps", "1e18"],
            "Expected --steps to be a whole number >= 1 and <= 10000000, got --steps=1e+18. Use fewer steps",
        ),
        (
            ["breast-cancer", *PLAN, "--epochs", "1e18"],
            "which is 10,000,000 steps, got --epochs=",
        ),
        (
            ["breast-cancer", *PLAN, "--steps", "4", "--measure-every", "6", "--keep-iterates", "6"],
            "Expected --keep-iterates to be a multiple of",
        ),
        (["breast-cancer", *PLAN, "--clip-norm", "1e-40"], "Expected --clip-norm to be at least 1e-15"),
        (["breast-cancer", "--noise-multiplier", "1e-300"], "Expected --noise-multiplier to be at least 1e-15"),
        (["breast-cancer", *PLAN, "--sampling-rate", "2"], "Expected --sampling-rate to be a finite number > 0"),
        (["breast-cancer", *PLAN, "--clip-norm", "-1"], "Expected --clip-norm to be a finite number >= 1e-30"),
        (["breast-cancer", *PLAN, "--clip-norm", "wide"], "Expected --clip-norm to be a number or none"),
        (["breast-cancer", *PLAN, "--clip-norm", "none"], "Expected --noise-std to be given with --clip-norm='none'"),
        (["breast-cancer", *PLAN, "--noise-std", "1"], "Expected --noise-std to be left out with a clip norm"),
        (["breast-cancer", *PLAN, "--optimizer", "lamb"], "Expected --optimizer to be one of 'adam', 'sgd'"),
        (
            ["breast-cancer", *PLAN, "--momentum", "0.5", "--optimizer", "adam"],
            "Expected --momentum to be left out for --optimizer='adam'",
        ),
        (["breast-cancer", *PLAN, "--learning-rate", "-1"], "Expected --learning-rate to be a finite number > 0"),
        (["breast-cancer", *PLAN, "--schedule", "wild"], "Expected --schedule to be one of 'constant', 'typical'"),
        (["breast-cancer", *PLAN, "--goal", "fame"], "Expected --goal to be one of 'accuracy', 'typical', 'balanced'"),
        (["breast-cancer", *PLAN, "--holdout", "455"], "Expected --holdout to be below 455"),
        (["breast-cancer", *PLAN, "--members", "1e4"], "Expected --members to be at most 455"),
        (["breast-cancer", *PLAN, "--watch", "0"], "Expected --watch to be a whole number >= 1"),
        (["breast-cancer", *PLAN, "--watch", "570"], "There are 569 records, counted from 1"),
        (["breast-cancer", *PLAN, "--watch", "ann"], "Expected --watch to be numbers separated by commas"),
        (["breast-cancer", *PLAN, "--coverage", "1"], "Expected --coverage to be a finite number > 0 and < 1"),
        (["breast-cancer", *PLAN, "--adjacency", "near"], "Expected --adjacency to be one of"),
        (["breast-cancer", *PLAN, "--engine", "steam"], "Expected --engine to be one of"),
        (["breast-cancer", *PLAN, "--epsilon-budget", "1e-9"], "Expected --epsilon-budget to pay for at least one"),
        (["breast-cancer", *PLAN, "--seed", "0.5"], "Expected --seed to be a whole number >= 0"),
    ],
)
def test_each_is_one_line_and_leaves_nothing(cli, shelf, monkeypatch, arguments, said):
    monkeypatch.chdir(shelf)
    monkeypatch.delenv("BAYESDP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shelf / "cache"))
    before = sorted(os.listdir(shelf))
    assert said in cli("train", *arguments, "--out", "run").refused()
    assert sorted(os.listdir(shelf)) == before


def test_out_must_be_given_and_free(cli, shelf):
    assert "Missing option '--out'" in cli("train", "breast-cancer", *PLAN).refused()
    refused = cli("train", "breast-cancer", *PLAN, "--out", shelf).refused()
    assert "Expected --out to be new or empty, got --out=" in refused
    assert "It holds other files" in refused
    refused = cli("train", "breast-cancer", *PLAN, "--out", shelf / "people.csv").refused()
    assert "There is a file of that name" in refused
    assert "Expected --out" in cli("train", "breast-cancer", *PLAN, "--out", shelf / "people.csv" / "below").refused()


@pytest.mark.parametrize(("command", "kind"), [("resume", "job"), ("report", "report")])
def test_folders_that_are_no_runs(cli, shelf, command, kind):
    assert "Expected RUN to be a folder" in cli(command, shelf).refused()
    assert "Expected RUN to be a folder" in cli(command, shelf / "nowhere").refused()
    (shelf / "job.json").write_text("{}")
    (shelf / "report.json").write_text("{}")
    expected = (
        f".json to be 'bayesdp/{kind}', got None" if command == "resume" else "to have a checksums.json, got none"
    )
    assert expected in cli(command, shelf).refused()
