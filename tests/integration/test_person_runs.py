"""`--person` from end to end: train, interrupt, resume, report, instance, unlearn and predict, all about people."""

import csv
import json
import os
import re

import numpy as np
import pytest
from people_files import visits, write_people
from report_browser import NUMBERS, TOO_WIDE, UNMARKED, missing
from report_samples import disagreement, lookup

from bayesdp import Guarantee
from bayesdp.cli import main
from bayesdp.jobs import resume
from bayesdp.jobs.posterior_job import PosteriorJob
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.report import read

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("compile_quickly")]

PEOPLE = ("--person", "patient", "--rows-per-person", 3)
PLAN = ("--noise-multiplier", 3, "--delta", 1e-3, "--steps", 6, "--engine", "rdp", "--holdout", 12, "--members", 20)
STAY = ("--target", "stay", "--drop", "days", *PEOPLE, "--watch", "p7,p3", *PLAN)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("data") / "visits.csv", visits())


def called(*arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert called("train", table, *STAY, "--keep-iterates", 1, "--out", folder) == 0
    return folder


def speaks_of_people(text):
    """No word about records but in the help on what comes next."""
    words = text.replace("(the model on further records)", "")
    assert not re.search(r"(?<![-/])\brecords?\b(?!\.html)", words), re.findall(r".{30}\brecords?\b.{30}", words)
    assert "people" in words


def test_all_that_is_said_is_about_people(cli, table, tmp_path):
    shown = cli("train", table, *STAY, "--seed", 0, "--out", tmp_path / "run")
    assert shown.code == 0
    speaks_of_people(" ".join(shown.out.split()))
    words = " ".join(shown.out.split())
    assert re.search(
        r"visits: \d+ people to train on with \d+ rows, \d+ held out as outsiders, \d+ rows to test on", words
    )
    assert "at most 3 rows are used" in words
    assert "Of the watched people the largest is shown, that of p" in words
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    job = SGDJob.read(RunFolder(tmp_path / "run"))
    assert plan["records"] < 60  # people
    assert (job.data.person, job.data.rows_per_person, plan["plan"]["unit"]) == ("patient", 3, "person")
    an_interrupted_run_goes_on_to_the_same_end(cli, tmp_path / "run", tmp_path / "half")


def an_interrupted_run_goes_on_to_the_same_end(cli, whole, half):
    ready = resume.prepare(SGDJob.read(RunFolder(whole)))

    def stop(so_far):
        if so_far.steps == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready.fit(half, progress=stop)
    promised = [Guarantee.from_dict(one) for one in cli("resume", half, "--json").json]
    assert promised == list(read(whole / "report.json").guarantees)
    assert {one.unit for one in promised} == {"person"}
    assert [one.notion for one in promised] == ["dp", "bdp", "per-instance"]
    ours, wanted = (np.load(folder / "params.npz") for folder in (half, whole))
    assert all((ours[name] == wanted[name]).all() for name in wanted.files)


def test_report_instance_and_unlearn(cli, run, tmp_path):
    speaks_of_people(" ".join(cli("report", run).out.split()))
    rows = cli("instance", run, "--json").json
    assert {one["id"] for one in rows} == {"p7", "p3"}
    told = cli("instance", run, "--records", "p3,p11,p12", "--out", tmp_path / "people.html")
    speaks_of_people(" ".join(told.out.split()))
    assert re.search(r"\bp11\b", told.out)
    assert "One who is like" in (tmp_path / "people.html").read_text()
    decision = cli("unlearn", run, "--record", _member(run), "--told-apart", 0.95, "--json").json
    assert decision["people"] == [_member(run)]
    again = cli("unlearn", run, "--record", _member(run)).refused()
    assert "to be people who were not forgotten yet" in again
    assert "which is nobody there" in cli("unlearn", run, "--record", "nobody").refused()
    assert "without --person" in cli("study", run, "--records", "1").refused()


def _member(run):
    """Somebody who was trained on."""
    prepared = resume.prepare(SGDJob.read(RunFolder(run)))
    return prepared.data.people.names[prepared.numbers[0] - 1]


def test_predictions_are_of_rows(cli, run, table):
    lines = list(csv.reader(cli("predict", run, table).out.splitlines()))
    assert len(lines) == 1 + len(visits()["stay"])
    assert lines[0] == ["prediction", "probability of no", "probability of yes"]


def test_a_posterior_of_people(cli, table, tmp_path):
    plan = ("--model", "linear", "--target", "days", "--drop", "stay", *PEOPLE, "--watch", "p7", *PLAN, "--seed", 0)
    shown = cli("fit", table, *plan, "--out", tmp_path / "fit")
    assert shown.code == 0, shown.err
    speaks_of_people(" ".join(shown.out.split()))
    assert {one.unit for one in read(tmp_path / "fit" / "report.json").guarantees} == {"person"}
    assert len(cli("predict", tmp_path / "fit", table).out.splitlines()) == 1 + len(visits()["stay"])
    assert PosteriorJob.read(RunFolder(tmp_path / "fit")).plan().unit == "person"


def test_a_network_on_images_of_people(cli, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.normal(size=(120, 8, 8)).astype(np.float32) + y[:, None, None]
    np.savez(tmp_path / "images.npz", x=x, y=y, who=np.arange(120) % 40)
    plan = ("--noise-multiplier", 3, "--delta", 1e-3, "--steps", 2, "--engine", "rdp", "--holdout", 0, "--members", 0)
    found = cli("train", tmp_path / "images.npz", "--person", "who", "--model", "cnn", *plan, "--out", tmp_path / "run")
    assert found.code == 0, found.err
    assert "people to train on" in found.out


REFUSED = {
    "at least 10 people in column 'ward', got 2": ("--person", "ward"),
    "Did you mean 'patient'?": ("--person", "patients"),
    "--rows-per-person to be a whole number >= 1": ("--person", "patient", "--rows-per-person", 0),
    "--rows-per-person to come with --person": ("--rows-per-person", 3),
    "There are 8 people to train on, and some must be left": (
        *PEOPLE,
        "--test-share",
        0.2,
        "--num-records",
        10,
        "--holdout",
        8,
    ),
    "to be below one over the number of people to train on": (*PEOPLE, "--delta", 0.1),
    "'p999', which is nobody there": (*PEOPLE, "--watch", "p999"),
    "--budget-column to be left out beside --person": (*PEOPLE, "--budget-column", "pulse"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_bad_input_is_one_clear_line_and_nothing_is_written(cli, table, tmp_path, words):
    plan = ("--target", "stay", "--drop", "days", "--noise-multiplier", 3, "--steps", 2)
    refused = cli("train", table, *plan, *REFUSED[words], "--out", tmp_path / "run").refused()
    assert words in refused
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(bool(missing()) and os.environ.get("BAYESDP_BROWSER") != "required", reason="no browser")
def test_the_page_in_a_browser(browser, run):
    browser.open(run / "report.html")
    assert browser.log() == []
    text = browser.run("return document.body.innerText")
    speaks_of_people(text)
    assert "any one person’s rows were used" in text
    contents = json.loads(browser.run("return document.getElementById('bayesdp-report').textContent"))
    for key, how, shown in browser.run(NUMBERS):
        problem = disagreement(shown, how, lookup(contents, key))
        assert not problem, f"{key} {problem}"
    assert browser.run(UNMARKED) == []
    browser.open(run / "report.html", width=360)
    assert browser.run(TOO_WIDE) == []
