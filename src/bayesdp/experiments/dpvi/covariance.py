"""S2 section 5 as an experiment: diagonal or full covariance, and fewer dimensions by random projection, under DP.

S2 expects that a diagonal covariance may be better under DP, because fewer numbers need a smaller clip norm, and that
dimensionality reduction helps for the same reason. Both are tried at equal exact ε (a record replaced): the guides with
the plain gradient, of which all numbers are clipped and noised, and with the aligned one, whose scales cost nothing;
projections x → x R/√k onto k directions, R of independent N(0, 1) drawn without looking at the data, the column of ones
kept as it is. Settings are those that `VI.suggest` gives for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.data.dataset import Features
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common import abalone_adult
from bayesdp.experiments.common.abalone_adult import Load, Split
from bayesdp.experiments.common.style import BLUE, GREY, SKY, Row, marked, pick, quiet
from bayesdp.experiments.dpvi.fits import LARGE, REFERENCE, SCORES, fitted, splits, suggested, summary
from bayesdp.experiments.dpvi.recipe import DELTA
from bayesdp.learn.vi.elbo import Variant
from bayesdp.learn.vi.guide import KINDS
from bayesdp.learn.vi.vi import VI

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Diagonal or full covariance, and random projections, at equal exact ε"
REPEATS = 10
EPSILONS = (0.1, 0.5, 2.0)
VARIANTS: tuple[Variant, ...] = ("aligned", "plain")


@dataclass(frozen=True)
class Problem:
    """A data set, the dimensions that it is projected onto, and the size of the run."""

    name: str
    load: Load
    dimensions: tuple[int, ...]
    epsilons: tuple[float, ...] = EPSILONS
    repeats: int = REPEATS
    variants: tuple[Variant, ...] = VARIANTS
    reference: VI = REFERENCE


PROBLEMS = (
    Problem("Abalone", abalone_adult.abalone, (2, 4, 6)),
    Problem("Adult", abalone_adult.adult, (3, 6, 10), reference=LARGE),
)


def compute(seed: int = 0, *, data_dir: str | Path | None = None, problems: Sequence[Problem] = PROBLEMS) -> list[Row]:
    """Rows: data, way ("non-private", "guide" or "projection"), curve, features, ε, and scores (`fits.summary`)."""
    return [row for problem in problems for row in _rows(problem, seed, data_dir)]


def _rows(problem: Problem, seed: int, data_dir: str | Path | None) -> Iterator[Row]:
    data = splits(problem.load, problem.repeats, seed, data_dir)
    free = fitted(problem.reference, data, seed)

    def row(way: str, curve: str, features: int, epsilon: float, scores: Array) -> Row:
        at = {"data": problem.name, "way": way, "curve": curve, "features": features, "epsilon": epsilon}
        return {**at, "repeats": len(scores), **summary(scores, gap=free)}

    whole = data[0].x.shape[1] - 1
    yield row("non-private", "all features", whole, math.inf, free)
    for variant in problem.variants:
        for guide in KINDS:
            for epsilon in problem.epsilons:
                plan = suggested(data[0], epsilon, variant, guide=guide)
                yield row("guide", f"{variant}, {guide}", whole, epsilon, fitted(plan, data, seed))
    for count in problem.dimensions:
        smaller = [projected(split, count, seed + i) for i, split in enumerate(data)]
        yield row("non-private", "projected", count, math.inf, fitted(problem.reference, smaller, seed))
        for epsilon in problem.epsilons:
            plan = suggested(smaller[0], epsilon)
            yield row("projection", "projected", count, epsilon, fitted(plan, smaller, seed))


def projected(split: Split, count: int, seed: int) -> Split:
    """The split with its features, but not the column of ones, mapped onto `count` random directions."""
    directions = np.random.default_rng(seed).normal(size=(split.x.shape[1] - 1, count)) / math.sqrt(count)

    def apply(x: Features) -> Features:
        return np.concatenate([x[:, :1], x[:, 1:] @ directions], axis=1).astype(np.float32)

    return split._replace(x=apply(split.x), x_test=apply(split.x_test))


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """For each data set accuracy and log-likelihood of the guides, and accuracy against the number of directions."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    grid = figure.subplots(len(names), 3, squeeze=False)
    for panels, name in zip(grid, names, strict=True):
        here = pick(rows, data=name)
        for axes, score in zip(panels[:2], SCORES, strict=True):
            _guides(axes, here, score)
            axes.set_title(f"{name}: covariance of the guide", fontsize=10)
            axes.set_ylabel("test accuracy" if score == "accuracy" else "mean test log-likelihood")
        _directions(panels[2], here)
        panels[2].set_title(f"{name}: random projections", fontsize=10)
        panels[2].set_ylabel("test accuracy")
        for axes in panels:
            quiet(axes)
            axes.legend(fontsize=8, frameon=False)
    figure.suptitle(TITLE, fontsize=12)


def _guides(axes: Axes, rows: Sequence[Row], score: str) -> None:
    for curve in dict.fromkeys(row["curve"] for row in pick(rows, way="guide")):
        points = pick(rows, way="guide", curve=curve)
        color, ls = BLUE if curve.startswith("aligned") else SKY, "--" if curve.endswith("full-rank") else "-"
        marked(axes, points, "epsilon", score, f"gap_{score}_se", color=color, ls=ls, label=curve)
    axes.axhline(pick(rows, curve="all features")[0][score], color=GREY, linewidth=1.0, label="non-private")
    axes.set_xscale("log")
    axes.set_xlabel(f"ε, δ = {DELTA:g}")


def _directions(axes: Axes, rows: Sequence[Row]) -> None:
    from matplotlib import colormaps

    epsilons = sorted({row["epsilon"] for row in pick(rows, way="projection")})
    looks = [(epsilon, colormaps["viridis"](0.8 - 0.7 * i / len(epsilons))) for i, epsilon in enumerate(epsilons)]
    for epsilon, color in [*looks, (math.inf, GREY)]:
        points = [row for row in pick(rows, epsilon=epsilon) if row["way"] != "guide"]
        points += pick(rows, way="guide", curve="aligned, mean-field", epsilon=epsilon)
        label = "non-private" if math.isinf(epsilon) else f"ε = {epsilon:g}"
        marked(axes, points, "features", "accuracy", "accuracy_se", color=color, label=label)
    axes.set_xlabel("random directions (last: all features, not projected)")


EXPERIMENTS = {"dpvi-covariance": Experiment(TITLE, (13.0, 8.0), compute, draw, ("data_dir",))}
