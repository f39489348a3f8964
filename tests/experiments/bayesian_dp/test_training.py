"""S1's runs accounted as printed and soundly (J5, C6, C7, C19, H5), on digits."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from s1_problem import LAMBDAS, STEPS

import bayesdp as bd
from bayesdp import convert
from bayesdp.experiments.bayesian_dp import as_printed, training
from bayesdp.experiments.bayesian_dp.recipe import Recipe
from bayesdp.experiments.bayesian_dp.training import DELTA, Problem
from bayesdp.experiments.common.style import pick


def test_printed_costs_are_those_of_the_labelled_compositions(follow: Any) -> None:
    """The library's own "product" and "holder" with Student-t on the same 28 pairs."""
    pairs = np.concatenate([seen.pairs for seen in follow()]).astype(np.float64)
    for composition, exponent in (("product", 1), ("holder", STEPS)):
        accountant = bd.BayesianAccountant(
            composition=composition,
            estimator="student-t",
            orders=np.array(LAMBDAS) + 1.0,
            total_steps=STEPS,
            failure=as_printed.FAILURE,
        )
        total = np.zeros(len(LAMBDAS))
        for row in pairs:
            accountant.step(row, noise_std=0.1, sampling_rate=0.1)
            total += as_printed.bayesian_costs(row, 0.1, sampling_rate=0.1, lams=LAMBDAS, exponent=exponent)
        expected = [accountant.cost(lam + 1.0) for lam in LAMBDAS]
        np.testing.assert_allclose(total, expected, rtol=1e-4)


def test_few_orders_have_a_floor(rows: list[dict[str, Any]]) -> None:
    for delta in (1e-5, 1e-10):
        for row in pick(rows, way="paper", delta=delta):
            assert row["epsilon"] > math.log(1 / delta) / 32
            assert row["attacker"] == convert.attacker_success(row["epsilon"])


def test_everything_grows_with_the_steps(rows: list[dict[str, Any]]) -> None:
    kinds = {(r["run"], r["way"], r["curve"], r["coverage"], r["delta"]) for r in rows}
    for kind in kinds:
        chosen = pick(rows, **dict(zip(("run", "way", "curve", "coverage", "delta"), kind, strict=True)))
        values = [row["epsilon"] for row in sorted(chosen, key=lambda row: row["step"])]
        assert values == sorted(values)
        assert len(values) == STEPS


def test_sound_rows_are_a_holdout_of_both_orientations(rows: list[dict[str, Any]], follow: Any) -> None:
    """Redone by hand from the distances that the run hands over."""
    accountant = bd.BayesianAccountant(total_steps=STEPS)
    for seen in follow(seed=0):
        for part, orientation in ((slice(300), "absent"), (slice(300, None), "present")):
            accountant.step(seen.distances[0][part], noise_std=0.1, sampling_rate=0.1, orientation=orientation)
    guarantee = accountant.guarantee(DELTA, 0.9)
    assert guarantee.orientation == "both"
    (row,) = pick(rows, run="recipe", way="sound", coverage=0.9, step=STEPS)
    assert row["epsilon"] == guarantee.epsilon
    assert row["attacker"] == guarantee.attacker_success()


def test_dp_of_the_recipe_takes_the_whole_diameter(rows: list[dict[str, Any]]) -> None:
    (most,), (least,) = (
        pick(rows, run="recipe", way="dp", curve=curve, step=STEPS) for curve in ("at most", "at least: one step")
    )
    accountant = bd.WorstCaseAccountant(engine="rdp")
    accountant.step(noise_multiplier=0.05, sampling_rate=0.1, steps=STEPS)
    assert most["epsilon"] == accountant.epsilon(DELTA)
    assert 200 < least["epsilon"] < most["epsilon"]
    assert most["attacker"] == 1.0


def test_a_bounded_gradient_gives_dp_without_clipping(problem: Problem, plan: Recipe) -> None:
    free = dataclasses.replace(plan, clip_norm=None, sigma=0.7)
    fixed = {"run": "recipe", "step": 4, "accuracy": 0.5}
    (nothing,) = training._everybody(fixed, free, problem, 4)
    assert nothing["epsilon"] == math.inf
    assert training._worst_case(free, problem) == {}
    bounded = dataclasses.replace(problem, largest=35.0)
    most, _ = training._everybody(fixed, free, bounded, 4)
    accountant = bd.WorstCaseAccountant(engine="pld")
    accountant.step(noise_multiplier=2.0, sampling_rate=0.1, steps=4)
    assert most["epsilon"] == pytest.approx(accountant.epsilon(DELTA), rel=1e-12)
    assert training._worst_case(free, bounded)["cap"] == pytest.approx(0.35)


def test_same_noise_means_the_same_noise_on_the_mean(plan: Recipe) -> None:
    sgd = training.same_noise(plan, 1000, 2.0)
    assert sgd.noise_multiplier is not None
    assert sgd.noise_multiplier * 2.0 / (0.1 * 1000) == pytest.approx(plan.noise_std)
    assert training.as_in_the_text(plan).noise_multiplier == 0.1


def test_clipping_records_at_the_same_noise_promises_everybody_something(rows: list[dict[str, Any]]) -> None:
    """The finding of J5: the recipe's noise is large for one record, once a record is bounded."""
    (recipe,) = pick(rows, run="recipe", way="dp", curve="at most", step=STEPS)
    (record,) = pick(rows, run="per record", way="dp", step=STEPS)
    accountant = bd.WorstCaseAccountant(engine="pld")
    accountant.step(noise_multiplier=5.0, sampling_rate=0.1, steps=STEPS)
    assert record["epsilon"] == pytest.approx(accountant.epsilon(DELTA), rel=1e-9)
    assert record["epsilon"] < 1 < 1000 < recipe["epsilon"]
