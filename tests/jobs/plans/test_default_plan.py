"""Jobs settled for a goal: by design or by columns, nobody held out of few records, and words on what was learned."""

import dataclasses

import numpy as np
import pytest

from bayesdp.data import Dataset, ImageRecipe, TableRecipe
from bayesdp.data.recipe import Numeric, OneHot
from bayesdp.jobs import defaults
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.plans import default_plan
from bayesdp.jobs.prepared_sgd import nothing_learned, prepare
from bayesdp.jobs.sgd_job import SGDJob


def made(recipe, shape, classes=("a", "b")):
    x = np.zeros((30, *shape), np.float32)
    y = (np.arange(30) % 2).astype(np.int32)
    return Dataset(name="made", task="classification", x=x, y=y, x_test=x[:1], y_test=y[:1], classes=classes,
                   recipe=recipe)  # fmt: skip


def test_lengths_are_those_of_design_or_of_columns():
    scattered = default_plan.shape_of(made(ImageRecipe((28, 28, 1), 255.0, "scattering"), (8, 8, 81)), 500)
    assert (scattered.norm, scattered.length) == (3.0, pytest.approx(10**0.5))
    pixels = default_plan.shape_of(made(ImageRecipe((8, 8, 1), 16.0), (8, 8, 1)), 500)
    assert (pixels.norm, pixels.length) == (None, pytest.approx(17**0.5))
    columns = TableRecipe((Numeric("a", 0.0, 1.0), OneHot("b", ("x", "y", "z"))))
    assert default_plan.shape_of(made(columns, (4,)), 500).length == pytest.approx(3**0.5)  # not √5: one of three is 1


def test_photographs_are_trained_for_accuracy_unless_asked_otherwise():
    photographs = made(ImageRecipe((32, 32, 3), 255.0, "scattering"), (8, 8, 115))
    assert default_plan.goal_for("balanced", photographs) == "accuracy"
    assert default_plan.goal_for("typical", photographs) == "typical"
    assert default_plan.goal_for("balanced", made(ImageRecipe((8, 8, 1), 16.0), (8, 8, 1))) == "balanced"


def test_the_schedule_typical_is_the_goal_typical():
    cancer = DataSource(name="breast-cancer")
    assert SGDJob(data=cancer, epsilon=1.0, noise_schedule="typical").goal == "typical"
    assert SGDJob(data=cancer, epsilon=1.0).goal == "balanced"
    assert SGDJob(data=cancer, epsilon=1.0, noise_schedule="typical", goal="accuracy").goal == "accuracy"


def test_networks_and_adam_keep_what_they_had():
    data = DataSource(name="breast-cancer").load()
    for change in ({"model": "mlp"}, {"optimizer": "adam"}):
        job = SGDJob(data=DataSource(name="breast-cancer"), epsilon=2.0, engine="rdp", **change).settled(data)
        assert (job.optimizer, job.noise_schedule, job.falling) == ("adam", "constant", 0.0)
        assert job.clip_norm == defaults.clip_norm(455)
        assert not job.of_goal


def test_of_few_records_nobody_is_held_out_and_it_is_said(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{'yes' if a + 0.1 * b > 0 else 'no'}" for a, b in rng.normal(size=(200, 2))]
    (tmp_path / "few.csv").write_text("\n".join(["a,y", *lines]))
    own = DataSource(name=str(tmp_path / "few.csv"), target="y")
    job = SGDJob(data=own, epsilon=1.0, steps=4, engine="rdp", seed=0)
    ready = prepare(job)
    assert (len(ready.data.x), ready.holdout, ready.tests) == (200, None, 0)
    assert {defaults.MEMBERS_ALONE, defaults.UNTESTED} <= set(ready.plan_in_words)
    finished = ready.begin(tmp_path / "run")(None)
    assert finished.metrics == {}
    assert any("nothing is said about outsiders" in line for line in finished.report.guarantees[1].assumptions)
    asked = prepare(dataclasses.replace(job, holdout=40, data=dataclasses.replace(own, test_share=0.2)))
    assert asked.holdout is not None
    assert asked.tests
    assert not asked.few_in_words


def test_the_declared_number_decides_whether_there_are_few():
    assert defaults.few(None) == defaults.FEW
    assert defaults.few(10_000) == 0
    assert defaults.few(100) > 10**9


def test_what_is_no_better_than_a_constant_answer_is_said():
    assert nothing_learned({"test accuracy": 0.5, "accuracy of a constant answer": 0.5})
    assert not nothing_learned({"test accuracy": 0.6, "accuracy of a constant answer": 0.5})
    assert nothing_learned({"test RMSE": 2.0, "RMSE of a constant answer": 1.5})
    assert not nothing_learned({"test RMSE": 1.0, "RMSE of a constant answer": 1.5})
    assert not nothing_learned({})
