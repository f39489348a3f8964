"""Do credible intervals cover under DP noise? Simulated logistic regressions, plain and noise-aware posteriors (L6).

Each data set has parameters of its own, drawn from the prior N(0, I), so that the exact posterior's intervals would
cover with just their nominal probability. Plans are those of `VI.suggest` at ε = 1: nothing is tuned to the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np
from scipy.stats import norm

from bayesdp.data.dataset import Features, Labels
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, VERMILION, Row, legend_below, pick, quiet
from bayesdp.learn.models.regressions import logistic
from bayesdp.learn.vi.guide import Kind
from bayesdp.learn.vi.vi import VI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "How often credible intervals contain the truth under DP noise: plain DPVI and the noise-aware posterior"
EPSILON, DELTA = 1.0, 1e-5
RECORDS, COLUMNS, DATA_SETS, STEPS = 2000, 5, 200, 1000
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LOOKS = {"noise-aware": (BLUE, "-", "noise-aware posterior"), "plain": (VERMILION, "--", "plain DPVI")}


class Simulated(NamedTuple):
    """A data set and the parameters that made it; the last column is the constant."""

    truth: Array
    x: Features
    y: Labels


def simulated(rng: np.random.Generator, records: int) -> Simulated:
    """Parameters from the prior, standard normal features, answers from the model."""
    truth, x = rng.normal(size=COLUMNS), rng.normal(size=(records, COLUMNS)).astype(np.float32)
    x[:, -1] = 1
    y = (rng.random(records) < 1 / (1 + np.exp(-x @ truth))).astype(np.int32)
    return Simulated(truth, x, y)


def compute(seed: int = 0, *, data_sets: int = DATA_SETS, records: int = RECORDS, steps: int = STEPS) -> list[Row]:
    """Rows (guide, way, level, coverage, standard_error, width): shares over data sets and coordinates, mean width.

    The standard error takes data sets to be independent and the coordinates of one not.
    """
    rng, rows = np.random.default_rng(seed), []
    samples = [simulated(rng, records) for _ in range(data_sets)]
    for guide in get_args(Kind):
        first = samples[0]
        settings = {"epsilon": EPSILON, "delta": DELTA, "steps": steps, "guide": guide, "noise_aware": True}
        plan = VI.suggest(logistic, (first.x, first.y), **settings)
        fitted = [plan.fit(logistic, (one.x, one.y), seed=seed + i) for i, one in enumerate(samples)]
        away = {
            "noise-aware": [(p.mean - one.truth, p.std) for p, one in zip(fitted, samples, strict=True)],
            "plain": [(p.mean - one.truth, p.variational.std) for p, one in zip(fitted, samples, strict=True)],  # type: ignore[union-attr]
        }
        for way, pairs in away.items():
            errors, stds = (np.array(part) for part in zip(*pairs, strict=True))
            for level in LEVELS:
                half = float(norm.ppf(0.5 + level / 2)) * stds
                shares = (np.abs(errors) <= half).mean(axis=1)
                rows.append(
                    {
                        "guide": guide,
                        "way": way,
                        "level": level,
                        "coverage": float(shares.mean()),
                        "standard_error": float(shares.std(ddof=1) / np.sqrt(data_sets)),
                        "width": float(2 * half.mean()),
                    }
                )
    return rows


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """A panel for each guide: how often intervals cover against how often they say they do."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, guide in zip(panels, ("full-rank", "mean-field"), strict=True):
        axes.plot([0.45, 1], [0.45, 1], color="#999999", linewidth=1, label="as promised")
        for way, (colour, dashes, label) in LOOKS.items():
            own = pick(rows, guide=guide, way=way)
            axes.errorbar(
                [row["level"] for row in own],
                [row["coverage"] for row in own],
                yerr=[2 * row["standard_error"] for row in own],
                color=colour,
                linestyle=dashes,
                marker="o",
                markersize=4,
                capsize=2,
                label=label,
            )
        axes.set_title(f"{guide} guide", fontsize=11)
        axes.set_xlabel("nominal probability of the interval")
        quiet(axes)
    panels[0].set_ylabel("share of intervals that contain the truth")
    figure.suptitle(f"{TITLE}\n(logistic regression, ε = {EPSILON:g}, bars: two standard errors)", fontsize=11)
    legend_below(figure, panels[0], columns=3)


EXPERIMENTS = {"dpvi-coverage": Experiment(TITLE, (10.0, 4.8), compute, draw)}
