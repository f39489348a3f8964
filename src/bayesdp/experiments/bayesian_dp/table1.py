"""S1 Table I with the attacker's success P(A), from the runs that `results` holds (J5, J6, J8, J9)."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bayesdp import convert
from bayesdp.errors import unmet
from bayesdp.experiments import Experiment
from bayesdp.experiments.bayesian_dp.posterior import ABALONE, ADULT
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, pick, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "S1's Table I: printed, redone, and what holds at the same noise (δ = 10⁻⁵)"


LAST = 1e5
"""Where the picture ends; an infinite ε is drawn there."""

LINES: dict[str, dict[str, str]] = {
    "recipe, BDP redone: product": {"run": "recipe", "way": "paper", "curve": "product", "delta": "1e-05"},
    "recipe, BDP redone: Hölder": {"run": "recipe", "way": "paper", "curve": "Hölder", "delta": "1e-05"},
    "recipe, BDP sound: 90 % of people": {"run": "recipe", "way": "sound", "coverage": "0.9"},
    "recipe, DP: at most": {"run": "recipe", "way": "dp", "curve": "at most"},
    "records clipped, same noise, DP": {"run": "per record", "way": "dp"},
    "records clipped, same noise, BDP sound: 90 %": {"run": "per record", "way": "sound"},
    "noise multiplier σ (the text), DP": {"run": "text", "way": "dp"},
    "noise multiplier σ (the text), BDP sound: 90 %": {"run": "text", "way": "sound"},
    "no noise": {"run": "no noise"},
}
"""What is taken from the last step of a training run's CSV."""

_MEAN_FIELD = {"run": "mean-field", "way": "sound", "coverage": "0.9"}
POSTERIOR_LINES: dict[str, dict[str, str]] = {
    "ten samples, BDP redone: one-step": {"curve": "one-step recipe"},
    "ten samples, BDP sound: 90 % of people": {"curve": "tempered", "level": "1", **_MEAN_FIELD},
    "ten samples, DP": {"run": "mean-field", "curve": "no bounds"},
    "widened by 0.2, BDP sound: 90 % of people": {"curve": "widened", "level": "0.2", **_MEAN_FIELD},
    "widened by 0.8, BDP sound: 90 % of people": {"curve": "widened", "level": "0.8", **_MEAN_FIELD},
    "DPVI at 0.2, DP": {"run": "DPVI", "level": "0.2"},
    "secret mean": {"run": "mean-field", "curve": "no privacy"},
}
"""What is taken from the means over the runs of variational inference."""


@dataclass(frozen=True)
class Printed:
    """A line of the paper's table, and what is taken from which run; whether the run has a full size."""

    dataset: str
    source: str
    baseline: float
    accuracy: float
    dp: float
    bdp: float
    lines: Mapping[str, dict[str, str]]
    sized: bool = False


def _posterior(dataset: str, source: str, baseline: float, said: Mapping[str, float]) -> Printed:
    return Printed(dataset, source, baseline, said["accuracy"], said["dp"], said["bdp"], POSTERIOR_LINES)


PRINTED = (
    Printed("MNIST", "bdp-mnist", 0.99, 0.96, 2.18, 0.62, LINES, sized=True),
    Printed("CIFAR-10", "bdp-cifar10", 0.86, 0.73, 8.0, 0.51, LINES, sized=True),
    _posterior("Abalone", "bdp-abalone", 0.77, ABALONE.printed),
    _posterior("Adult", "bdp-adult", 0.81, ADULT.printed),
)


def compute(seed: int = 0, *, full: bool = False, results: str | Path = "results") -> list[Row]:
    """Rows (dataset, line, way, coverage, epsilon, attacker, accuracy) for the data sets whose runs exist.

    Bad input: no run in `results` gets `InputError` that says what to run first. The seed is that of the runs.
    """
    del seed
    rows: list[Row] = []
    for printed in PRINTED:
        path = Path(results) / f"{printed.source}{'-full' if full and printed.sized else ''}.csv"
        if path.is_file():
            rows += _dataset(printed, path)
    if not rows:
        wanted = " or ".join(
            f"bayesdp reproduce {one.source}{' --full' if full and one.sized else ''}" for one in PRINTED
        )
        raise unmet(
            "results", str(results), f"the table of a run in results={str(results)!r}", "none", f"Run first: {wanted}."
        )
    return rows


def _dataset(printed: Printed, path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    said = (
        ("no privacy", math.inf, printed.baseline),
        ("DP", printed.dp, printed.accuracy),
        ("BDP", printed.bdp, printed.accuracy),
    )
    rows = [
        _row(printed, f"S1 Table I: {name}", "paper", "", epsilon, convert.attacker_success(epsilon), accuracy)
        for name, epsilon, accuracy in said
    ]
    for name, where in printed.lines.items():
        found = pick(table, **where)
        if found:
            last = max(found, key=lambda row: int(row.get("step", 0)))
            values = (float(last[column]) for column in ("epsilon", "attacker", "accuracy"))
            rows.append(_row(printed, name, last["way"], last["coverage"], *values))
    return rows


def _row(printed: Printed, line: str, way: str, coverage: str, epsilon: float, attacker: float, accuracy: float) -> Row:
    said = {"epsilon": epsilon, "attacker": attacker, "accuracy": accuracy}
    return {"dataset": printed.dataset, "line": line, "way": way, "coverage": coverage, **said}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """A point for each line, ε on a logarithmic scale, P(A) and accuracy in words beside it."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    colors = {"paper": VERMILION, "sound": BLUE, "dp": GREEN, "none": "#888888"}
    for axes, name in zip(panels, names, strict=True):
        here = pick(rows, dataset=name)[::-1]
        for place, row in enumerate(here):
            shown = min(row["epsilon"], LAST)
            left = shown > 100
            axes.plot(shown, place, ">" if shown == LAST else "o", color=colors[row["way"]], markersize=8)
            size = "∞" if math.isinf(row["epsilon"]) else f"{row['epsilon']:.3g}"
            words = f"ε = {size}   P(A) = {100 * row['attacker']:.4g} %   accuracy {100 * row['accuracy']:.1f} %"
            at = {"xytext": (-9 if left else 9, -3), "ha": "right" if left else "left"}
            axes.annotate(words, (shown, place), textcoords="offset points", fontsize=8, **at)
        axes.set_yticks(range(len(here)), [row["line"] for row in here], fontsize=9)
        axes.set(xscale="log", xlim=(0.02, 2 * LAST), title=name)
        quiet(axes)
    panels[-1].set_xlabel("ε")
    figure.suptitle(TITLE, fontsize=12)


EXPERIMENTS = {"bdp-table1": Experiment(TITLE, (11.0, 12.6), compute, draw, ("full", "results"))}
