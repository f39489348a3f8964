"""Jobs: plain values that settle what was left open, survive a folder, and are taken up again wherever they stopped."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from bayesdp import storage
from bayesdp.errors import InputError
from bayesdp.jobs import defaults
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.prepared_sgd import prepare
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop import checkpoint
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder

CANCER = DataSource(name="breast-cancer")
SHORT = SGDJob(
    data=CANCER,
    model="logistic",
    noise_multiplier=4.0,
    sampling_rate=0.5,
    steps=6,
    engine="rdp",
    holdout=40,
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
    own = DataSource(name="people.csv", target="rich", drop=("name",), categories=("zip",), test_share=0.1)
    for job in (SHORT, SGDJob(data=own, epsilon=1.0), SGDJob(data=CANCER, clip_norm="none", noise_std=3.0)):
        job.write(RunFolder(tmp_path))
        assert SGDJob.read(RunFolder(tmp_path)) == job
    assert (tmp_path / "job.json").stat().st_mode & 0o077 == 0  # says who was held out


def test_paths_hold_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").touch()
    assert DataSource.given("people.csv").name == str(tmp_path / "people.csv")
    assert DataSource.given("digits", data_dir="here").data_dir == str(tmp_path / "here")
    assert DataSource.given("digits").name == "digits"


def test_what_is_left_open_is_chosen_from_sizes_alone():
    data = CANCER.load()
    job = SGDJob(data=CANCER, epsilon=2.0, engine="rdp").settled(data)
    assert job.settled(data) == job
    # Other values of the same shapes give the same plan.
    rng = np.random.default_rng(0)
    other = dataclasses.replace(
        data, x=rng.normal(size=data.x.shape).astype(np.float32), y=rng.integers(0, 2, len(data.y)).astype(np.int32)
    )
    assert dataclasses.replace(job, draw=0) == dataclasses.replace(
        SGDJob(data=CANCER, epsilon=2.0, engine="rdp").settled(other), draw=0
    )
    assert job.delta == 1e-5
    assert 0 < job.sampling_rate <= 1
    assert job.plan().calibrate(2.0).noise_multiplier == job.noise_multiplier


@pytest.mark.parametrize("records", [10, 300, 1500, 50_000, 99_999, 100_000, 100_001, 10**7])
def test_defaults_fit_every_number_of_records(records):
    assert defaults.delta(records) < 1 / records
    assert math.log10(defaults.delta(records)) == pytest.approx(round(math.log10(defaults.delta(records))))
    assert 0 < defaults.holdout(records) <= records / 4
    assert 0 < defaults.sampling_rate(records) <= 1
    assert defaults.members(records - defaults.holdout(records)) <= records


def test_more_are_held_out_where_there_are_many():
    assert [defaults.holdout(n) for n in (400, 1500, 20_000, 60_000, 200_000, 10**7)] == [
        100,
        200,
        2000,
        3000,
        10_000,
        10_000,
    ]


def test_features_have_more_witnesses_unless_accuracy_is_all_that_counts():
    source = DataSource.given("digits", features="scattering")
    for goal, held, members in (("typical", 5000, 5000), ("balanced", 5000, 5000), ("accuracy", 3000, 2000)):
        job = SGDJob(data=source, model="logistic", epsilon=1.0, goal=goal)
        assert job.usual_holdout(60_000) == held
        assert job._usual_members(60_000 - held) == pytest.approx(members, rel=0.1)
    assert SGDJob(data=source, model="mlp", epsilon=1.0).usual_holdout(60_000) == 3000


def test_few_records_all_have_a_part_in_the_histograms_that_are_paid_for():
    """Nobody is held out of them, so nobody may be left out of the counts either: a quarter once was."""
    job = SGDJob(data=DataSource.given("own.csv", target="y"), epsilon=1.0)
    assert job.payment(300, 0.0).held_out == 0
    assert job.payment(2000, 0.0).held_out == pytest.approx(defaults.holdout(2000) / 2000)


def test_models_suit_the_kind_of_records():
    assert defaults.model((30,)) == "logistic"
    assert defaults.model((8, 8, 1)) == "mlp"
    assert defaults.model((28, 28, 1)) == "lenet5"
    assert defaults.model((8, 8, 81), "scattering") == "logistic"


def test_too_few_witnesses_are_admitted():
    ready = prepare(SHORT)
    assert "% of people" in ready.too_few
    assert not prepare(dataclasses.replace(SHORT, holdout=140, members=140)).too_few
    assert not prepare(dataclasses.replace(SHORT, holdout=0, members=0)).too_few


def test_batches_and_epochs_are_other_words_for_rate_and_steps():
    data = CANCER.load()
    job = dataclasses.replace(SHORT, sampling_rate=None, steps=None, batch_size=83, epochs=10).settled(data)
    assert job.sampling_rate == 83 / (455 - 40)
    assert job.steps == 50


def test_optimizers_say_what_they_are():
    adam = dataclasses.replace(SHORT, optimizer="adam")
    assert adam.settled(CANCER.load()).optimizer_in_words == "Adam, learning rate 0.03"
    sgd = dataclasses.replace(SHORT, optimizer="sgd", learning_rate=0.5, momentum=0.8)
    assert sgd.settled(CANCER.load()).optimizer_in_words == (
        "SGD, momentum 0.8, learning rate 0.5, less where there is more noise, falling to 0 over the last 60 % of the "
        "steps"
    )
    plain = dataclasses.replace(sgd, noise_schedule="constant", falling=0.0)
    assert plain.settled(CANCER.load()).optimizer_in_words == "SGD, momentum 0.8, learning rate 0.5"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "forest"}, "Expected model to be one of"),
        ({"optimizer": "lamb"}, "optimizer"),
        ({"noise_schedule": "wild"}, "noise_schedule"),
        ({"momentum": 0.5, "optimizer": "adam"}, "Expected momentum to be left out for optimizer='adam'"),
        ({"optimizer": "sgd", "momentum": 1.0}, "momentum"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"batch_size": 5}, "Expected batch_size to be left out beside sampling_rate=0.5"),
        ({"epochs": 5}, "Expected epochs to be left out beside steps=6"),
        ({"watch": (0,)}, "counted from 1"),
        ({"noise_multiplier": None}, "Expected epsilon .* or noise_multiplier, got neither"),
        ({"noise_std": 1.0}, "Expected noise_std to be left out with a clip norm"),
        ({"clip_norm": "none"}, "Expected noise_std to be given"),
        ({"clip_norm": "none", "noise_std": 1.0}, "Expected noise_multiplier to be left out with clip_norm='none'"),
        ({"holdout": 1.5}, "holdout"),
        ({"seed": -1}, "seed"),
    ],
)
def test_jobs_that_cannot_be(change, said):
    with pytest.raises(InputError, match=said):
        dataclasses.replace(SHORT, **change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"holdout": 455}, "Expected holdout to be below 455"),
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
    with pytest.raises(
        InputError, match=r"readable JSON file|format of .*job\.json to be 'bayesdp/job'|version of .* to be 2.*Another"
    ):
        SGDJob.read(RunFolder(tmp_path))
    storage.write_tagged(tmp_path / "job.json", "bayesdp/job", 2, {"data": {"colour": 1}}, checked=True)
    with pytest.raises(InputError, match=r"Expected job\.json to describe a job"):
        SGDJob.read(RunFolder(tmp_path))


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
    assert len(ready.holdout[1]) + len(ready.data.x) == 455
    assert 20 < len(ready.holdout[1]) < 60
    trained = {row.tobytes() for row in ready.data.x}
    assert not any(row.tobytes() in trained for row in ready.holdout[0])


TABLE_ROWS = 400


def _table(path, rows=TABLE_ROWS):
    rng = np.random.default_rng(0)
    age, hours = rng.normal(size=(2, 1000)).round(3)
    lines = [f"{age[i]},{hours[i]},{'yes' if age[i] + hours[i] > 0 else 'no'}" for i in range(rows)]
    path.write_text("\n".join(["age,hours,rich", *lines]))
    return DataSource(name=str(path), target="rich", scale="none")


def _sides(ready):
    """The places of records to train on and to test on; the others were held out."""
    return [set(part.tolist()) for part in np.split(ready.data.places, [len(ready.data.x)])]


@pytest.mark.parametrize("seed", [None, 3])
def test_a_row_more_moves_nobody_else(tmp_path, seed):
    """Neither between training and test nor into the holdout, where the number of records is declared (H18)."""
    sources = [_table(tmp_path / f"{rows}.csv", rows) for rows in (TABLE_ROWS, TABLE_ROWS + 1)]
    one = dataclasses.replace(SHORT, data=sources[0], watch=(), seed=seed, draw=None, num_records=500)
    few, more = (prepare(dataclasses.replace(one, data=source)) for source in sources)
    assert [side - {TABLE_ROWS} for side in _sides(more)] == _sides(few)
    held = (part.holdout.x[: len(few.holdout.x)] for part in (few, more))
    np.testing.assert_array_equal(*held)
    # And nothing else of the plan depends on how many there are.
    assert dataclasses.replace(few.job, data=CANCER) == dataclasses.replace(more.job, data=CANCER)
    assert few.plan.num_records == round(0.8 * 500) - 40
    assert not any("number of training records" in words for words in few.public)


@pytest.mark.parametrize("seed", [None, 3])
def test_who_comes_back_finds_everybody_where_they_were(tmp_path, seed):
    job = dataclasses.replace(SHORT, data=_table(tmp_path / "own.csv"), watch=(), seed=seed, draw=None)
    ready, folder = prepare(job), RunFolder.make(tmp_path / "run")
    ready.job.write(folder)
    again = prepare(SGDJob.read(folder))
    np.testing.assert_array_equal(ready.data.places, again.data.places)
    np.testing.assert_array_equal(ready.holdout.x, again.holdout.x)
    assert folder.job.stat().st_mode & 0o077 == 0  # who knows the number knows who was trained on
    if seed is None:
        assert not np.array_equal(prepare(dataclasses.replace(job, draw=None)).data.places, ready.data.places)


def test_what_is_declared_decides_on_all_that_depends_on_a_number():
    data = CANCER.load()
    free = {"sampling_rate": None, "steps": None, "holdout": None, "members": None, "delta": None}
    wide = dataclasses.replace(SHORT, **free, num_records=40_000, batch_size=380).settled(data)
    assert (wide.holdout, wide.expected_records, wide.members) == (2000, 38_000, 2000)
    assert wide.sampling_rate == 0.01
    assert wide.plan().num_records == 38_000
    assert dataclasses.replace(SHORT, **free).settled(data).plan().num_records is None


def test_no_seed_no_pattern():
    one, other = (prepare(dataclasses.replace(SHORT, model="mlp", seed=None, draw=None)) for _ in range(2))
    assert not np.array_equal(one.holdout[0], other.holdout[0])
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
        "checksums.json",
        "ledger.jsonl",
        "ledger.jsonl.head",
    }  # small tallies need no arrays
    assert RunFolder(folder).finished


class Interruption(Exception):
    pass


def interrupted(ready, folder, monkeypatch, where):
    """Stop a run: "first" before anything came out, "middle" at a snapshot, "save" when all is done but not written."""

    def stop(run):
        if where == "middle" and run.steps == 3:
            raise Interruption

    with monkeypatch.context() as patch:
        if where == "first":
            patch.setattr(checkpoint, "write", lambda *_: (_ for _ in ()).throw(Interruption))
        if where == "save":
            patch.setattr(Run, "write", lambda *_, **__: (_ for _ in ()).throw(Interruption))
        with pytest.raises(Interruption):
            ready.fit(folder, stop)
    assert not RunFolder(folder).finished


@pytest.mark.parametrize("where", ["first", "middle", "save"])
def test_wherever_it_stopped_it_comes_to_the_same_end(ready, whole, tmp_path, monkeypatch, where):
    interrupted(ready, tmp_path / "run", monkeypatch, where)
    with pytest.raises(InputError, match="unfinished run"):
        RunFolder(tmp_path / "run").check_free()
    again = prepare(SGDJob.read(RunFolder(tmp_path / "run")))
    assert again.job == ready.job
    run = again.resume(tmp_path / "run")(None).result
    assert same(run.params, whole[1].params)
    assert run.guarantees == whole[1].guarantees
    assert run.snapshots == whole[1].snapshots
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
    RunFolder(tmp_path / "empty").check_free()


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
    x = np.concatenate([ready.holdout[0], ready.data.x[whole[1].members], ready.watch[0]])
    y = np.concatenate([ready.holdout[1], ready.data.y[whole[1].members], ready.watch[1]])
    outputs = np.asarray(ready.model.loss().model.apply(whole[1].params, x))
    assert report.records.correct == tuple((outputs.argmax(1) == y).tolist())
    assert report.progress.data == "the 114 test records"
