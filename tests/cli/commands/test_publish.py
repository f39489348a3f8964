"""From a table to a published bundle that others verify and use: train → publish → verify → predict."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from people_files import people, write_people

from bayesdp import storage
from bayesdp.cli import main
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.publish import card, publishing
from bayesdp.publish.bundle import MANIFEST
from bayesdp.report import read

PLAN = (
    "--test-share",
    0.2,
    "--steps",
    4,
    "--sampling-rate",
    0.5,
    "--engine",
    "rdp",
    "--holdout",
    30,
    "--members",
    20,
    "--model",
    "logistic",
)


def called(*arguments) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("data") / "people.csv", people(300))


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    more = ("--target", "rich", "--drop", "wage", "--epsilon", 3, "--delta", 1e-4, "--watch", "7,200")
    paid = ("--metrics-share", 0.2, "--class-weights", "yes=2")
    assert called("train", table, *more, *PLAN, *paid, "--out", folder) == 0
    return folder


@pytest.fixture(scope="module")
def bundle(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    assert called("publish", run, "--out", folder, "--intended-use", "A test.", "--contact", "nobody") == 0
    return folder


def test_what_is_in_it(run, bundle):
    names = {"model.json", "params.npz", "metrics.json", "release.json", "index.html"}
    assert {one.name for one in bundle.iterdir()} == names | {"MODEL_CARD.md", "LEFT_OUT.md", MANIFEST}
    for name in ("model.json", "params.npz", "metrics.json"):
        assert (bundle / name).read_bytes() == (run / name).read_bytes()
    release = json.loads((bundle / "release.json").read_text())
    report = read(run / "report.json")
    assert release["dp"]["epsilon"] == report.guarantees[0].epsilon <= 3
    assert release["paid"]["epsilon"] == pytest.approx(0.6)
    assert release["model"] == "logistic regression, trained with the class weights no 1, yes 2"
    card = (bundle / "MODEL_CARD.md").read_text()
    assert "A test." in card
    assert "test accuracy, with noise" in card


def test_nothing_in_it_was_not_paid_for_or_declared(run, bundle):
    report = read(run / "report.json")
    texts = "".join((bundle / name).read_text() for name in ("index.html", "MODEL_CARD.md", "release.json"))
    texts = re.sub(r"<style>.*?</style>|<[^>]*>", " ", texts, flags=re.DOTALL)
    assert not re.search(rf"(?<![\w.]){report.settings.records}(?![\w.])", texts)
    for private in (*report.watched.epsilon, report.metrics["test log-loss"], report.metrics["test AUC (of yes)"]):
        assert f"{private:.6f}" not in texts
    for words in ("Bayesian ε =", "per-instance ε =", "Not recorded", "report.json", "Sensitive"):
        assert words not in texts


def test_it_is_verified_and_used(cli, bundle, table):
    result = cli("verify", bundle)
    assert result.code == 0
    assert "8 files are as they were written" in result.out
    (found,) = cli("verify", bundle, "--json").json
    assert found["recomputed"] == pytest.approx(found["epsilon"])
    lines = cli("predict", bundle, table).out.splitlines()
    assert lines[0] == "prediction,probability of no,probability of yes"
    assert len(lines) == 301


def test_it_is_verified_without_jax(bundle):
    code = f"""
import sys
from bayesdp.cli import main
try:
    main(["verify", {str(bundle)!r}])
except SystemExit as left:
    assert not left.code
print([name for name in ("jax", "jaxlib", "optax", "numpyro") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_one_character_in_any_file_is_noticed(cli, bundle, tmp_path):
    names = sorted(one.name for one in bundle.iterdir())
    assert len(names) == 8
    for name in names:
        for place in (0.0, 0.5, 0.999):
            shutil.copytree(bundle, tmp_path / "copy", dirs_exist_ok=True)
            content = bytearray((bundle / name).read_bytes())
            content[int(place * len(content))] ^= 1
            (tmp_path / "copy" / name).write_bytes(bytes(content))
            assert "bayesdp: Expected" in cli("verify", tmp_path / "copy").refused(), (name, place)


def test_a_runs_own_epsilon_is_verified_too(cli, run, tmp_path):
    assert "own folder" in cli("verify", run).out
    shutil.copytree(run, tmp_path / "copy")
    text = (run / "report.json").read_text()
    stated = read(run / "report.json").guarantees[0].epsilon
    (tmp_path / "copy" / "report.json").write_text(text.replace(repr(stated), "0.5"))
    assert "checksum" in cli("verify", tmp_path / "copy").refused()
    RunFolder(tmp_path / "copy").seal(tmp_path / "copy" / "report.json")
    assert "follow from the plan" in cli("verify", tmp_path / "copy").refused()


@pytest.mark.parametrize("where", ["number", "sentence"])
def test_a_number_that_slipped_in_is_noticed(cli, run, tmp_path, monkeypatch, where):
    # A watched record's ε may be the DP one, which is public; a run of its own noise never has the same log-loss twice.
    loss = read(run / "report.json").metrics["test log-loss"]
    taken = publishing.release_of

    def careless(*arguments, **named):
        release = taken(*arguments, **named)
        if where == "number":
            return replace(release, facts={**release.facts, "worst": loss})
        return replace(release, declared=(*release.declared, f"The worst of them has {loss:.8g}."))

    monkeypatch.setattr(publishing, "release_of", careless)
    assert "release.json holds" in cli("publish", run, "--out", tmp_path / "bundle").refused()
    assert not (tmp_path / "bundle").exists()


def test_a_page_that_is_not_made_from_the_release_is_noticed(cli, run, tmp_path, monkeypatch):
    written, calls = card.model_card, []

    def careless(release):
        calls.append(release)
        return written(release) + ("\nWorst: 0.618\n" if len(calls) == 1 else "")

    monkeypatch.setattr(card, "model_card", careless)
    assert "made from release.json alone" in cli("publish", run, "--out", tmp_path / "bundle").refused()
    assert not (tmp_path / "bundle").exists()


def test_numbers_that_meet_private_ones_by_chance_are_no_leak(run, tmp_path):
    """A page prints a hundred numbers of three digits that follow from the plan; a large run has any three digits."""
    shutil.copytree(run, tmp_path / "large")
    storage.write_arrays(tmp_path / "large" / "norms.npz", {"norms": np.linspace(0, 10, 5001)})
    publishing.publish(tmp_path / "large", tmp_path / "bundle")


def test_what_may_not_be_published_is_refused(cli, run, tmp_path):
    seeded = tmp_path / "seeded"
    shutil.copytree(run, seeded)
    text = (run / "report.json").read_text()
    (seeded / "report.json").write_text(text.replace('"seeded": false', '"seeded": true'))
    RunFolder(seeded).seal(seeded / "report.json")
    assert "seed" in cli("publish", seeded, "--out", tmp_path / "bundle").refused()
    assert "new or empty" in cli("publish", run, "--out", run).refused()
    assert "folder of a run" in cli("publish", tmp_path, "--out", tmp_path / "bundle").refused()
    (seeded / "report.html").unlink()
    assert "finished" in cli("publish", seeded, "--out", tmp_path / "bundle").refused()
    assert not (tmp_path / "bundle").exists()


def test_predictions_about_the_runs_own_people_can_be_refused(cli, run, bundle, table, tmp_path):
    columns = people(300)
    some = write_people(tmp_path / "some.csv", {name: cells[5:8] for name, cells in columns.items()})
    said = cli("predict", run, some, "--public").refused()
    assert "3 of 3 are" in said
    others = {name: cells[:3] for name, cells in people(40, seed=9).items()} | {"age": ["17.5", "81.5", "16.25"]}
    strangers = write_people(tmp_path / "others.csv", others)
    assert len(cli("predict", run, strangers, "--public").out.splitlines()) == 4
    assert "own folder" in cli("predict", bundle, strangers, "--public").refused()


def test_a_threshold_moves_the_answer(cli, run, table):
    def answers(*more):
        return [line.split(",") for line in cli("predict", run, table, *more).out.splitlines()[1:]]

    assert {one[0] for one in answers("--threshold", 0)} == {"yes"}
    assert all((float(one[2]) >= 0.7) == (one[0] == "yes") for one in answers("--threshold", 0.7))
    assert [one[0] for one in answers("--threshold", 0.5)] == [one[0] for one in answers()]
    assert "--threshold" in cli("predict", run, table, "--threshold", 1.5).refused()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--noise-multiplier", 3, "--metrics-share", 0.1), "--metrics-share"),
        (("--epsilon", 3, "--metrics-share", 0.9), "<= 0.5"),
        (("--epsilon", 3, "--metrics-share", 0.1, "--test-share", 0), "kept for testing"),
        (("--epsilon", 3, "--class-weights", "maybe=2"), "The classes are no, yes."),
    ],
)
def test_shares_and_weights_that_make_no_sense_are_refused(cli, table, tmp_path, options, words):
    assert words in cli("train", table, "--target", "rich", *PLAN, *options, "--out", tmp_path / "run").refused()
    assert not (tmp_path / "run").exists()


def test_numbers_have_metrics_and_a_name_of_their_own(cli, table, tmp_path):
    folder = tmp_path / "wages"
    plan = ("--target", "wage", "--drop", "rich", "--epsilon", 3, "--delta", 1e-4, "--metrics-share", 0.5, *PLAN)
    result = cli("train", table, *plan, "--adjacency", "replace-one", "--out", folder)
    assert result.code == 0
    report = read(folder / "report.json")
    assert report.title == "Private training of a linear model on people"
    assert {"test R²", "test RMSE"} <= set(report.metrics)
    assert report.confusion is None
    assert report.guarantees[0].epsilon <= 1.5  # the other half is the metrics'
    assert report.paid.kind == "errors"
    assert "threshold" in cli("predict", folder, table, "--threshold", 0.5).refused()
    out = cli("publish", folder, "--out", tmp_path / "bundle").out
    assert "DP ε = " in out
    release = json.loads((tmp_path / "bundle" / "release.json").read_text())
    assert release["dp"]["epsilon"] + release["paid"]["epsilon"] <= 3
