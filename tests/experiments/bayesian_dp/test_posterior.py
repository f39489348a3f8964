"""S1's variational inference redone on a small made-up table: rows, accountings, pictures, and the lines of Table I."""

import csv
import math
from typing import Any

import jax
import numpy as np
import pytest
from pictures import drawn

from bayesdp import convert
from bayesdp.accountant.gaussian_release import Softening
from bayesdp.experiments.bayesian_dp import posterior, table1
from bayesdp.experiments.bayesian_dp.posterior import ABALONE, ADULT, DELTA, Setting
from bayesdp.experiments.common.abalone_adult import Split
from bayesdp.experiments.common.style import pick
from bayesdp.experiments.run import reproduce, write_csv
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI

SMALL = Setting(
    sampling_rate=0.2,
    steps=60,
    printed={},
    epsilons=(1.0,),
    repeats=2,
    witnesses=140,
    one_step_witnesses=10,
    guides=("mean-field",),
)


@pytest.fixture(scope="module")
def split() -> Split:
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(900), rng.normal(size=(900, 2))]).astype(np.float32)
    y = (rng.uniform(size=900) < 1 / (1 + np.exp(-x @ [0.5, 2.0, -1.0]))).astype(np.int32)
    return Split(x[:600], y[:600], x[600:], y[600:], ())


@pytest.fixture(scope="module")
def rows(split: Split) -> list[dict[str, Any]]:
    return posterior.compute(split, SMALL, seed=0)


def one(rows: list[dict[str, Any]], **where: Any) -> dict[str, Any]:
    (row,) = pick(rows, **where)
    return row


def test_every_way_of_accounting_is_there(rows: list[dict[str, Any]]) -> None:
    assert {(row["way"], row["curve"]) for row in rows} == {
        ("paper", "one-step recipe"),
        ("sound", "tempered"),
        ("sound", "widened"),
        ("dp", "no bounds"),
        ("dp", "in a public box"),
        ("dp", "DPVI"),
        ("none", "no privacy"),
    }
    assert {row["repeats"] for row in rows} == {2}
    for row in rows:
        assert row["attacker"] == convert.attacker_success(row["epsilon"], 0 if row["way"] == "paper" else DELTA)
    assert math.isinf(one(rows, curve="no bounds")["epsilon"])
    assert one(rows, curve="no privacy")["accuracy"] > 0.7


def test_softer_samples_tell_less(rows: list[dict[str, Any]]) -> None:
    for curve in ("tempered", "widened"):
        for coverage in posterior.COVERAGES:
            found = sorted(pick(rows, curve=curve, coverage=coverage), key=lambda row: row["level"])
            epsilons = [row["epsilon"] for row in found]
            assert epsilons == sorted(epsilons, reverse=True)
            assert epsilons[-1] < epsilons[0] / 2
    for row in pick(rows, way="sound", coverage=0.5):
        wide = one(rows, way="sound", coverage=0.9, curve=row["curve"], level=row["level"])
        assert row["epsilon"] <= wide["epsilon"]


def test_a_run_and_its_account_are_those_of_the_plan(split: Split, rows: list[dict[str, Any]]) -> None:
    """The first repeat, through the learner's own account of the same trajectories."""
    (_, mean, spread, crowd) = next(posterior._trainings(split, SMALL, "mean-field", 0))
    soft = Softening(extra_std=0.1)
    people = posterior._people(*soft(mean, spread), crowd)
    assert {name: len(book.costs) for name, book in people[0.9].sides.items()} == {"absent": 140, "present": 140}
    guarantee = people[0.9].guarantee(DELTA)
    assert (guarantee.orientation, guarantee.coverage, guarantee.failure) == ("both", 0.9, 1e-6)
    row = one(rows, curve="widened", level=0.1, coverage=0.9)
    assert abs(row["epsilon"] - guarantee.epsilon) <= row["epsilon_se"] * (1 + 1e-9)  # of two numbers, half their gap
    plan = PosteriorVI(sampling_rate=0.2, steps=60, samples=10)
    with jax.enable_x64(True):
        _, model = posterior._read(split)
        ours = SMALL.program(model, posterior.Guide("mean-field", 3))
        theirs = plan._program(model, ours.guide, len(split.x))
    for name in ("sampling_rate", "steps", "initial_scale", "num_particles", "averaged", "forgetful"):
        assert getattr(ours, name) == getattr(theirs, name)


def test_the_box_keeps_its_epsilon_and_dpvi_its_own(rows: list[dict[str, Any]]) -> None:
    for row in pick(rows, curve="in a public box"):
        soft = dict(posterior._softenings(3))["dp", "in a public box", row["level"]]
        costs = 10 * soft.worst_cost(3, posterior.ORDERS)
        assert convert.epsilon(costs, posterior.ORDERS, DELTA) <= row["epsilon"] * (1 + 1e-9)
        assert row["epsilon_se"] == 0
    assert 0.95 < one(rows, curve="DPVI")["epsilon"] <= 1.0


def test_the_recipe_says_little_more_than_its_largest_order(rows: list[dict[str, Any]]) -> None:
    """Where steps are small the printed ε is log(1/δ)/32, whatever the record did: below the sound one (ERR 8)."""
    recipe = one(rows, way="paper")["epsilon"]
    assert math.log(1 / DELTA) / 32 < recipe
    assert recipe < one(rows, curve="tempered", level=1.0, coverage=0.9)["epsilon"]


def test_predictions_are_averaged_over_the_samples(split: Split) -> None:
    draws = np.array([[0.5, 2.0, -1.0], [0.5, 2.0, -1.0], [-60.0, 0.0, 0.0]])
    chance = (2 / (1 + np.exp(-split.x_test @ draws[0])) + 0) / 3
    assert posterior.accuracy(split, draws) == np.mean((chance > 0.5) == split.y_test)


def test_pictures_and_the_lines_of_table_one(rows: list[dict[str, Any]], tmp_path: Any) -> None:
    for name in ("bdp-abalone", "bdp-adult"):
        assert drawn(name, [*rows, *({**row, "run": "full-rank"} for row in pick(rows, run="mean-field"))]).legends
    (row,) = pick(rows, curve="DPVI")
    write_csv(tmp_path / "bdp-adult.csv", [*rows, {**row, "level": 0.2, "epsilon": 0.2}])
    with reproduce("bdp-table1", tmp_path, full=True)[0].open(encoding="utf-8") as file:  # it has one size
        table = list(csv.DictReader(file))
    assert {line["dataset"] for line in table} == {"Adult"}
    assert [line["line"] for line in table[3:]] == list(table1.POSTERIOR_LINES)
    printed = {line["line"]: float(line["attacker"]) for line in table[:3]}
    assert printed["S1 Table I: DP"] == pytest.approx(0.6225, abs=5e-5)
    assert printed["S1 Table I: BDP"] == pytest.approx(0.5399, abs=5e-5)
    sound = next(line for line in table if line["line"] == "ten samples, BDP sound: 90 % of people")
    assert float(sound["epsilon"]) == pytest.approx(one(rows, curve="tempered", level=1.0, coverage=0.9)["epsilon"])


def test_the_papers_settings() -> None:
    assert (ABALONE.sampling_rate, ABALONE.steps) == (0.05, 1000)
    assert (ADULT.sampling_rate, ADULT.steps) == (0.005, 2000)
    assert ABALONE.repeats == ADULT.repeats == 10
    assert convert.attacker_success(ABALONE.printed["dp"]) == pytest.approx(0.9995, abs=5e-5)
