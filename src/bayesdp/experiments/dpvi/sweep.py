"""S2 Figs. 2 and 3 (J12-J13): accuracy against ε for several sampling rates q, and for several clip norms c.

One setting is swept on Abalone and Adult, in three ways: "paper", S2's recipe as coded with its σ, against the ε that
it claims; a second way that changes one thing about it, against the exact ε; and "ours", bd.VI at equal exact ε.

As coded the likelihood is multiplied by 1/q before clipping at c (K3): the clip norm of a record is really c q. So a
larger q also clips less; "same clip" keeps c q at the value of the largest q. And clip norms are 0.01 to 0.05 on
Abalone and 0.01 to 0.1 on Adult, where typical gradients are 0.5 to 2 long; "printed" clips at c itself, as the text
says. Abalone has T = 2000 as the text says; the code runs 2000/q steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.experiments import Experiment
from bayesdp.experiments.common.abalone_adult import Load, Split, abalone, adult
from bayesdp.experiments.common.style import GREY, Row, marked, pick, quiet
from bayesdp.experiments.dpvi import recipe
from bayesdp.experiments.dpvi.fits import LARGE, REFERENCE, fitted, splits, suggested, summary
from bayesdp.experiments.dpvi.recipe import DELTA, Reading
from bayesdp.learn.vi.vi import VI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPEATS, STEPS = 5, 2000
EPSILONS = (0.1, 0.3, 1.0)
CLAIMED_AND_EXACT = (recipe.moments, recipe.exact)


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


def _abalone(recipes: dict[str, tuple[Recipe, ...]]) -> Sweep:
    return Sweep("Abalone", abalone, recipes, sigmas=(2.0, 4.0, 6.0, 8.0, 10.0))


def _adult(recipes: dict[str, tuple[Recipe, ...]]) -> Sweep:
    return Sweep("Adult", adult, recipes, sigmas=(0.4, 0.8, 1.2, 1.6, 2.0), reference=LARGE)


def rate_recipes(rates: Sequence[float], clip: float) -> dict[str, tuple[Recipe, ...]]:
    """As coded, and with one clip norm for all rates."""
    return {
        "paper": tuple(Recipe(q, "coded", q, clip) for q in rates),
        "same clip": tuple(Recipe(q, "coded", q, clip * max(rates) / q) for q in rates[::2]),
    }


def clip_recipes(rate: float, clips: Sequence[float]) -> dict[str, tuple[Recipe, ...]]:
    """Both readings of c."""
    return {
        "paper": tuple(Recipe(c, "coded", rate, c) for c in clips),
        "printed": tuple(Recipe(c, "printed", rate, c) for c in clips[::2]),
    }


RATES = (
    replace(_abalone(rate_recipes((0.01, 0.0325, 0.055, 0.0775, 0.1), 5.0)), rates=(0.005, 0.01, 0.03, 0.1)),
    replace(_adult(rate_recipes((0.001, 0.002, 0.003, 0.004, 0.005), 50.0)), rates=(0.0005, 0.002, 0.008, 0.03)),
)

FACTORS = (1 / 16, 1 / 4, 1.0, 4.0)
"""Our clip norms by the suggested one."""

CLIPS = (
    replace(_abalone(clip_recipes(0.01, (1.0, 2.0, 3.0, 4.0, 5.0))), clip_factors=FACTORS),
    replace(_adult(clip_recipes(0.001, (10.0, 32.5, 55.0, 77.5, 100.0))), clip_factors=FACTORS),
)


def compute(sweeps: Sequence[Sweep], seed: int = 0, data_dir: str | Path | None = None) -> list[Row]:
    """Rows: data, way, curve (the swept value), claimed and exact ε, clip norm and rate, scores (`fits.summary`)."""
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
                plan = recipe.plan(
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


RATE_WAYS = {
    "paper": "the paper's, clip norm c q",
    "same clip": "the same, one clip norm for all q",
    "ours": "bd.VI, equal exact ε",
}
CLIP_WAYS = {
    "paper": "the paper's, clipped at c q",
    "printed": "as printed, clipped at c",
    "ours": "bd.VI, × suggested C",
}


def _experiment(name: str, sweeps: Sequence[Sweep], swept: str, ways: dict[str, str]) -> Experiment:
    title = f"{name}: the paper's recipe and bd.VI"
    picture = partial(draw, title=title, swept=swept, ways=ways)
    return Experiment(title, (13.0, 8.0), partial(compute, sweeps), picture, ("data_dir",))


EXPERIMENTS = {
    "dpvi-q": _experiment("Sampling rates", RATES, "q =", RATE_WAYS),
    "dpvi-clip": _experiment("Clip norms", CLIPS, "c", CLIP_WAYS),
}
