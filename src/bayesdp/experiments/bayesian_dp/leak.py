"""S1 Figs. 6 and 8 (J7): pairwise distances of gradients on training and on test records, after training.

The tests and what they can show are in `leak_test`. Models: those of the runs "recipe" of `bdp-mnist` and
`bdp-cifar10`; and a planted leak, the network of `bdp-mnist` trained without noise on few records until it knows them
by heart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import optax

from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.bayesian_dp import leak_test
from bayesdp.experiments.bayesian_dp.images import CIFAR10, MNIST
from bayesdp.experiments.bayesian_dp.recipe import Params, Recipe, train
from bayesdp.experiments.bayesian_dp.training import Problem
from bayesdp.experiments.common.style import BLUE, VERMILION, Row, pick
from bayesdp.mechanism import use_host_cores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Do gradients tell who was trained on? S1's tests (dependent pairs, ERR 11) and exact ones"

BY_HEART = Recipe(sigma=0.0, clip_norm=None, sampling_rate=0.128, steps=400, optimizer=optax.adam(2e-3))

BATCHES, BATCH = 20, 100
"""Batches of training records, as many of held-out ones and of test records; all pairs in each."""

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Of training records made to fit perfectly."""

SPLITS, BINS = 200, 40

FLOOR = 1e-6
"""Smaller p-values are drawn here."""


def compute(
    seed: int = 0,
    *,
    full: bool = False,
    data_dir: str | Path | None = None,
    batches: int = BATCHES,
    most: int | None = None,
    steps: int | None = None,
) -> list[Row]:
    """Rows (dataset, model, others, planted, way, what, at, value). The last three are for smaller sizes still.

    `way` "paper" or "sound": `what` is "mean" or "spread", `value` the p-value (`at` "p") of training records against
    `others` ("held out" from the training set or of the official "test" set), or the rate of "false alarms";
    `way` "histogram": `what` is "train" or "held out", `value` the density at the distance `at`.
    """
    use_host_cores()
    size: dict[str, Any] = {"full": full, "data_dir": data_dir, "witnesses": batches * BATCH, "most": most}
    mnist, cifar = MNIST.problem(seed, **size), CIFAR10.problem(seed, **size)
    plans = [
        ("MNIST", "recipe", mnist, MNIST.recipe(len(mnist.data[0]), full=full)),
        ("CIFAR-10", "recipe", cifar, CIFAR10.recipe(len(cifar.data[0]), full=full)),
        ("MNIST", "by heart", _few(mnist, batches * BATCH), BY_HEART),
    ]
    rows: list[Row] = []
    for dataset, model, problem, plan in plans:
        plan = plan if steps is None else dataclasses.replace(plan, steps=steps)
        *_, last = train(plan, problem.loss, problem.params, problem.data, seed=seed, interval=plan.steps)
        fixed = {"dataset": dataset, "model": model}
        rows += _examined(fixed, problem, last.params, plan.clip_norm, seed, batches=batches)
    return rows


def _few(problem: Problem, records: int) -> Problem:
    """The records that the tests look at, and no others to train on."""
    return dataclasses.replace(problem, data=jax.tree.map(lambda leaf: leaf[:records], problem.data))


def _examined(
    fixed: Row,
    problem: Problem,
    params: Params,
    clip_norm: float | None,
    seed: int,
    *,
    batches: int,
    size: int = BATCH,
) -> list[Row]:
    gradients = {
        group: leak_test.batches(problem.loss, params, records, count=batches, size=size)
        for group, records in (("train", problem.data), ("held out", problem.outsiders), ("test", problem.test))
    }
    apart = {group: [leak_test.distances(one, clip_norm) for one in many] for group, many in gradients.items()}
    rows: list[Row] = []
    for way in ("paper", "sound"):
        for others in ("held out", "test"):
            for what, p in leak_test.p_values(apart["train"], apart[others], way, seed).items():
                rows.append(_row(fixed, others, 0.0, way, what, "p", p))
        alarms = leak_test.false_alarms(apart["held out"], way, splits=SPLITS, seed=seed)
        rows += [_row(fixed, "held out", 0.0, way, what, "false alarms", rate) for what, rate in alarms.items()]
    if fixed["model"] == "recipe":
        rows += _planted(fixed, gradients["train"], apart["held out"], clip_norm, seed)
    return rows + _histogram(fixed, np.concatenate(apart["train"]), np.concatenate(apart["held out"]))


def _planted(fixed: Row, train: list[Array], others: list[Array], clip_norm: float | None, seed: int) -> list[Row]:
    rows = []
    for share in SHARES[1:]:
        rng = np.random.default_rng(seed)
        changed = [leak_test.distances(leak_test.planted(one, share, rng), clip_norm) for one in train]
        for way in ("paper", "sound"):
            for what, p in leak_test.p_values(changed, others, way, seed).items():
                rows.append(_row(fixed, "held out", share, way, what, "p", p))
    return rows


def _histogram(fixed: Row, train: Array, others: Array) -> list[Row]:
    edges = np.linspace(0, float(np.quantile(np.concatenate([train, others]), 0.999)), BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return [
        _row(fixed, "held out", 0.0, "histogram", what, float(at), float(height))
        for what, values in (("train", train), ("held out", others))
        for at, height in zip(middles, np.histogram(values, edges, density=True)[0], strict=True)
    ]


def _row(fixed: Row, others: str, planted: float, way: str, what: str, at: float | str, value: float) -> Row:
    return {**fixed, "others": others, "planted": planted, "way": way, "what": what, "at": at, "value": value}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Above: distances. Below: p against the share of training records that leak, and false alarms."""
    panels = figure.subplots(2, 3)
    models = [("MNIST", "recipe"), ("CIFAR-10", "recipe"), ("MNIST", "by heart")]
    for axes, (dataset, model) in zip(panels[0], models, strict=True):
        here = pick(rows, dataset=dataset, model=model)
        for what, color in (("train", VERMILION), ("held out", BLUE)):
            bins = pick(here, way="histogram", what=what)
            axes.step([row["at"] for row in bins], [row["value"] for row in bins], where="mid", color=color, label=what)
        (p,) = pick(here, way="sound", what="mean", others="held out", at="p", planted=0.0)
        axes.set_title(f"{dataset}, {model}: p = {p['value']:.2g} (means, exact)", fontsize=10)
        axes.set_xlabel("distance of two gradients")
        axes.set_yticks([])
    panels[0, 0].legend(frameon=False, fontsize=9)
    for axes, dataset in zip(panels[1], ("MNIST", "CIFAR-10"), strict=False):
        _draw_power(axes, pick(rows, dataset=dataset, model="recipe", others="held out", at="p"))
        axes.set_title(f"{dataset}, recipe: a planted leak", fontsize=10)
        axes.set_xlabel("share of training records that are fitted perfectly")
    panels[1, 0].set_ylabel("p")
    panels[1, 0].legend(frameon=False, fontsize=8)
    _draw_alarms(panels[1, 2], pick(rows, at="false alarms"))
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(TITLE, fontsize=12)


def _draw_power(axes: Axes, rows: Sequence[Row]) -> None:
    for way, color in (("paper", VERMILION), ("sound", BLUE)):
        for what, style in (("mean", "-"), ("spread", ":")):
            points = sorted((row["planted"], max(row["value"], FLOOR)) for row in pick(rows, way=way, what=what))
            label = f"{way}, {what}"
            axes.plot(*zip(*points, strict=True), color=color, ls=style, marker="o", markersize=4, label=label)
    axes.axhline(leak_test.LEVEL, color="#888888", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set(yscale="log", ylim=(FLOOR / 2, 2), xlim=(-0.002, 0.7))
    axes.set_xticks((0, 0.01, 0.1, 0.5), ("0", "1 %", "10 %", "50 %"))


def _draw_alarms(axes: Axes, rows: Sequence[Row]) -> None:
    kinds = [(way, what) for way in ("paper", "sound") for what in ("mean", "spread")]
    for place, (way, what) in enumerate(kinds):
        rates = [row["value"] for row in pick(rows, way=way, what=what)]
        color = VERMILION if way == "paper" else BLUE
        axes.plot([place] * len(rates), rates, "o", color=color, alpha=0.7)
    axes.axhline(leak_test.LEVEL, color="#888888", linewidth=0.8)
    axes.set_xticks(range(len(kinds)), [f"{way},\n{what}" for way, what in kinds], fontsize=9)
    axes.set(ylim=(0, 1), ylabel="share of p < 0.05")
    axes.set_title("False alarms: nobody was trained on", fontsize=10)


EXPERIMENTS = {"bdp-leak": Experiment(TITLE, (12.0, 7.0), compute, draw, ("full", "data_dir"))}
