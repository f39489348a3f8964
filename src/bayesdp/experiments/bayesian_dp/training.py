"""S1's training runs, each accounted in S1's way and soundly (Figs. 5 and 7; J5, J6): what MNIST and CIFAR-10 share.

Four runs from the same start, with the same rate, steps and optimiser:

    "recipe"      noise σC on the clipped mean of the batch, as in S1's code (`recipe`)
    "per record"  ordinary DP-SGD with *the same noise in the same place*: each record is clipped at C', and the sum
                  of a batch gets σC·L, so the noise multiplier is σC·L/C'
    "text"        DP-SGD as S1's text reads ("closely mimics" Abadi et al.): noise multiplier σ on the sum
    "no noise"    the recipe without noise and clipping: what could be learnt

Of the recipe's run: "paper" is S1's product (C6) and the public code's Hölder (C7) over 28 pairs and a few λ;
"sound" is what shares of the people outside and inside of the data have (H5), from the distances of witnesses;
"dp" is what a record can do at worst (C19). Of the next two runs: "dp" and "sound" as every `bd.SGD` run reports them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from bayesdp import convert
from bayesdp.accountant import BayesianAccountant, WorstCaseAccountant
from bayesdp.compose import orders
from bayesdp.errors import Array
from bayesdp.experiments.bayesian_dp import as_printed, sound
from bayesdp.experiments.bayesian_dp.recipe import Data, Params, Recipe, train
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, band, finish, line, pick, quiet
from bayesdp.learn import SGD
from bayesdp.mechanism import ModelLoss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA = 1e-5
DELTA_S0 = 1e-10
"""δ of S1, and that of S0 and the public code: Markov makes it 1e-5 for 99.999 % of people (C3)."""

COVERAGES = (0.5, 0.9, 0.95)
LOOKS = 10
VACUOUS = 2.0
"""Largest shifts above this, in units of the noise, promise nothing worth a loss law: Rényi accounting will do."""


@dataclass(frozen=True)
class Problem:
    """What is learnt: `largest` bounds a record's gradient where the model does so by itself (else infinite)."""

    loss: ModelLoss
    params: Params
    data: Data
    outsiders: Data
    test: Data
    members: int
    largest: float = math.inf

    def evaluate(self) -> Callable[[Params], dict[str, float]]:
        """Accuracy on the test records, compiled once."""
        apply, (x, y) = jax.jit(self.loss.model.apply), self.test

        def accuracy(params: Params) -> dict[str, float]:
            # From the host, so that one device computes it; parameters that are on all of them would have all do so.
            outputs = np.asarray(apply(jax.device_get(params), x))
            return {"accuracy": float(np.mean(outputs.argmax(axis=1) == y))}

        return accuracy


def compute(problem: Problem, recipe: Recipe, *, lams: Sequence[int], record_clip: float, seed: int) -> list[Row]:
    """All four runs: rows (run, step, way, curve, coverage, delta, epsilon, attacker, accuracy)."""
    records = len(problem.data[0])
    return [
        *recipe_rows(problem, recipe, lams, seed),
        *plan_rows("per record", same_noise(recipe, records, record_clip), problem, seed),
        *plan_rows("text", as_in_the_text(recipe), problem, seed),
        *bare_rows(problem, recipe, seed),
    ]


def recipe_rows(problem: Problem, recipe: Recipe, lams: Sequence[int], seed: int) -> list[Row]:
    """The run "recipe", accounted in every way after each look."""
    evaluate, size = problem.evaluate(), len(problem.data[0])
    members = np.random.default_rng(seed).permutation(size)[: problem.members]
    inside = jax.tree.map(lambda leaf: np.asarray(leaf)[members], problem.data)
    witnesses = jax.tree.map(lambda *parts: np.concatenate(parts), problem.outsiders, inside)
    outside = len(problem.outsiders[0])
    alike = BayesianAccountant(total_steps=recipe.steps, **_worst_case(recipe, problem))
    printed = {rule: np.zeros(len(lams)) for rule in ("product", "Hölder")}
    step: dict[str, Any] = {"noise_std": recipe.noise_std, "sampling_rate": recipe.sampling_rate}
    rows: list[Row] = []
    interval = math.ceil(recipe.steps / LOOKS)
    run = train(recipe, problem.loss, problem.params, problem.data, witnesses=witnesses, seed=seed, interval=interval)
    for seen in run:
        for distances, pairs in zip(seen.distances, seen.pairs, strict=True):
            alike.step(distances[:outside], orientation="absent", **step)
            alike.step(distances[outside:], orientation="present", **step)
            for rule, total in printed.items():
                exponent = recipe.steps if rule == "Hölder" else 1
                total += as_printed.bayesian_costs(np.asarray(pairs, float), **step, lams=lams, exponent=exponent)
        fixed = {"run": "recipe", "step": seen.step, **evaluate(seen.params)}
        rows += _printed_rows(fixed, printed, lams, seen.step)
        for coverage in COVERAGES:
            epsilon = alike.guarantee(DELTA, coverage).epsilon
            rows.append(_row(fixed, "sound", "BDP", coverage, DELTA, epsilon))
        rows += _everybody(fixed, recipe, problem, seen.step)
    return rows


def plan_rows(name: str, plan: SGD, problem: Problem, seed: int) -> list[Row]:
    """A run of `bd.SGD`: "dp" for everybody and "sound" for a share of people, after every look."""
    rows: list[Row] = []

    def look(run: Any) -> None:
        fixed = {"run": name, "step": run.steps, **run.snapshots[-1].metrics}
        dp, bdp = run.guarantees[:2]
        rows.append(_row(fixed, "dp", "record clipped", 1.0, DELTA, dp.epsilon))
        rows.append(_row(fixed, "sound", "BDP", bdp.coverage, DELTA, bdp.epsilon))

    plan.fit(
        problem.loss,
        problem.params,
        problem.data,
        holdout=problem.outsiders,
        members=problem.members,
        seed=seed,
        evaluate=problem.evaluate(),
        progress=look,
    )
    return rows


def bare_rows(problem: Problem, recipe: Recipe, seed: int) -> list[Row]:
    """The run "no noise": its accuracy; nothing is promised to anybody."""
    evaluate, interval = problem.evaluate(), math.ceil(recipe.steps / LOOKS)
    bare = dataclasses.replace(recipe, sigma=0.0, clip_norm=None)
    run = train(bare, problem.loss, problem.params, problem.data, seed=seed, interval=interval)
    return [
        _row({"run": "no noise", "step": seen.step, **evaluate(seen.params)}, "dp", "no noise", 1.0, DELTA, math.inf)
        for seen in run
    ]


def same_noise(recipe: Recipe, records: int, clip_norm: float) -> SGD:
    """The plan "per record": records clipped at `clip_norm`, noise on the mean as in the recipe."""
    level = recipe.noise_std * recipe.sampling_rate * records
    return _plan(recipe, clip_norm, level / clip_norm)


def as_in_the_text(recipe: Recipe) -> SGD:
    """The plan "text": clip norm 1, noise multiplier σ."""
    return _plan(recipe, 1.0, recipe.sigma)


def _plan(recipe: Recipe, clip_norm: float, noise_multiplier: float) -> SGD:
    return SGD(
        clip_norm=clip_norm,
        noise_multiplier=noise_multiplier,
        sampling_rate=recipe.sampling_rate,
        steps=recipe.steps,
        optimizer=recipe.optimizer,
        subset_fraction=recipe.subset_fraction,
        delta=DELTA,
        engine="rdp" if 1 / noise_multiplier > VACUOUS else "pld",
        report_every=math.ceil(recipe.steps / LOOKS),
    )


def _printed_rows(fixed: Row, printed: dict[str, Array], lams: Sequence[int], steps: int) -> list[Row]:
    rows = []
    for delta in (DELTA, DELTA_S0):
        for rule, costs in printed.items():
            values = [
                as_printed.epsilon(float(cost), lam, delta, estimates=steps)
                for cost, lam in zip(costs, lams, strict=True)
            ]
            rows.append(_row(fixed, "paper", rule, "", delta, min(values)))
    return rows


def largest_shift(recipe: Recipe, problem: Problem) -> float:
    """In units of the noise: a record moves the clipped mean by at most 2C, and by at most its own gradient over L."""
    level = recipe.sampling_rate * len(problem.data[0])
    reach = min(math.inf if recipe.clip_norm is None else 2 * recipe.clip_norm, problem.largest / level)
    return reach / recipe.noise_std


def _worst_case(recipe: Recipe, problem: Problem) -> dict[str, Any]:
    """Cap and orders for the witnesses where the worst case says anything; it would only halve δ elsewhere (H12)."""
    shift = largest_shift(recipe, problem)
    if shift > VACUOUS:
        return {}
    grid, weights = orders.planned(1 / shift, recipe.sampling_rate, recipe.steps, DELTA / 2)
    return {"cap": shift * recipe.noise_std, "orders": grid, "weights": weights}


def _everybody(fixed: Row, recipe: Recipe, problem: Problem, steps: int) -> list[Row]:
    """DP of the recipe, by the largest shift."""
    shift = largest_shift(recipe, problem)
    if math.isinf(shift):
        return [_row(fixed, "dp", "at most", 1.0, DELTA, math.inf)]
    accountant = WorstCaseAccountant(engine="rdp" if shift > VACUOUS else "pld")
    accountant.step(noise_multiplier=1 / shift, sampling_rate=recipe.sampling_rate, steps=steps)
    alone = sound.exact_epsilon(np.array([shift]), sampling_rate=recipe.sampling_rate, delta=DELTA)[0]
    return [
        _row(fixed, "dp", "at most", 1.0, DELTA, accountant.epsilon(DELTA)),
        _row(fixed, "dp", "at least: one step", 1.0, DELTA, float(alone)),
    ]


def _row(fixed: Row, way: str, curve: str, coverage: float | str, delta: float, epsilon: float) -> Row:
    # S1's equation (1) has no δ.
    attacker = convert.attacker_success(epsilon, 0.0 if way == "paper" else delta)
    at = {"way": way, "curve": curve, "coverage": coverage, "delta": delta, "epsilon": epsilon, "attacker": attacker}
    return {"run": fixed["run"], "step": fixed["step"], **at, "accuracy": fixed["accuracy"]}


def draw(figure: Figure, rows: Sequence[Row], *, title: str) -> None:
    """Left: ε over the steps. Right: test accuracy of the runs."""
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    recipe, record = (pick(rows, run=name, delta=DELTA) for name in ("recipe", "per record"))
    for rule, style in (("Hölder", "-"), ("product", ":")):
        label = f"recipe, BDP as printed ({rule})"
        line(left, pick(recipe, way="paper", curve=rule), "step", color=VERMILION, ls=style, label=label)
    band(left, pick(recipe, way="sound"), "step", BLUE, "recipe, BDP sound: 90 % of people (band: 50 to 95 %)")
    worst = pick(recipe, way="dp", curve="at most")
    line(left, worst, "step", color=BLUE, ls="--", label="recipe, DP: everybody")
    line(left, pick(record, way="dp"), "step", color=GREEN, ls="--", label="records clipped, same noise, DP: everybody")
    text = pick(rows, run="text", way="dp")
    if text:
        line(left, text, "step", color=VERMILION, ls="--", label="noise multiplier σ (the text), DP: everybody")
    left.set(xlabel="step", title="What the steps so far cost")
    looks = {
        "no noise": ("#888888", "-"),
        "recipe": (BLUE, "-"),
        "per record": (GREEN, "-"),
        "text": (VERMILION, "--"),
    }
    for name, (color, style) in looks.items():
        points = sorted({(row["step"], row["accuracy"]) for row in pick(rows, run=name)})
        if points:
            right.plot(*zip(*points, strict=True), color=color, ls=style, label=name, linewidth=1.6)
    finish(figure, [left], title=title, y="ε, δ = 10⁻⁵", columns=2)
    right.set(xlabel="step", ylabel="test accuracy", title="What they learn", ylim=(0, 1))
    quiet(right)
    right.legend(frameon=False, fontsize=9, loc="lower right")
