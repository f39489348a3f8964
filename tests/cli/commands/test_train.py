"""`train`, `report` and `predict`: one command makes a folder, and the folder is enough for the other two."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pyarrow
import pytest
from people_files import people, write_people
from pyarrow import parquet

from bayesdp import Guarantee, WorstCaseAccountant, storage
from bayesdp.cli import main, terminal
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.report import read

SPLIT = ("--test-share", 0.2)
"""So few records are not split unless that is asked for."""

QUICK = (
    "--noise-multiplier",
    3,
    "--steps",
    8,
    "--engine",
    "rdp",
    "--holdout",
    30,
    "--members",
    20,
    "--seed",
    0,
    "--optimizer",
    "adam",
    *SPLIT,
)


def called(*arguments) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("data") / "people.csv")


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    """A classification of the user's own table, with everything that a person might ask for."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    more = ("--target", "rich", "--drop", "wage", "--watch", "7,200", "--delta", 1e-4, "--learning-rate", 0.3)
    assert called("train", table, *more, *QUICK, "--out", folder) == 0
    return folder


@pytest.fixture(scope="module")
def wages(table, tmp_path_factory):
    """A regression, with test records set apart otherwise and no witnesses."""
    folder = tmp_path_factory.mktemp("runs") / "wages"
    more = (
        "--target",
        "wage",
        "--drop",
        "rich",
        "--test-share",
        0.5,
        "--optimizer",
        "sgd",
        "--learning-rate",
        0.3,
        "--clip-norm",
        1.5,
    )
    plan = ("--noise-multiplier", 1, "--steps", 30, "--engine", "rdp", "--holdout", 0, "--members", 0, "--seed", 0)
    assert called("train", table, *more, *plan, "--out", folder) == 0
    return folder


# --- train ------------------------------------------------------------------------------------------------------


def test_json_is_the_runs_guarantees_and_nothing_else(cli, table, run, tmp_path):
    arguments = ("--target", "rich", "--drop", "wage", "--watch", "7,200", "--delta", 1e-4, "--learning-rate", 0.3)
    found = cli("train", table, *arguments, *QUICK, "--out", tmp_path / "again", "--json").json
    saved = read(run / "report.json").guarantees
    assert [Guarantee.from_dict(one) for one in found] == list(saved)
    assert [one.notion for one in saved] == ["dp", "bdp", "per-instance"]
    everybody = WorstCaseAccountant(engine="rdp")
    everybody.step(noise_multiplier=3, sampling_rate=SGDJob.read(RunFolder(run)).sampling_rate, steps=8)
    assert saved[0].epsilon == everybody.epsilon(1e-4 - saved[0].delta_split["noise"])
    # The same seed, the same model.
    assert (run / "params.npz").read_bytes() == (tmp_path / "again" / "params.npz").read_bytes()


def test_everything_is_stated_before_and_after(cli, table, tmp_path):
    plan = ("--epsilon", 3, "--delta", 1e-3, "--batch-size", 84, "--epochs", 3, "--engine", "rdp", *SPLIT)
    result = cli(
        *("train", table, "--target", "rich", "--drop", "wage", "--seed", 1, "--model", "mlp", *plan),
        *("--holdout", 30, "--members", 20, "--schedule", "typical", "--optimizer", "sgd", "--out", tmp_path / "run"),
    )
    assert result.code == 0
    shown = " ".join(result.out.split())
    for words in (
        "people: 172 records to train on, 26 held out as outsiders, 42 to test on; 5 features, 2 classes.",
        "Model mlp, 2,050 parameters; SGD, momentum 0.9, learning rate",
        "Plan: 6 steps, each with a record's chance of 0.5; clip norm 1.5, noise multiplier",
        "more noise in the first steps, for DP ε ≤ 3 at δ = 0.001.",
        "Public: The number of training records, N = 172, is public.",
        "Public: Means and scales of 'age', 'hours', taken from the training records, are declared public.",
        "NOT PRIVATE",
        "test accuracy: ",
        "accuracy of a constant answer: ",
        "DP ε = ",
        "one record: each witness",
        "everybody: DP ε ",  # fifty witnesses cannot speak for nine in ten people
        "By group: each has too few witnesses to speak for",
        "Do not publish them",
        "share of people",
        "report.html",
        "bayesdp predict",
    ):
        assert words in shown, words
    report = read(tmp_path / "run" / "report.json")
    dp, alike, _ = report.guarantees
    assert alike.won == "dp"
    outsiders, members = (sum(counts) for counts in report.groups.witnesses.values())
    assert members == 20
    assert 8 <= outsiders <= 60  # 30 on average: a coin for each record
    assert 2.9 < dp.epsilon <= 3
    # One line for each snapshot, every ε under its name.
    lines = result.err.splitlines()
    assert len(lines) == 6
    assert lines[2].startswith("step 3 of 6; test accuracy: ")
    for words in (
        "test loss: ",
        "DP ε ≤ ",
        "Bayesian ε no better than for everybody: DP ε ",
        "per-instance ε ",
        " left",
    ):
        assert words in lines[2]
    assert " left" not in lines[-1]


def test_the_folder_knows_what_was_asked(run, table):
    job = SGDJob.read(RunFolder(run))
    assert (job.data.name, job.data.target, job.data.drop) == (str(table), "rich", ("wage",))
    assert (job.watch, job.seed, job.delta, job.steps) == ((7, 200), 0, 1e-4, 8)
    report = read(run / "report.json")
    assert report.settings.optimizer == "Adam, learning rate 0.3"
    assert len(report.records.epsilon) == 27 + 20 + 2
    assert "reproducible, not private" in (run / "report.html").read_text(encoding="utf-8")


def test_without_clipping_nothing_is_promised_to_everybody(cli, table, tmp_path):
    plan = ("--clip-norm", "none", "--noise-std", 40, "--steps", 4, "--engine", "rdp", "--seed", 0)
    share = ("--holdout", 40, "--coverage", 0.6, "--out", tmp_path / "run", "--json")
    found = cli("train", table, "--target", "rich", *plan, *share).json
    assert found[0]["epsilon"] == "inf"
    assert 0 < found[2]["epsilon"] < math.inf


def test_a_budget_stops_early(cli, table, tmp_path):
    plan = ("--noise-multiplier", 3, "--steps", 8, "--engine", "rdp", "--holdout", 0, "--members", 0, "--seed", 0)
    (whole,) = cli("train", table, "--target", "rich", *plan, "--out", tmp_path / "whole", "--json").json
    budget = 0.7 * whole["epsilon"]
    out = tmp_path / "short"
    (short,) = cli("train", table, "--target", "rich", *plan, "--epsilon-budget", budget, "--out", out, "--json").json
    assert 0 < short["epsilon"] <= budget
    assert json.loads((out / "plan.json").read_text())["steps"] < 8


def test_training_learns(run, wages):
    metrics = read(run / "report.json").metrics
    assert metrics["test accuracy"] > metrics["accuracy of a constant answer"] + 0.1
    metrics = read(wages / "report.json").metrics
    # In the unit of the wage: the noise of the table itself is 1,000.
    assert 500 < metrics["test RMSE"] < 0.7 * metrics["RMSE of a constant answer"]


def test_a_run_that_diverges_is_still_accounted(cli, table, tmp_path):
    plan = ("--noise-multiplier", 3, "--steps", 3, "--engine", "rdp", "--holdout", 0, "--members", 5, "--seed", 0)
    out = ("--learning-rate", 1e25, "--out", tmp_path / "run", *SPLIT)
    result = cli("train", table, "--target", "wage", *plan, *out)
    assert result.code == 0
    assert "test loss: inf" in result.out
    report = read(tmp_path / "run" / "report.json")
    assert report.metrics["test loss"] is None
    assert 0 < report.guarantees[0].epsilon < math.inf


# --- report -----------------------------------------------------------------------------------------------------


def test_report_says_it_again_and_writes_the_page_anew(cli, run, tmp_path):
    page = (run / "report.html").read_bytes()
    (run / "report.html").write_text("spoilt")
    result = cli("report", run)
    assert (run / "report.html").read_bytes() == page
    for words in ("DP ε = ", "Fine print of the Bayesian ε", "test accuracy: ", "NOT PRIVATE", "report.html"):
        assert words in result.out
    other = tmp_path / "other.html"
    assert cli("report", run, "--out", other, "--json").json == [
        one.to_dict() for one in read(run / "report.json").guarantees
    ]
    assert other.read_bytes() == page
    for name in ("other.html", "other.txt"):
        assert (
            "Expected --out to be a new file that ends in .html"
            in cli("report", run, "--out", tmp_path / name).refused()
        )


# --- predict ----------------------------------------------------------------------------------------------------


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_predictions_are_the_models(cli, run, table):
    result = cli("predict", run, table)
    assert (result.code, result.err) == (0, "")
    found = rows(result.out)
    columns = people()
    assert len(found) == 240
    right = np.mean([one["prediction"] == truth for one, truth in zip(found, columns["rich"], strict=True)])
    assert right > 0.8
    weights = storage.read_arrays(run / "params.npz")
    kernel, bias = (weights[next(name for name in weights if part in name)] for part in ("kernel", "bias"))
    recipe = json.loads((run / "model.json").read_text())["recipe"]["columns"]
    for place in (0, 17, 239):
        features = []
        for column in recipe:
            cell = columns[column["name"]][place]
            if column["kind"] == "numeric":
                features.append((float(cell) - column["mean"]) / column["scale"])
            else:
                features += [float(cell == category) for category in column["categories"]]
        logits = np.array(features) @ kernel + bias
        share = 1 / (1 + math.exp(logits[0] - logits[1]))
        assert float(found[place]["probability of yes"]) == pytest.approx(share, abs=2e-5)
        assert float(found[place]["probability of no"]) == pytest.approx(1 - share, abs=2e-5)


def test_predictions_are_in_the_targets_own_unit(cli, wages, table):
    found = np.array([float(one["prediction"]) for one in rows(cli("predict", wages, table).out)])
    truth = np.array([float(cell) for cell in people()["wage"]])
    assert abs(found.mean() - truth.mean()) < 2000
    assert np.corrcoef(found, truth)[0, 1] > 0.8


def test_every_format_and_order_of_columns_gives_the_same(cli, run, table, tmp_path):
    expected = cli("predict", run, table).out
    columns = {name: people()[name] for name in ("trade", "hours", "age")}
    plain = write_people(tmp_path / "features.csv", columns)
    assert cli("predict", run, plain).out == expected
    typed = {"trade": columns["trade"], **{name: [float(c) for c in columns[name]] for name in ("hours", "age")}}
    parquet.write_table(pyarrow.table(typed), tmp_path / "features.parquet")
    assert cli("predict", run, tmp_path / "features.parquet").out == expected
    result = cli("predict", run, plain, "--out", tmp_path / "predictions.csv")
    assert "240 predictions" in result.out
    assert (tmp_path / "predictions.csv").read_text() == expected


def test_predict_refuses_what_does_not_fit(cli, run, table, tmp_path):
    columns = people()
    lacking = write_people(tmp_path / "lacking.csv", {name: columns[name] for name in ("age", "trade")})
    refused = cli("predict", run, lacking).refused()
    assert "to have the columns that the model was trained on: 'age', 'hours', 'trade', got none called 'hours'" in (
        refused
    )
    assert f"DATA='{lacking}'" in refused
    (tmp_path / "there.csv").write_text("kept")
    assert "Expected --out to be a new file" in cli("predict", run, table, "--out", tmp_path / "there.csv").refused()
    assert (tmp_path / "there.csv").read_text() == "kept"
    assert "Expected RUN to be a folder with a finished run" in cli("predict", tmp_path, table).refused()
    assert "to be a readable file" in cli("predict", run, tmp_path / "nowhere.csv").refused()


def test_metrics_are_shown_as_what_they_are():
    assert terminal.metric("test accuracy", 0.9145) == "test accuracy: 91.5 %"
    assert terminal.metric("test RMSE", 1234.5) == "test RMSE: 1234"


def test_a_declared_number_of_records_takes_the_place_of_the_true_one(cli, table, tmp_path):
    plan = ("--noise-multiplier", 4, "--steps", 4, "--batch-size", 81, "--engine", "rdp", "--holdout", 30)
    result = cli(
        *("train", table, "--target", "rich", "--drop", "wage", "--model", "logistic", *plan, "--seed", 1),
        *("--members", 20, "--num-records", 240, *SPLIT, "--out", tmp_path / "run"),
    )
    assert result.code == 0, result.err
    assert "number of training records" not in result.out
    report = read(tmp_path / "run" / "report.json")
    declared = 192 - 30  # four in five, less those held out
    assert report.settings.records == declared
    assert report.settings.sampling_rate == 0.5
    for promise in report.guarantees:
        assert f"{declared}, was declared independently of the data" in " ".join(promise.assumptions)


# --- budgets that people chose ------------------------------------------------------------------------------------


def test_a_column_of_budgets_is_kept_to_and_not_learned_from(cli, tmp_path):
    columns = people()
    columns["choice"] = ["0.5" if i % 3 == 0 else "4" for i in range(len(columns["age"]))]
    table = write_people(tmp_path / "choices.csv", columns)
    plan = ("--target", "rich", "--drop", "wage", "--noise-multiplier", 1, "--steps", 30, "--engine", "rdp")
    few = ("--holdout", 30, "--members", 20, "--seed", 0, "--delta", 1e-4, "--sampling-rate", 0.3)
    chosen = (*plan, *few, "--budget-column", "choice")
    found = cli("train", table, *chosen, "--out", tmp_path / "run", "--json").json
    assert next(one for one in found if one["notion"] == "dp")["epsilon"] <= 4
    ready = prepare(SGDJob.read(RunFolder(tmp_path / "run")))
    assert not any("choice" in name for name in ready.data.feature_names)
    wanted = [0.5 if place % 3 == 0 else 4.0 for place in ready.data.places[: len(ready.data.x)]]
    assert list(ready.plan.filter.epsilon) == wanted
    assert "choice" in cli("train", table, *plan, *few, "--budget-column", "chioce", "--out", tmp_path / "x").refused()
    both = cli("train", table, *chosen, "--filter-epsilon", 1, "--out", tmp_path / "x").refused()
    assert "left out beside" in both


def test_noise_is_on_a_lattice_unless_asked_otherwise_and_every_guarantee_names_it_at_the_delta_that_was_asked_for(
    table, tmp_path, capsys
):
    given = ("--target", "rich", "--drop", "wage", "--delta", 1e-4, "--scale", "none")
    assert called("train", table, *given, *QUICK, "--json", "--out", tmp_path / "run") == 0
    promises = json.loads(capsys.readouterr().out)
    assert {one["delta"] for one in promises} == {1e-4}
    assert all(0 < one["delta_split"]["noise"] < 1e-7 for one in promises)
    assert all(any("ChaCha20" in sentence for sentence in one["assumptions"]) for one in promises)
    assert called("report", tmp_path / "run", "--json") == 0  # ε is derived again from the plan, at the same δ
    assert {one["delta"] for one in json.loads(capsys.readouterr().out)} == {1e-4}
    assert called("train", table, *given, "--noise", "loud", *QUICK, "--out", tmp_path / "loud") == 2
    assert "--noise=" in capsys.readouterr().err
    unclipped = ("--clip-norm", "none", "--noise-std", 5, "--steps", 4, "--engine", "rdp", *SPLIT)
    assert called("train", table, *given, "--noise", "lattice", *unclipped, "--out", tmp_path / "none") == 2
    assert "float" in capsys.readouterr().err
    assert SGDJob.read(RunFolder(tmp_path / "run")).noise_kind == "lattice"


def test_what_cannot_be_on_a_lattice_is_labelled(table, tmp_path, capsys):
    given = ("--target", "rich", "--drop", "wage", "--delta", 1e-4, "--scale", "none")
    unclipped = ("--clip-norm", "none", "--noise-std", 5, "--steps", 4, "--engine", "rdp", *SPLIT)
    assert called("train", table, *given, *unclipped, "--json", "--out", tmp_path / "run") == 0
    promises = json.loads(capsys.readouterr().out)
    assert all(any("float32" in sentence for sentence in one["assumptions"]) for one in promises)
