"""S1's training recipe, its leak test and Table I (SPEC J5-J7, C18, C19), on digits and on made-up gradients."""

from __future__ import annotations

import csv
import dataclasses
import math
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from scipy import stats

import bayesdp as bd
from bayesdp import convert
from bayesdp.errors import InputError
from bayesdp.experiments import (
    as_printed,
    bdp_cifar10,
    bdp_leak,
    bdp_mnist,
    bdp_table1,
    leak_test,
    s1_recipe,
    s1_training,
)
from bayesdp.experiments.run import reproduce, write_csv
from bayesdp.experiments.s1_recipe import Recipe, train
from bayesdp.experiments.s1_training import DELTA, Problem
from bayesdp.experiments.style import pick
from bayesdp.learn.models import classifier
from bayesdp.mechanism import random_subset, seeded_key, step_keys

STEPS = 6
LAMBDAS = (2, 8, 32)


def flat(tree: Any) -> Any:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


@pytest.fixture(scope="module")
def problem() -> Problem:
    from sklearn.datasets import load_digits

    raw = load_digits()
    x, y = (raw.data / 16).astype(np.float32), raw.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(x))
    train_part, outside, test = order[:1000], order[1000:1300], order[1300:]
    loss = classifier("logistic", 10)
    return Problem(
        loss=loss,
        params=loss.model.init(jax.random.key(0), (64,)),
        data=(x[train_part], y[train_part]),
        outsiders=(x[outside], y[outside]),
        test=(x[test], y[test]),
        members=300,
    )


@pytest.fixture(scope="module")
def plan() -> Recipe:
    return Recipe(
        sigma=0.1, clip_norm=1.0, sampling_rate=0.1, steps=STEPS, optimizer=optax.sgd(1.0), subset_fraction=0.5
    )


@pytest.fixture(scope="module")
def witnesses(problem: Problem) -> Any:
    """Those of `recipe_rows` with seed 0: outsiders, then members."""
    members = np.random.default_rng(0).permutation(1000)[:300]
    inside = (part[members] for part in problem.data)
    return tuple(np.concatenate(parts) for parts in zip(problem.outsiders, inside, strict=True))


@pytest.fixture(scope="module")
def follow(problem: Problem, plan: Recipe, witnesses: Any) -> Any:
    """The run that was asked for, step by step: all of them share one compiled program."""

    def run(steps: int = STEPS, seed: int = 3, **changed: Any) -> list[s1_recipe.Seen]:
        chosen = dataclasses.replace(plan, steps=steps, **changed)
        given = {"witnesses": witnesses, "seed": seed, "interval": 1}
        return list(train(chosen, problem.loss, problem.params, problem.data, **given))

    return run


@pytest.fixture(scope="module")
def mask(problem: Problem) -> Any:
    """The weights that the first step may move, seed 3."""
    return flat(random_subset(step_keys(seeded_key(3), 0).subset, problem.params, 0.5))


def gradients(problem: Problem, data: Any) -> Any:
    own = jax.vmap(jax.grad(problem.loss), in_axes=(None, 0))(problem.params, data)
    return np.concatenate([np.asarray(leaf, np.float64).reshape(len(leaf), -1) for leaf in jax.tree.leaves(own)], 1)


@pytest.fixture(scope="module")
def rows(problem: Problem, plan: Recipe) -> list[dict[str, Any]]:
    record = s1_training.plan_rows("per record", s1_training.same_noise(plan, 1000, 2.0), problem, 0)
    # A picture has four runs; two are enough to look at.
    text, bare = ([{**row, "run": name} for row in record] for name in ("text", "no noise"))
    return [*s1_training.recipe_rows(problem, plan, LAMBDAS, 0), *record, *text, *bare]


class TestMechanism:
    def test_without_noise_and_clipping_it_is_the_librarys_sgd(
        self, problem: Problem, plan: Recipe, follow: Any
    ) -> None:
        ours = follow(sigma=0.0, clip_norm=None)[-1].params
        sgd = dataclasses.replace(s1_training.as_in_the_text(plan), clip_norm=1e6, noise_multiplier=0.0)
        theirs = sgd.fit(problem.loss, problem.params, problem.data, members=0, seed=3).params
        np.testing.assert_allclose(flat(ours), flat(theirs), atol=1e-6)

    def test_noise_is_sigma_times_clip_norm_on_the_subset(self, follow: Any, mask: Any) -> None:
        moved = [flat(follow(1, clip_norm=0.7, sigma=s)[0].params) for s in (0.0, 0.3)]
        noise = moved[1] - moved[0]
        np.testing.assert_array_equal(noise != 0, mask > 0)
        assert 0.4 < mask.mean() < 0.6
        assert stats.kstest(noise[mask > 0], "norm", (0, 0.21)).pvalue > 0.01
        for wrong in (2 / 3, 3 / 2):
            assert stats.kstest(noise[mask > 0], "norm", (0, 0.21 * wrong)).pvalue < 1e-3

    def test_the_batch_is_clipped_not_the_record(self, problem: Problem, follow: Any) -> None:
        free, bound = (follow(1, sigma=0.0, clip_norm=c)[0] for c in (None, 0.1))
        step = flat(free.params) - flat(problem.params)
        assert float(free.lengths[0]) > 0.1
        assert np.linalg.norm(step) == pytest.approx(float(free.lengths[0]), rel=1e-5)
        clipped = flat(bound.params) - flat(problem.params)
        np.testing.assert_allclose(clipped, step * 0.1 / np.linalg.norm(step), atol=1e-6)
        assert np.linalg.norm(gradients(problem, problem.data), axis=1).max() > 10 * 0.1

    def test_witnesses_are_charged_their_own_gradient(
        self, problem: Problem, follow: Any, mask: Any, witnesses: Any
    ) -> None:
        expected = np.linalg.norm(mask * gradients(problem, witnesses), axis=1) / 100
        np.testing.assert_allclose(follow(1)[0].distances[0], expected, rtol=1e-4)

    @pytest.mark.parametrize("clip_norm", [None, 0.1])
    def test_pairs_are_the_papers_leave_one_out_distances(
        self, problem: Problem, follow: Any, mask: Any, clip_norm: float | None
    ) -> None:
        """By hand: the batch's mean (a step of rate 1 without noise) and the eight, less one of the eight, clipped."""
        mean = flat(problem.params) - flat(follow(1, sigma=0.0, clip_norm=None)[0].params)
        eight = mask * gradients(problem, problem.data)[np.random.default_rng(3).choice(1000, 8, replace=False)] / 100
        left = mean + eight.sum(axis=0) - eight
        if clip_norm is not None:
            left *= clip_norm / np.linalg.norm(left, axis=1, keepdims=True)
        expected = [np.linalg.norm(left[i] - left[j]) for i, j in zip(*np.triu_indices(8, 1), strict=True)]
        np.testing.assert_allclose(follow(1, clip_norm=clip_norm)[0].pairs[0], expected, rtol=1e-3)

    def test_no_record_moves_a_clipped_mean_further_than_it_moves_the_mean(self) -> None:
        """What the sound accounting rests on: projections on a ball bring no two points further apart."""
        rng = np.random.default_rng(0)
        clip = jax.vmap(lambda row: s1_recipe._clipped(row, 1.0)[0])
        for scale in (0.1, 1.0, 5.0):
            one = rng.normal(size=(200, 4)) * scale
            other = one + rng.normal(size=(200, 4))
            moved = np.linalg.norm(np.asarray(clip(one)) - np.asarray(clip(other)), axis=1)
            assert (moved <= np.minimum(np.linalg.norm(one - other, axis=1), 2) * (1 + 1e-5)).all()
            assert np.linalg.norm(np.asarray(clip(one)), axis=1).max() <= 1 + 1e-6


class TestAccounting:
    def test_printed_costs_are_those_of_the_labelled_compositions(self, follow: Any) -> None:
        """The library's own "product" and "holder" with Student-t on the same 28 pairs."""
        pairs = np.concatenate([seen.pairs for seen in follow()]).astype(np.float64)
        for composition, exponent in (("product", 1), ("holder", STEPS)):
            accountant = bd.BayesianAccountant(
                composition, "student-t", np.array(LAMBDAS) + 1.0, STEPS, failure=as_printed.FAILURE
            )
            total = np.zeros(len(LAMBDAS))
            for row in pairs:
                accountant.step(row, noise_std=0.1, sampling_rate=0.1)
                total += as_printed.bayesian_costs(row, 0.1, sampling_rate=0.1, lams=LAMBDAS, exponent=exponent)
            expected = [accountant.cost(lam + 1.0) for lam in LAMBDAS]
            np.testing.assert_allclose(total, expected, rtol=1e-4)

    def test_few_orders_have_a_floor(self, rows: list[dict[str, Any]]) -> None:
        for delta in (1e-5, 1e-10):
            for row in pick(rows, way="paper", delta=delta):
                assert row["epsilon"] > math.log(1 / delta) / 32
                assert row["attacker"] == convert.attacker_success(row["epsilon"])

    def test_everything_grows_with_the_steps(self, rows: list[dict[str, Any]]) -> None:
        kinds = {(r["run"], r["way"], r["curve"], r["coverage"], r["delta"]) for r in rows}
        for kind in kinds:
            chosen = pick(rows, **dict(zip(("run", "way", "curve", "coverage", "delta"), kind, strict=True)))
            values = [row["epsilon"] for row in sorted(chosen, key=lambda row: row["step"])]
            assert values == sorted(values)
            assert len(values) == STEPS

    def test_sound_rows_are_an_audit_set_of_both_orientations(self, rows: list[dict[str, Any]], follow: Any) -> None:
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

    def test_dp_of_the_recipe_takes_the_whole_diameter(self, rows: list[dict[str, Any]]) -> None:
        (most,), (least,) = (
            pick(rows, run="recipe", way="dp", curve=curve, step=STEPS) for curve in ("at most", "at least: one step")
        )
        accountant = bd.WorstCaseAccountant("rdp")
        accountant.step(noise_multiplier=0.05, sampling_rate=0.1, steps=STEPS)
        assert most["epsilon"] == accountant.epsilon(DELTA)
        assert 200 < least["epsilon"] < most["epsilon"]
        assert most["attacker"] == 1.0

    def test_a_bounded_gradient_gives_dp_without_clipping(self, problem: Problem, plan: Recipe) -> None:
        free = dataclasses.replace(plan, clip_norm=None, sigma=0.7)
        fixed = {"run": "recipe", "step": 4, "accuracy": 0.5}
        (nothing,) = s1_training._everybody(fixed, free, problem, 4)
        assert nothing["epsilon"] == math.inf
        assert s1_training._worst_case(free, problem) == {}
        bounded = dataclasses.replace(problem, largest=35.0)
        most, _ = s1_training._everybody(fixed, free, bounded, 4)
        accountant = bd.WorstCaseAccountant("pld")
        accountant.step(noise_multiplier=2.0, sampling_rate=0.1, steps=4)
        assert most["epsilon"] == pytest.approx(accountant.epsilon(DELTA), rel=1e-12)
        assert s1_training._worst_case(free, bounded)["cap"] == pytest.approx(0.35)

    def test_same_noise_means_the_same_noise_on_the_mean(self, plan: Recipe) -> None:
        sgd = s1_training.same_noise(plan, 1000, 2.0)
        assert sgd.noise_multiplier is not None
        assert sgd.noise_multiplier * 2.0 / (0.1 * 1000) == pytest.approx(plan.noise_std)
        assert s1_training.as_in_the_text(plan).noise_multiplier == 0.1

    def test_clipping_records_at_the_same_noise_promises_everybody_something(self, rows: list[dict[str, Any]]) -> None:
        """The finding of J5: the recipe's noise is large for one record, once a record is bounded."""
        (recipe,) = pick(rows, run="recipe", way="dp", curve="at most", step=STEPS)
        (record,) = pick(rows, run="per record", way="dp", step=STEPS)
        accountant = bd.WorstCaseAccountant("pld")
        accountant.step(noise_multiplier=5.0, sampling_rate=0.1, steps=STEPS)
        assert record["epsilon"] == pytest.approx(accountant.epsilon(DELTA), rel=1e-9)
        assert record["epsilon"] < 1 < 1000 < recipe["epsilon"]


@pytest.fixture(scope="module")
def groups() -> list[Any]:
    """40 batches of 30 records whose gradients differ in length, as they do in training."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(30, 8)) * rng.exponential(size=(30, 1)) for _ in range(40)]


class TestLeak:
    def test_gradients_and_distances_by_hand(self, problem: Problem) -> None:
        one, two = leak_test.batches(problem.loss, problem.params, problem.data, count=2, size=5)
        np.testing.assert_allclose(np.vstack([one, two]), gradients(problem, tuple(a[:10] for a in problem.data)),
                                   atol=1e-6)  # fmt: skip
        free, bound = leak_test.distances(one, None), leak_test.distances(one, 0.01)
        np.testing.assert_allclose(free[0], np.linalg.norm(one[0] - one[1]) / 4, rtol=1e-6)
        assert len(free) == 10
        assert bound.max() <= 0.02

    def test_dependent_pairs_raise_false_alarms_and_whole_batches_do_not(self, groups: list[Any]) -> None:
        apart = [leak_test.distances(one, None) for one in groups]
        paper, sound = (leak_test.false_alarms(apart, way, splits=100, seed=1) for way in ("paper", "sound"))
        assert paper["mean"] > 0.3
        for rate in sound.values():
            assert rate < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 100)

    def test_a_planted_leak_is_found_if_it_is_large(self, groups: list[Any]) -> None:
        others = [leak_test.distances(one, None) for one in groups[20:]]

        def p(share: float) -> dict[str, float]:
            rng = np.random.default_rng(2)
            return leak_test.p_values(
                [leak_test.distances(leak_test.planted(one, share, rng), None) for one in groups[:20]], others, "sound"
            )

        assert min(p(0.0).values()) > 0.05
        assert p(0.5)["mean"] < 1e-3
        assert min(p(0.01).values()) > 0.05

    def test_planting_sets_gradients_to_zero(self, groups: list[Any]) -> None:
        changed = leak_test.planted(groups[0], 0.5, np.random.default_rng(0))
        gone = (changed == 0).all(axis=1)
        assert 5 < gone.sum() < 25
        np.testing.assert_array_equal(changed[~gone], groups[0][~gone])

    def test_rows_and_picture(self, problem: Problem) -> None:
        fixed = {"dataset": "MNIST", "model": "recipe"}
        found = bdp_leak._examined(fixed, problem, problem.params, 1.0, 0, batches=4, size=50)
        assert {row["way"] for row in found} == {"paper", "sound", "histogram"}
        assert all(0 <= row["value"] <= 1 for row in found if row["way"] != "histogram")
        more = [{**row, "dataset": "CIFAR-10"} for row in found] + [{**row, "model": "by heart"} for row in found]
        figure = _drawn(bdp_leak, [*found, *more])
        assert len(figure.axes) == 6


class TestTable:
    @pytest.fixture
    def folder(self, rows: list[dict[str, Any]], tmp_path: Path) -> Path:
        write_csv(tmp_path / "bdp-mnist.csv", rows)
        return tmp_path

    def test_rows_are_the_papers_and_those_of_the_last_step(self, folder: Path, rows: list[dict[str, Any]]) -> None:
        table = bdp_table1.compute(results=folder)
        assert {row["dataset"] for row in table} == {"MNIST"}
        assert [row["line"] for row in table[3:]] == list(bdp_table1.LINES)
        printed = {row["line"]: row["attacker"] for row in table[:3]}
        assert printed["S1 Table I: no privacy"] == 1
        assert printed["S1 Table I: DP"] == pytest.approx(0.8984, abs=5e-5)
        assert printed["S1 Table I: BDP"] == pytest.approx(0.6502, abs=5e-5)
        (ours,) = pick(table, line="recipe, BDP sound: 90 % of people")
        (run,) = pick(rows, run="recipe", way="sound", coverage=0.9, step=STEPS)
        assert ours["epsilon"] == pytest.approx(run["epsilon"], rel=1e-9)

    def test_printed_attacker_of_cifar10(self) -> None:
        eps = bdp_table1.PRINTED[1]
        assert convert.attacker_success(eps.dp) == pytest.approx(0.9997, abs=5e-5)
        assert convert.attacker_success(eps.bdp) == pytest.approx(0.6248, abs=5e-5)

    def test_reproduce_reads_the_folder_that_it_writes_to(self, folder: Path) -> None:
        (folder / "bdp-mnist.csv").rename(folder / "bdp-mnist-full.csv")
        with pytest.raises(InputError, match="bayesdp reproduce bdp-mnist or"):
            reproduce("bdp-table1", folder)
        files = reproduce("bdp-table1", folder, full=True)
        assert [file.name for file in files] == [f"bdp-table1-full.{kind}" for kind in ("csv", "png", "svg")]
        with files[0].open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == 3 + len(bdp_table1.LINES)

    def test_options_that_an_experiment_does_not_take_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"full .* bdp-fig4"):
            reproduce("bdp-fig4", tmp_path / "new", full=True)
        with pytest.raises(InputError, match=r"data_dir .* bdp-table1"):
            reproduce("bdp-table1", tmp_path / "new", data_dir=tmp_path)
        assert not (tmp_path / "new").exists()


class TestSettings:
    def test_the_papers_numbers(self) -> None:
        plan = bdp_mnist.recipe(60_000, full=True)
        assert (plan.sigma, plan.clip_norm, plan.noise_std, plan.subset_fraction) == (0.1, 1.0, 0.1, 0.1)
        assert (plan.steps, plan.sampling_rate) == (1172, 1024 / 60_000)
        plan = bdp_cifar10.recipe(50_000, full=True)
        assert (plan.sigma, plan.clip_norm, plan.noise_std, plan.steps) == (0.7, None, 0.7, 293)

    def test_the_papers_network(self) -> None:
        params = jax.eval_shape(lambda key: bdp_mnist.PAPERS.init(key, (28, 28, 1)), jax.random.key(0))
        assert [leaf["kernel"].shape for leaf in params] == [
            (5, 5, 1, 64), (5, 5, 64, 64), (1024, 384), (384, 192), (192, 10),
        ]  # fmt: skip

    def test_features_of_photographs_bound_their_gradients(self) -> None:
        """|∇loss| ≤ √(2(R² + 1)) whatever the image, its label and the weights; a blank image has no features."""
        pixels = np.random.default_rng(0).random((5, 32, 32, 3), np.float32)
        pixels[4] = 0.5
        features = bdp_cifar10._features(pixels)
        assert features.shape == (5, 5184)
        np.testing.assert_allclose(np.linalg.norm(features[:4], axis=1), bdp_cifar10.NORM, rtol=1e-4)
        assert np.linalg.norm(features[4]) <= bdp_cifar10.NORM
        loss, most = classifier("logistic", 10), math.sqrt(2 * (bdp_cifar10.NORM**2 + 1))
        aligned = {"kernel": np.outer(features[0], np.eye(10)[0]).astype(np.float32), "bias": np.zeros(10, np.float32)}
        sure = jax.grad(loss)((aligned,), (features[0], np.int32(1)))  # certain of a wrong class: the worst there is
        assert most * (1 - 1e-4) < np.linalg.norm(flat(sure)) < most * (1 + 1e-4)

    def test_mnist_is_split_between_training_and_outsiders(self) -> None:
        if not os.environ.get("BAYESDP_DATA"):
            pytest.skip("BAYESDP_DATA is not set: the experiment's data are not looked at")
        chosen = bdp_mnist.problem(0, witnesses=300)
        assert [len(part[0]) for part in (chosen.data, chosen.outsiders, chosen.test)] == [59_700, 300, 10_000]
        assert (float(chosen.data[0].min()), float(chosen.data[0].max())) == (-1.0, 1.0)
        plan = bdp_mnist.recipe(59_700)
        assert s1_training.largest_shift(plan, chosen) == pytest.approx(20)

    def test_pictures(self, rows: list[dict[str, Any]]) -> None:
        for module in (bdp_mnist, bdp_cifar10):
            figure = _drawn(module, rows)
            box = figure.legends[0].get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1


def _drawn(module: Any, rows: list[dict[str, Any]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=module.SIZE, layout="constrained")
    module.draw(figure, rows)
    figure.draw_without_rendering()
    assert figure.get_suptitle() == module.TITLE
    return figure
