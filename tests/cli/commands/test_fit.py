"""`fit`, and `report`, `predict` and `resume` of what it leaves: a posterior under DP, or samples of a secret one."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from people_files import people, write_people

from bayesdp import Guarantee, WorstCaseAccountant
from bayesdp.cli import main
from bayesdp.jobs import resume
from bayesdp.jobs.posterior_job import PosteriorJob
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.report import read

FIT = (
    *("--target", "rich", "--drop", "wage", "--drop", "trade", "--model", "logistic", "--watch", "7,200"),
    *("--noise-multiplier", 8, "--sampling-rate", 1, "--steps", 100, "--engine", "rdp", "--delta", 1e-4),
    *("--holdout", 30, "--members", 20, "--seed", 0, "--non-private-too"),
)
QUICK = ("--noise-multiplier", 0.01, "--sampling-rate", 1, "--steps", 60, "--no-noise-aware", "--engine", "rdp")
ALONE = (*QUICK, "--holdout", 0, "--members", 0, "--seed", 0)


@dataclass(frozen=True)
class Made:
    folder: Path
    out: str
    err: str

    @property
    def words(self) -> str:
        return " ".join(self.out.split())


def made(folder: Path, *arguments: object) -> Made:
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as left, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main([str(argument) for argument in ("fit", *arguments, "--out", folder)])
    assert not left.value.code, err.getvalue()
    return Made(folder, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    columns = people()
    rng = np.random.default_rng(1)
    age = (np.array(columns["age"], float) - 48) / 18
    columns["visits"] = [str(count) for count in rng.poisson(np.exp(0.5 + 0.6 * age))]
    write_people(folder / "people.csv", people())
    write_people(folder / "visits.csv", {name: columns[name] for name in ("age", "hours", "trade", "visits")})
    middle = np.where(rng.random(240) < 0.4, -2, 2)
    blobs = {"p": middle + 0.3 * rng.normal(size=240), "q": -middle + 0.3 * rng.normal(size=240)}
    write_people(folder / "blobs.csv", {name: [f"{cell:.4f}" for cell in cells] for name, cells in blobs.items()})
    return folder


@pytest.fixture(scope="module")
def run(shelf, tmp_path_factory):
    """A posterior under DP, with everything that a person might ask for."""
    return made(tmp_path_factory.mktemp("runs") / "run", shelf / "people.csv", *FIT)


@pytest.fixture(scope="module")
def sampled(shelf, tmp_path_factory):
    """Samples of a secret posterior."""
    plan = ("--method", "posterior-vi", "--samples", 4, "--steps", 40, "--sampling-rate", 0.5, "--coverage", 0.5)
    more = ("--drop", "wage", "--drop", "trade", "--holdout", 50, "--members", 22, "--watch", 7, "--delta", 1e-4)
    return made(
        tmp_path_factory.mktemp("runs") / "sampled",
        *(shelf / "people.csv", "--target", "rich", "--model", "logistic", *plan, *more),
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def features(run: Path) -> np.ndarray:
    """Age and hours of everybody by the folder's own recipe, and a 1: written anew."""
    recipe = json.loads((run / "model.json").read_text())["recipe"]["columns"]
    table = people()
    parts = [(np.array(table[one["name"]], float) - one["mean"]) / one["scale"] for one in recipe]
    return np.column_stack([*parts, np.ones(240)])


# --- a posterior under DP ---------------------------------------------------------------------------------------


def test_what_is_promised_is_what_was_done(run):
    saved = read(run.folder / "report.json").guarantees
    assert [one.notion for one in saved] == ["dp", "bdp", "per-instance"]
    everybody = WorstCaseAccountant(engine="rdp")
    everybody.step(noise_multiplier=8, sampling_rate=1, steps=100)
    assert saved[0].epsilon == everybody.epsilon(1e-4 - saved[0].delta_split["noise"])


def test_everything_is_said(run):
    for said in (
        "people: 151 records to train on, 27 held out as outsiders, 62 to test on; 2 features, 2 classes.",
        "Model logistic, 3 parameters; mean-field guide.",
        "Plan: 100 steps, each with a record's chance of 1; clip norm",
        "intervals widened by the noise",
        "The report will also hold the posterior without clipping and noise, which is NOT PRIVATE.",
        "Public: Means and scales of 'age', 'hours', taken from the training records, are declared public.",
        "Leave --seed out for a private one.",
        "Posterior: mean and central 90 % interval (NOT PRIVATE: seeded)",
        "NOT PRIVATE: mean",
        "test accuracy: ",
        "test log predictive density: ",
        "accuracy of a constant answer: ",
        "DP ε = ",
        "one record: each of ",
        "posterior.npz (NOT PRIVATE: not for publication)",  # it is seeded
        "report.html",
    ):
        assert said in run.words, said
    assert "bayesdp predict" in run.words
    assert "bayesdp instance" not in run.words  # which is for train
    table = [line.split()[0] for line in run.out.splitlines() if line.startswith(("age", "hours", "intercept"))]
    assert table == ["age", "hours", "intercept"]
    lines = run.err.splitlines()
    assert len(lines) == 20
    assert lines[2].startswith("step 15 of 100; test accuracy: ")
    assert "DP ε ≤ " in lines[2]


def test_the_report_holds_the_posterior_that_was_written(run):
    report = read(run.folder / "report.json")
    with np.load(run.folder / "posterior.npz") as stored:
        mean, std = stored["mean"], np.sqrt(np.diagonal(stored["cov"]))
    assert report.posterior.names == ("age", "hours", "intercept")
    assert report.posterior.mean == pytest.approx(mean, rel=1e-5)
    half = 1.6448536 * std
    assert report.posterior.low == pytest.approx(mean - half, rel=1e-4)
    assert report.posterior.high == pytest.approx(mean + half, rel=1e-4)
    # Age and hours make people rich, as the table was made.
    assert min(report.posterior.non_private.mean[:2]) > 0.3
    assert report.metrics["test accuracy"] > report.metrics["accuracy of a constant answer"]
    assert len(report.records.epsilon) == len(report.records.correct) == 27 + 20 + 2
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    for words in ("What was learned", "Holds a posterior that is not private.", "Reproducible, not private."):
        assert words in page
    assert "NOT PRIVATE: without clipping and noise" in page
    assert ' sees <span data-key="report/released" data-round="text">the posterior</span>' in page


def test_what_may_be_published_holds_nothing_that_is_not_private(run):
    with np.load(run.folder / "posterior.npz") as stored:
        assert sorted(stored.files) == ["cov", "labels", "mean"]
    assert not (run.folder / "checkpoint.npz").exists()
    plain = read(run.folder / "report.json").posterior.non_private.mean
    for name in ("model.json", "plan.json"):
        assert str(plain[0])[:8] not in (run.folder / name).read_text()


def test_predictions_are_averages_over_the_posterior(cli, run, shelf):
    found = rows(cli("predict", run.folder, shelf / "people.csv").out)
    with np.load(run.folder / "posterior.npz") as stored:
        weights = np.random.default_rng(5).multivariate_normal(stored["mean"], stored["cov"], 20_000)
    expected = (1 / (1 + np.exp(-features(run.folder) @ weights.T))).mean(axis=1)
    got = np.array([float(one["probability of yes"]) for one in found])
    assert got == pytest.approx(expected, abs=0.02)
    assert [one["prediction"] == "yes" for one in found] == (got > 0.5).tolist()
    assert cli("predict", run.folder, shelf / "people.csv").out == cli("predict", run.folder, shelf / "people.csv").out


def test_report_says_it_again(cli, run):
    page = (run.folder / "report.html").read_bytes()
    (run.folder / "report.html").write_text("spoilt")
    result = cli("report", run.folder)
    assert (run.folder / "report.html").read_bytes() == page
    for words in (
        "Private posterior of a logistic regression on people",
        "NOT PRIVATE: mean",
        "Fine print of the DP ε",
    ):
        assert words in result.out


def test_an_interrupted_fit_goes_on_to_the_same_posterior(cli, run, shelf, tmp_path):
    folder = tmp_path / "halfway"
    ready = resume.prepare(PosteriorJob.read(RunFolder(run.folder)))

    def power_cut(so_far):
        if so_far.steps >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready.fit(folder, power_cut)
    assert "It holds an unfinished run" in cli("fit", shelf / "people.csv", *FIT, "--out", folder).refused()
    assert "to be a folder with a finished run" in cli("predict", folder, shelf / "people.csv").refused()
    found = cli("resume", folder, "--json").json
    assert [Guarantee.from_dict(one) for one in found] == list(read(run.folder / "report.json").guarantees)
    assert (folder / "posterior.npz").read_bytes() == (run.folder / "posterior.npz").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in run.folder.iterdir())
    assert "This one has finished" in cli("resume", folder).refused()


# --- samples of a secret one ------------------------------------------------------------------------------------


def test_only_samples_and_their_account_are_written(sampled):
    assert sorted(path.name for path in sampled.folder.iterdir()) == [
        *("accountants.json", "accountants.npz", "checksums.json", "data.json", "job.json", "ledger.jsonl"),
        *("ledger.jsonl.head", "model.json", "plan.json", "report.html", "report.json", "samples.npz"),
    ]
    with np.load(sampled.folder / "samples.npz") as stored:
        assert stored["draws"].shape == (4, 3)
        draws = stored["draws"]
    report = read(sampled.folder / "report.json")
    # What the report shows is a function of the samples.
    assert report.posterior.mean == pytest.approx(draws.mean(axis=0), rel=1e-5)
    assert report.posterior.non_private is None
    assert json.loads((sampled.folder / "accountants.json").read_text(encoding="utf-8"))
    assert math.isinf(report.guarantees[0].epsilon)
    assert [one.notion for one in report.guarantees] == ["dp", "bdp", "per-instance"]


def test_the_report_speaks_of_whoever_sees_the_samples(sampled):
    page = (sampled.folder / "report.html").read_text(encoding="utf-8")
    assert ' sees <span data-key="report/released" data-round="text">the samples</span>' in page
    assert "the trained model" not in page
    for words in (
        "without noise; 4 samples are released and nothing else",
        "Nothing is promised to everybody (DP): that takes --radius and --scales.",
        "nothing else of the posterior was written",
        "one record: number 7",
    ):
        assert words in sampled.words, words


def test_samples_predict(cli, sampled, shelf):
    found = rows(cli("predict", sampled.folder, shelf / "people.csv").out)
    with np.load(sampled.folder / "samples.npz") as stored:
        expected = (1 / (1 + np.exp(-features(sampled.folder) @ stored["draws"].T))).mean(axis=1)
    assert [float(one["probability of yes"]) for one in found] == pytest.approx(expected, abs=2e-5)
    refused = cli("resume", sampled.folder).refused()
    assert "Expected RUN to hold an unfinished run" in refused
    assert "noisy steps" in cli("unlearn", sampled.folder, "--record", 1, "--beta", 1).refused()


def test_a_ball_and_a_range_give_samples_a_dp_epsilon(shelf, tmp_path):
    plan = ("--method", "posterior-vi", "--samples", 2, "--steps", 5, "--sampling-rate", 1, "--holdout", 0)
    box = ("--epsilon", 3, "--radius", 1, "--scales", "0.5,1", "--members", 0, "--json")
    told = made(tmp_path / "box", shelf / "people.csv", "--target", "rich", "--model", "logistic", *plan, *box).out
    (dp,) = json.loads(told)
    assert 2.9 < dp["epsilon"] <= 3
    assert PosteriorJob.read(RunFolder(tmp_path / "box")).extra_std > 0


# --- the other models -------------------------------------------------------------------------------------------


def test_a_linear_model_is_told_by_the_names_of_its_columns(cli, shelf, tmp_path):
    arguments = (shelf / "people.csv", "--target", "wage", "--drop", "rich", "--drop", "trade", "--model", "linear")
    made(tmp_path / "run", *arguments, *ALONE, "--steps", 150, "--learning-rate", 0.5)
    report = read(tmp_path / "run" / "report.json")
    assert report.posterior.names == ("age", "hours", "intercept", "noise")
    table = people()
    x = np.column_stack([np.array(table[name], float) for name in ("age", "hours")])
    y = np.array(table["wage"], float)
    slopes = np.linalg.lstsq(np.column_stack([x, np.ones(240)]), y, rcond=None)[0][:2] * x.std(axis=0) / y.std()
    assert report.posterior.mean[:2] == pytest.approx(slopes, abs=0.08)
    assert 0 < report.posterior.mean[3] < 1
    found = np.array([float(one["prediction"]) for one in rows(cli("predict", tmp_path / "run", arguments[0]).out)])
    assert np.corrcoef(found, y)[0, 1] > 0.8
    assert abs(found.mean() - y.mean()) < 0.3 * y.std()
    assert report.metrics["test RMSE"] < 0.8 * report.metrics["RMSE of a constant answer"]


def test_counts_stay_counts(cli, shelf, tmp_path):
    more = ("--target", "visits", "--drop", "hours", "--clip-norm", 20, "--learning-rate", 0.3)
    told = made(tmp_path / "run", shelf / "visits.csv", *more, "--model", "poisson", *ALONE)
    report = read(tmp_path / "run" / "report.json")
    assert report.posterior.mean[0] == pytest.approx(0.6, abs=0.15)
    assert "target" not in "".join(report.preprocessing)
    assert "test RMSE: " in told.out
    assert "categories and the intercept are told apart by the prior alone" in told.words
    found = [float(one["prediction"]) for one in rows(cli("predict", tmp_path / "run", shelf / "visits.csv").out)]
    assert min(found) > 0


def test_groups_share_what_they_know_and_a_new_one_is_the_prior(cli, shelf, tmp_path):
    more = ("--target", "rich", "--drop", "wage", "--drop", "hours", "--group", "trade", "--clip-norm", 5)
    made(tmp_path / "run", shelf / "people.csv", "--model", "hierarchical", *more, *ALONE, "--learning-rate", 1)
    names = read(tmp_path / "run" / "report.json").posterior.names
    assert names == ("age", "trade=clerk", "trade=cook", "trade=nurse", "trade: other", "spread of trade")
    others = {"age": ["48"] * 3, "trade": ["nurse", "cook", "pilot"]}
    new = write_people(tmp_path / "new.csv", others)
    nurse, cook, pilot = (float(one["probability of yes"]) for one in rows(cli("predict", tmp_path / "run", new).out))
    assert nurse > pilot > cook or nurse > cook  # nurses are richer; of pilots nothing is known
    assert 0 < pilot < 1


def test_a_mixture_needs_no_target(cli, shelf, tmp_path):
    more = ("--components", 2, "--clip-norm", 20, "--learning-rate", 0.05)
    told = made(tmp_path / "run", shelf / "blobs.csv", "--model", "mixture", *more, *ALONE)
    assert "2 features, nothing to predict" in told.words
    report = read(tmp_path / "run" / "report.json")
    assert report.posterior.names[:2] == ("weight 1", "weight 2")
    assert sum(report.posterior.mean[:2]) == pytest.approx(1, abs=1e-6)
    assert list(report.metrics) == ["test log predictive density"]
    new = write_people(tmp_path / "new.csv", {"p": ["2", "9"], "q": ["-2", "9"]})
    near, far = (float(one["log density"]) for one in rows(cli("predict", tmp_path / "run", new).out))
    assert near > far + 5


def test_a_model_of_ones_own_goes_into_the_folder(cli, shelf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("WIDTH = 2.0\n")
    (tmp_path / "my_model.py").write_text(
        "import numpyro\nfrom beside import WIDTH\nfrom numpyro import distributions as dist\n\n"
        "def model(x, y):\n"
        "    b = numpyro.sample('b', dist.Normal(0, WIDTH))\n"
        "    w = numpyro.sample('w', dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))\n"
        "    with numpyro.plate('records', x.shape[0]):\n"
        "        numpyro.sample('y', dist.Bernoulli(logits=b + x @ w), obs=y)\n"
    )
    more = ("--target", "rich", "--drop", "wage", "--drop", "trade", "--model", "my_model.py:model")
    told = made(tmp_path / "run", shelf / "people.csv", *more, *ALONE)
    assert "Model my_model.py:model, 3 parameters" in told.words
    report = read(tmp_path / "run" / "report.json")
    assert report.posterior.names == ("b", "w[0]", "w[1]")
    assert report.metrics["test accuracy"] > 0.6
    (tmp_path / "my_model.py").unlink()
    (tmp_path / "run" / "beside.py").write_text("WIDTH = 2.0\n")
    refused = cli("predict", tmp_path / "run", shelf / "people.csv").refused()
    assert "Expected --trust-code to say that " in refused
    assert "lines of Python would run with all your rights, and call 'model'" in refused
    found = cli("predict", tmp_path / "run", shelf / "people.csv", "--trust-code")
    assert len(rows(found.out)) == 240
    (tmp_path / "run" / "model.py").write_text("raise SystemExit(7)\n")
    assert "model.py' to have the checksum" in cli("predict", tmp_path / "run", "any.csv", "--trust-code").refused()
