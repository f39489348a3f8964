"""S2 Figs. 2 and 3, SPEC J12-J13: what `dpvi-q` and `dpvi-clip` share.

One setting is swept on both data sets, in three ways: "paper", S2's recipe as coded with its σ, against the ε that it
claims; a second way that changes one thing about it, against the exact ε; and "ours", bd.VI at equal exact ε.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.experiments import s2_recipe
from bayesdp.experiments.s2_data import Split
from bayesdp.experiments.s2_logistic import REFERENCE, Load, fitted, splits, suggested, summary
from bayesdp.experiments.s2_recipe import DELTA, Reading
from bayesdp.experiments.style import GREY, Row, marked, pick, quiet
from bayesdp.learn.vi import VI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (13.0, 8.0)
REPEATS, STEPS = 5, 2000
EPSILONS = (0.1, 0.3, 1.0)
CLAIMED_AND_EXACT = (s2_recipe.moments, s2_recipe.exact)


@dataclass(frozen=True)
class Recipe:
    """S2's recipe with one setting changed: `value` is what a curve is called."""

    value: float
    reading: Reading
    sampling_rate: float
    clip: float


@dataclass(frozen=True)
class Sweep:
    """One data set: recipes by way, S2's grid of σ, and the rates or clip norms (as factors) of our own plans."""

    name: str
    load: Load
    recipes: dict[str, tuple[Recipe, ...]]
    sigmas: tuple[float, ...]
    rates: tuple[float, ...] = ()
    clip_factors: tuple[float, ...] = ()
    epsilons: tuple[float, ...] = EPSILONS
    repeats: int = REPEATS
    steps: int = STEPS
    reference: VI = REFERENCE

    def ours(self, split: Split) -> Iterator[tuple[float, float, VI]]:
        """(value, ε, plan) of bd.VI."""
        clip = suggested(split, 1.0, sampling_rate=0.1).clip_norm
        for epsilon in self.epsilons:
            for rate in self.rates:
                yield rate, epsilon, suggested(split, epsilon, sampling_rate=rate)
            for factor in self.clip_factors:
                yield factor, epsilon, suggested(split, epsilon, clip_norm=factor * clip)


def compute(sweeps: Sequence[Sweep], seed: int, data_dir: str | Path | None) -> list[Row]:
    """Rows: data, way, curve (the swept value), claimed and exact ε, clip norm and rate, scores (`s2_logistic`)."""
    return [row for sweep in sweeps for row in _rows(sweep, seed, data_dir)]


def _rows(sweep: Sweep, seed: int, data_dir: str | Path | None) -> Iterator[Row]:
    data = splits(sweep.load, sweep.repeats, seed, data_dir)
    free = fitted(sweep.reference, data, seed)

    def row(way: str, value: float | str, claimed: float | str, epsilon: float, plan: VI) -> Row:
        scores = free if plan is sweep.reference else fitted(plan, data, seed)
        setting = {"clip_norm": plan.clip_norm or "", "sampling_rate": plan.sampling_rate}
        at = {"data": sweep.name, "way": way, "curve": value, "claimed": claimed, "epsilon": epsilon}
        return {**at, **setting, "repeats": len(scores), **summary(scores, gap=free)}

    yield row("non-private", "", "", float("inf"), sweep.reference)
    for way, recipes in sweep.recipes.items():
        for one in recipes:
            for sigma in sweep.sigmas:
                plan = s2_recipe.plan(
                    one.reading, sampling_rate=one.sampling_rate, steps=sweep.steps, clip=one.clip, sigma=sigma
                )
                claimed, exact = (how(sigma, one.sampling_rate, sweep.steps) for how in CLAIMED_AND_EXACT)
                yield row(way, one.value, claimed, exact, plan)
    for value, epsilon, plan in sweep.ours(data[0]):
        yield row("ours", value, "", epsilon, plan)


def draw(figure: Figure, rows: Sequence[Row], *, title: str, swept: str, ways: dict[str, str]) -> None:
    """A row of panels for each data set, a panel for each way, whose titles are `ways`; darker is more."""
    from matplotlib import colormaps

    names = list(dict.fromkeys(row["data"] for row in rows))
    grid = figure.subplots(len(names), len(ways), sharey="row", squeeze=False)
    for panels, name in zip(grid, names, strict=True):
        free = pick(rows, data=name, way="non-private")[0]
        for axes, (way, words) in zip(panels, ways.items(), strict=True):
            here = pick(rows, data=name, way=way)
            values = sorted({row["curve"] for row in here})
            x = "claimed" if way == "paper" else "epsilon"
            for value, shade in zip(values, np.linspace(0.9, 0.1, len(values)), strict=True):
                color = colormaps["viridis"](shade)
                points = pick(here, curve=value)
                marked(axes, points, x, "accuracy", "gap_accuracy_se", color=color, label=f"{swept} {value:.3g}")
            axes.axhline(free["accuracy"], color=GREY, linewidth=1.0)
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter("")
            axes.set_title(f"{name}: {words}", fontsize=10)
            axes.set_xlabel(f"{'claimed' if way == 'paper' else 'exact'} ε, δ = {DELTA:g}")
            quiet(axes)
            axes.legend(fontsize=8, frameon=False, loc="lower right")
        panels[0].set_ylabel("test accuracy (grey: non-private)")
    figure.suptitle(title, fontsize=12)
