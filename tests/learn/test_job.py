"""Jobs: plain values that settle what was left open, survive a folder, and are taken up again wherever they stopped."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

from bayesdp.errors import InputError
from bayesdp.learn import checkpoint, defaults
from bayesdp.learn.job import Job, Source
from bayesdp.learn.prepared import check_free, finished, prepare
from bayesdp.learn.run import Run

CANCER = Source(name="breast-cancer")
SHORT = Job(
    data=CANCER,
    model="logistic",
    noise_multiplier=4.0,
    sampling_rate=0.5,
    steps=6,
    engine="rdp",
    audit=40,
    members=30,
    watch=(20, 569),
    seed=3,
)


@pytest.fixture(scope="module")
def ready():
    return prepare(SHORT)


@pytest.fixture(scope="module")
def whole(ready, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, ready.fit(folder)


def same(one, other):
    return all(bool((a == b).all()) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


# --- the description --------------------------------------------------------------------------------------------


def test_a_job_survives_its_file(tmp_path):
    own = Source(name="people.csv", target="rich", drop=("name",), categories=("zip",), test_share=0.1)
    for job in (SHORT, Job(data=own, epsilon=1.0), Job(data=CANCER, clip_norm="none", noise_std=3.0)):
        job.write(tmp_path)
        assert Job.read(tmp_path) == job
    assert (tmp_path / "job.json").stat().st_mode & 0o077 == 0  # says who was held out


def test_paths_hold_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").touch()
    assert Source.given("people.csv").name == str(tmp_path / "people.csv")
    assert Source.given("digits", data_dir="here").data_dir == str(tmp_path / "here")
    assert Source.given("digits").name == "digits"


def test_what_is_left_open_is_chosen_from_sizes_alone():
    data = CANCER.load()
    job = Job(data=CANCER, epsilon=2.0, engine="rdp").settled(data)
    assert job.settled(data) == job
    # Other values of the same shapes give the same plan.
    rng = np.random.default_rng(0)
    other = dataclasses.replace(
        data, x=rng.normal(size=data.x.shape).astype(np.float32), y=rng.integers(0, 2, len(data.y)).astype(np.int32)
    )
    assert dataclasses.replace(job, draw=0) == dataclasses.replace(
        Job(data=CANCER, epsilon=2.0, engine="rdp").settled(other), draw=0
    )
    assert job.delta == 1e-5
    assert 0 < job.sampling_rate <= 1
    assert job.plan().calibrate(2.0).noise_multiplier == job.noise_multiplier


@pytest.mark.parametrize("records", [10, 300, 1500, 50_000, 99_999, 100_000, 100_001, 10**7])
def test_defaults_fit_every_number_of_records(records):
    assert defaults.delta(records) < 1 / records
    assert math.log10(defaults.delta(records)) == pytest.approx(round(math.log10(defaults.delta(records))))
    assert 0 < defaults.audit(records) <= records / 4
    assert 0 < defaults.sampling_rate(records) <= 1
    assert defaults.members(records - defaults.audit(records)) <= records


def test_models_suit_the_kind_of_records():
    assert defaults.model((30,)) == "logistic"
    assert defaults.model((8, 8, 1)) == "mlp"
    assert defaults.model((28, 28, 1)) == "lenet5"
    assert defaults.model((8, 8, 81), "scattering") == "logistic"


def test_too_few_witnesses_are_admitted():
    ready = prepare(SHORT)
    assert "at most 61.6 % of people" in ready.too_few
    assert not prepare(dataclasses.replace(SHORT, audit=140, members=140)).too_few
    assert not prepare(dataclasses.replace(SHORT, audit=0, members=0)).too_few


def test_batches_and_epochs_are_other_words_for_rate_and_steps():
    data = CANCER.load()
    job = dataclasses.replace(SHORT, sampling_rate=None, steps=None, batch_size=83, epochs=10).settled(data)
    assert job.sampling_rate == 83 / (455 - 40)
    assert job.steps == 50


def test_optimizers_say_what_they_are():
    assert SHORT.settled(CANCER.load()).optimizer_in_words == "Adam, learning rate 0.03"
    sgd = dataclasses.replace(SHORT, optimizer="sgd", learning_rate=0.5, momentum=0.8)
    assert sgd.settled(CANCER.load()).optimizer_in_words == "SGD, momentum 0.8, learning rate 0.5"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "forest"}, "Expected model to be one of"),
        ({"optimizer": "lamb"}, "optimizer"),
        ({"noise_schedule": "wild"}, "noise_schedule"),
        ({"momentum": 0.5}, "Expected momentum to be left out for optimizer='adam'"),
        ({"optimizer": "sgd", "momentum": 1.0}, "momentum"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"batch_size": 5}, "Expected batch_size to be left out beside sampling_rate=0.5"),
        ({"epochs": 5}, "Expected epochs to be left out beside steps=6"),
        ({"watch": (0,)}, "counted from 1"),
        ({"noise_multiplier": None}, "Expected epsilon .* or noise_multiplier, got neither"),
        ({"noise_std": 1.0}, "Expected noise_std to be left out with a clip norm"),
        ({"clip_norm": "none"}, "Expected noise_std to be given"),
        ({"clip_norm": "none", "noise_std": 1.0}, "Expected noise_multiplier to be left out with clip_norm='none'"),
        ({"audit": 1.5}, "audit"),
        ({"seed": -1}, "seed"),
    ],
)
def test_jobs_that_cannot_be(change, said):
    with pytest.raises(InputError, match=said):
        dataclasses.replace(SHORT, **change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"audit": 455}, "Expected audit to be below 455"),
        ({"members": 416}, "Expected members to be at most 415"),
        ({"sampling_rate": None, "batch_size": 416}, "Expected batch_size to be at most 415"),
        ({"delta": 0.0025}, "below one over the number of training records"),
        ({"delta": 0.0}, "delta"),
        (
            {"clip_norm": "none", "noise_std": 9.0, "noise_multiplier": None},
            "Expected coverage to be at most 0.6165, the share that so few witnesses can speak for",
        ),
        ({"watch": (570,)}, "There are 569 records"),
    ],
)
def test_jobs_that_these_records_cannot_do(change, said):
    with pytest.raises(InputError, match=said):
        prepare(dataclasses.replace(SHORT, **change))


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "bayesdp/job", "version": 9}', '{"format": "other"}'])
def test_damaged_jobs_are_refused(tmp_path, content):
    (tmp_path / "job.json").write_text(content)
    with pytest.raises(InputError, match=r"readable JSON file|to be a JSON file of format|to be of version 1"):
        Job.read(tmp_path)
    (tmp_path / "job.json").write_text(json.dumps({"format": "bayesdp/job", "version": 1, "data": {"colour": 1}}))
    with pytest.raises(InputError, match=r"Expected job\.json to describe a job"):
        Job.read(tmp_path)


# --- the records ------------------------------------------------------------------------------------------------


def test_watched_records_are_those_of_the_source(ready):
    from sklearn.datasets import load_breast_cancer

    raw = load_breast_cancer()
    first = np.array([column.mean for column in ready.data.recipe.columns])
    scale = np.array([column.scale for column in ready.data.recipe.columns])
    for row, number in enumerate(SHORT.watch):
        np.testing.assert_allclose(ready.watch[0][row], (raw.data[number - 1] - first) / scale, rtol=1e-4, atol=1e-4)
        assert ready.watch[1][row] == raw.target[number - 1]


def test_outsiders_are_not_trained_on(ready):
    assert len(ready.audit[1]) == 40
    assert len(ready.data.x) == 415
    trained = {row.tobytes() for row in ready.data.x}
    assert not any(row.tobytes() in trained for row in ready.audit[0])


def test_no_seed_no_pattern():
    one, other = (prepare(dataclasses.replace(SHORT, seed=None, draw=None)) for _ in range(2))
    assert not np.array_equal(one.audit[0], other.audit[0])
    assert not same(one.params, other.params)


# --- the folder -------------------------------------------------------------------------------------------------


def test_a_finished_folder_holds_what_design_names_and_no_key(whole):
    folder, _ = whole
    names = {path.name for path in folder.iterdir()}
    results = {"plan.json", "params.npz", "accountants.json", "report.json", "report.html"}
    assert names - {"accountants.npz"} == results | {
        "job.json",
        "data.json",
        "model.json",
    }  # small tallies need no arrays
    assert finished(folder)


class Interruption(Exception):
    pass


def interrupted(ready, folder, monkeypatch, where):
    """Stop a run: "first" before anything came out, "middle" at a look, "save" when all is done but not written."""

    def stop(run):
        if where == "middle" and run.steps == 3:
            raise Interruption

    with monkeypatch.context() as patch:
        if where == "first":
            patch.setattr(checkpoint, "write", lambda *_: (_ for _ in ()).throw(Interruption))
        if where == "save":
            patch.setattr(Run, "save", lambda *_, **__: (_ for _ in ()).throw(Interruption))
        with pytest.raises(Interruption):
            ready.fit(folder, stop)
    assert not finished(folder)


@pytest.mark.parametrize("where", ["first", "middle", "save"])
def test_wherever_it_stopped_it_comes_to_the_same_end(ready, whole, tmp_path, monkeypatch, where):
    interrupted(ready, tmp_path / "run", monkeypatch, where)
    with pytest.raises(InputError, match="unfinished run"):
        check_free(tmp_path / "run")
    again = prepare(Job.read(tmp_path / "run"))
    assert again.job == ready.job
    run = again.resume(tmp_path / "run")
    assert same(run.params, whole[1].params)
    assert run.guarantees == whole[1].guarantees
    assert run.looks == whole[1].looks
    assert (tmp_path / "run" / "params.npz").read_bytes() == (whole[0] / "params.npz").read_bytes()
    with pytest.raises(InputError, match="This one has finished"):
        again.resume(tmp_path / "run")


def test_other_data_are_not_gone_on_with(ready, tmp_path, monkeypatch):
    interrupted(ready, tmp_path / "run", monkeypatch, "middle")
    changed = dataclasses.replace(ready, data=dataclasses.replace(ready.data, x=ready.data.x + 1))
    with pytest.raises(InputError, match="same data"):
        changed.resume(tmp_path / "run")


def test_a_folder_with_anything_in_it_is_left_alone(ready, whole, tmp_path):
    (tmp_path / "file").write_text("kept")
    for folder, said in ((tmp_path, "other files"), (tmp_path / "file", "to be a folder"), (whole[0], "another run")):
        before = sorted(path.name for path in tmp_path.iterdir())
        with pytest.raises(InputError, match=said):
            ready.fit(folder)
        assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / "empty").mkdir()
    check_free(tmp_path / "empty")


def test_a_model_that_does_not_fit_leaves_no_folder(tmp_path):
    for name in ("lenet5", "cnn"):
        with pytest.raises(InputError, match=f"Expected model to be one for a table, got model='{name}'"):
            prepare(dataclasses.replace(SHORT, model=name)).fit(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_report_says_what_was_public_and_what_was_achieved(ready, whole):
    report = whole[1].to_report(**ready.details(whole[1]))
    assert report.seeded
    assert report.preprocessing == ready.data.public
    assert 0.5 < report.metrics["test accuracy"] <= 1
    assert report.metrics["accuracy of a constant answer"] == pytest.approx(67 / 114)
    assert len(report.records.correct) == 40 + 30 + 2
    x = np.concatenate([ready.audit[0], ready.data.x[whole[1].members], ready.watch[0]])
    y = np.concatenate([ready.audit[1], ready.data.y[whole[1].members], ready.watch[1]])
    outputs = np.asarray(ready.predictor.loss().model.apply(whole[1].params, x))
    assert report.records.correct == tuple((outputs.argmax(1) == y).tolist())
    assert report.progress.data == "the 114 test records"
