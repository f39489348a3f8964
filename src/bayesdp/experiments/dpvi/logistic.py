"""S2 Fig. 1 (J10-J11): private logistic regression on Abalone (left) and Adult (right).

S2's recipe (`recipe`), DP-SGLD, `bd.VI` with the settings that it suggests, and the fit without privacy. In the way
"paper" every curve has the ε that the paper claims for it; in the way "exact" all have the same ε, of the exact
accounting for a record replaced. `gap` is the difference from the non-private fit, `ahead` from S2's recipe as coded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.accountant.calibrate import noise_for
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.baselines.wang_sgld import WangSGLD
from bayesdp.experiments.common import abalone_adult
from bayesdp.experiments.common.abalone_adult import Load, Split
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Row, marked, pick, quiet
from bayesdp.experiments.dpvi import recipe
from bayesdp.experiments.dpvi.fits import LARGE, REFERENCE, averaged, fitted, splits, suggested, summary
from bayesdp.experiments.dpvi.recipe import DELTA, Reading
from bayesdp.learn.models import regressions
from bayesdp.learn.vi.vi import VI

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REPEATS = 10
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
CLAIMED = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""What DP-SGLD's formula is told to keep."""

LAST = 100
"""Iterates of DP-SGLD that predictions are averaged over, as S2 does."""


@dataclass(frozen=True)
class Problem:
    """S2's numbers for a data set: q, T, c and its grid of σ; passes and L of DP-SGLD. Then the size of the run."""

    load: Load
    sampling_rate: float
    steps: int
    clip: float
    sigmas: tuple[float, ...]
    passes: float
    bound: float
    repeats: int = REPEATS
    epsilons: tuple[float, ...] = EPSILONS
    claimed: tuple[float, ...] = CLAIMED
    reference: VI = REFERENCE

    def paper(self, reading: Reading, sigma: float | None = None) -> VI:
        """S2's recipe."""
        return recipe.plan(reading, sampling_rate=self.sampling_rate, steps=self.steps, clip=self.clip, sigma=sigma)

    def sgld(self, epsilon: float) -> WangSGLD:
        """The baseline, ε as its formula has it."""
        return WangSGLD(
            epsilon=epsilon, sampling_rate=self.sampling_rate, passes=self.passes, bound=self.bound, delta=DELTA
        )

    def sgld_exactly(self, epsilon: float) -> WangSGLD:
        """The baseline told that ε with which it really costs `epsilon`: K is proportional to 1/ε²."""
        unit = self.sgld(1.0)
        z = noise_for(epsilon, DELTA, sampling_rate=self.sampling_rate, steps=unit.steps, adjacency="replace-one")
        # All steps have the multiplier sqrt(K) q / L as long as η² K >= η.
        return self.sgld(math.sqrt(unit.constant) * self.sampling_rate / (z * (1 + 1e-6) * self.bound))


ABALONE = Problem(
    load=abalone_adult.abalone,
    sampling_rate=0.05,
    steps=1000,
    clip=5.0,
    sigmas=tuple(np.exp(np.linspace(0.2, 5, 10)).tolist()),
    passes=10,
    bound=5.0,
)
ADULT = Problem(
    load=abalone_adult.adult,
    sampling_rate=0.005,
    steps=2000,
    clip=75.0,
    sigmas=tuple(np.exp(-np.linspace(-3, 0.3, 10)).tolist()),
    passes=2,
    bound=10.0,
    epsilons=(0.1, 0.2, 0.5, 1.0),
    reference=LARGE,
)


def compute(problem: Problem, seed: int = 0, data_dir: str | Path | None = None) -> list[Row]:
    """Rows: way, curve, epsilon, and the columns of `fits.summary`."""
    data = splits(problem.load, problem.repeats, seed, data_dir)
    free = fitted(problem.reference, data, seed)
    rows = [_row("non-private", "non-private", math.inf, free, free)]
    for sigma in problem.sigmas:
        scores = fitted(problem.paper("coded", sigma), data, seed)
        for claim in (recipe.moments, recipe.advanced, recipe.exact):
            epsilon = claim(sigma, problem.sampling_rate, problem.steps)
            rows.append(_row("paper", f"DPVI, {claim.__name__}", epsilon, scores, free))
    for epsilon in problem.claimed:
        rows.append(_row("paper", "DP-SGLD", epsilon, _chains(problem.sgld(epsilon), data, seed), free))
    for epsilon in problem.epsilons:
        found = _at(problem, epsilon, data, seed)
        rows += [_row("exact", curve, epsilon, scores, free, found["coded"]) for curve, scores in found.items()]
    return rows


def _at(problem: Problem, epsilon: float, data: Sequence[Split], seed: int) -> dict[str, Array]:
    """The scores of every method at one exact ε."""
    return {
        "coded": fitted(problem.paper("coded").calibrate(epsilon), data, seed),
        "printed": fitted(problem.paper("printed").calibrate(epsilon), data, seed),
        "DP-SGLD": _chains(problem.sgld_exactly(epsilon), data, seed),
        "plain": fitted(suggested(data[0], epsilon, "plain"), data, seed),
        "natural": fitted(suggested(data[0], epsilon, "natural"), data, seed),
        "aligned": fitted(suggested(data[0], epsilon), data, seed),
        "noise-aware": fitted(suggested(data[0], epsilon, noise_aware=True), data, seed),
    }


def _chains(plan: WangSGLD, data: Sequence[Split], seed: int) -> Array:
    chains = [plan.fit(regressions.logistic, split.train, seed=seed + i) for i, split in enumerate(data)]
    return np.array([averaged(chain.draws[-LAST:], split) for chain, split in zip(chains, data, strict=True)])


def _row(way: str, curve: str, epsilon: float, scores: Array, free: Array, coded: Array | None = None) -> Row:
    row = summary(scores, gap=free, ahead=scores if coded is None else coded)
    if coded is None:  # nothing at the same ε to compare with
        row |= {column: "" for column in row if column.startswith("ahead")}
    return {"way": way, "curve": curve, "epsilon": epsilon, "repeats": len(scores), **row}


CLAIMS = {
    "DPVI, advanced": {"color": ORANGE, "label": "S2's DPVI as coded, ε by advanced composition"},
    "DPVI, moments": {"color": VERMILION, "label": "the same runs, ε by the moments accountant"},
    "DPVI, exact": {"color": GREEN, "label": "the same runs, exact ε (record replaced)"},
    "DP-SGLD": {"color": PURPLE, "label": "DP-SGLD, ε by its formula"},
}
METHODS = {
    "printed": {"color": ORANGE, "label": "S2's DPVI as printed"},
    "coded": {"color": VERMILION, "label": "S2's DPVI as coded"},
    "DP-SGLD": {"color": PURPLE, "label": "DP-SGLD"},
    "plain": {"color": SKY, "label": "bd.VI, plain"},
    "natural": {"color": GREEN, "label": "bd.VI, natural gradient"},
    "aligned": {"color": BLUE, "label": "bd.VI, aligned (default)"},
    "noise-aware": {"color": BLUE, "ls": "--", "label": "bd.VI, noise-aware"},
}


LOWEST = -1.0
"""Where the axis of log-likelihoods ends."""


def draw(figure: Figure, rows: Sequence[Row], *, title: str) -> None:
    """Accuracy with the papers' ε; accuracy and log-likelihood at equal exact ε."""
    claimed, equal, fitted_well = figure.subplots(1, 3)
    _panel(claimed, pick(rows, way="paper"), CLAIMS, "accuracy")
    _panel(equal, pick(rows, way="exact"), METHODS, "accuracy")
    _panel(fitted_well, pick(rows, way="exact"), METHODS, "log_likelihood")
    free = pick(rows, way="non-private")[0]
    for axes, score in ((claimed, "accuracy"), (equal, "accuracy"), (fitted_well, "log_likelihood")):
        axes.axhline(free[score], color=GREY, linewidth=1.0, label="non-private")
    fitted_well.set_ylim(bottom=LOWEST)
    claimed.set_title("the paper's setting, ε as claimed and exact", fontsize=10)
    equal.set_title("all at the same exact ε", fontsize=10)
    fitted_well.set_title("all at the same exact ε", fontsize=10)
    claimed.set_ylabel("test accuracy")
    equal.set_ylabel("test accuracy")
    fitted_well.set_ylabel("mean test log-likelihood")
    for axes in (claimed, fitted_well):
        axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    figure.suptitle(title, fontsize=12)


def _panel(axes: Axes, rows: Sequence[Row], looks: dict[str, dict[str, str]], score: str) -> None:
    """Lines with the standard errors of the differences from the non-private fit."""
    for curve, look in looks.items():
        marked(axes, pick(rows, curve=curve), "epsilon", score, f"gap_{score}_se", **look)
    axes.set_xscale("log")
    axes.set_xlabel(f"ε, δ = {DELTA:g}")
    quiet(axes)


def _experiment(name: str, problem: Problem) -> Experiment:
    title = f"{name}, private variational inference: the paper's recipe and bd.VI"
    return Experiment(title, (13.0, 5.4), partial(compute, problem), partial(draw, title=title), ("data_dir",))


EXPERIMENTS = {"dpvi-abalone": _experiment("Abalone", ABALONE), "dpvi-adult": _experiment("Adult", ADULT)}
