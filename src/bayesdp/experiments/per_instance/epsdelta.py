"""S3 Figs. 6-13 (J19): (ε, δ) of one step by Corollary 3.1 (E4) and by the averaged hockey stick (H7).

One step at the initial, middle and final checkpoint of a LeNet-5, for test records and S3's batches and noise;
δ'' = 10⁻⁵, half of it δ', p = 10⁴, 100 batches drawn. Noise is σ clip norms, on the sum or on the mean of a batch.

    Corollary 3.1      as printed: remove direction, classical Gaussian formula, which is proved for small ε only
    classical          S3's baseline, ln(q e^{CΔ} + 1 − q) at the clip norm: the same formula, data-independent
    H7, batches drawn  hockey stick averaged over the batches drawn, the larger direction; exact for the sum rule, where
                       every batch is moved alike, an estimate for the mean rule
    H7, sizes          averaged exactly over |B|, from the record's norm alone (`batches`): sound
    exact DP           hockey stick at the clip norm
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayesdp.data.dataset import Dataset
from bayesdp.divergence.hockey_stick import averaged_epsilon
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, PURPLE, VERMILION, Row, legend_below, pick, quiet
from bayesdp.experiments.per_instance import as_printed, batches, training
from bayesdp.experiments.per_instance.batches import Batches, Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "(ε, 10⁻⁵) of one step on MNIST: S3's Corollary 3.1 (ERR 14) and the hockey stick (H7)"

PRINTED, CLASSICAL, DRAWN, SIZES, EXACT = (
    "Corollary 3.1",
    "classical",
    "H7, batches drawn",
    "H7, sizes",
    "exact DP",
)


@dataclass(frozen=True)
class Size:
    """How much is done; `chosen` are other images."""

    model: str = "lenet5"
    epochs: float = 2
    trained_with: int = training.BATCH
    batches: tuple[int, ...] = tuple(training.SIGMAS)
    points: int = 100
    drawn: int = 100
    chosen: Dataset | None = None


def compute(seed: int = 0, *, data_dir: str | Path | None = None, size: Size | None = None) -> list[Row]:
    """Rows (rule, batch, sigma, stage, way, curve, whose, who, epsilon, records, accuracy)."""
    size = size or Size()
    trained = training.at_s3s_noise(
        size.chosen, size.model, seed, batch=size.trained_with, epochs=size.epochs, data_dir=data_dir
    )
    problem, points = trained.problem, trained.problem.outsiders(size.points, seed)
    rows = []
    for stage, accuracy in zip(training.STAGES, trained.accuracy, strict=True):
        params = trained.stage(stage)
        right = problem.correct(params, points)
        for batch in size.batches:
            pool = batches.draw(problem, params, points, batch=batch, count=size.drawn, seed=seed)
            fixed = {"batch": batch, "sigma": training.SIGMAS[batch], "stage": stage, "accuracy": accuracy}
            for rule in ("mean", "sum"):
                rows += rule_rows(rule, pool, problem.size, right, fixed)
    return rows


def rule_rows(rule: Rule, pool: Batches, size: int, right: npt.NDArray[np.bool_], fixed: Row) -> list[Row]:
    """One rule at one checkpoint and batch: shares of all records, of those classified right and of the others."""
    rate, sigma = fixed["batch"] / size, fixed["sigma"]
    shifts = pool.moves(rule) / sigma
    corollary = np.array([as_printed.corollary_3_1(one, sampling_rate=rate, delta=training.DELTA) for one in shifts])
    drawn = hockey(shifts if rule == "mean" else shifts[:, :1], rate)
    found = [
        ("printed", PRINTED, corollary),
        ("estimate" if rule == "mean" else "sound", DRAWN, drawn),
        ("sound", SIZES, drawn if rule == "sum" else by_size(pool.norms, size, rate, sigma)),
    ]
    whose = {"all": np.ones_like(right), "right": right, "wrong": ~right}
    rows = []
    for way, curve, values in found:
        for name, chosen in whose.items():
            for who, epsilon in training.people(values[chosen]) if chosen.any() else ():
                rows.append(_row(rule, fixed, way, curve, name, who, epsilon, int(chosen.sum())))
    everybody = float(hockey(np.array([[1 / sigma]]), rate)[0])
    rows.append(_row(rule, fixed, "printed", CLASSICAL, "all", "all", classical(sigma, rate), len(right)))
    rows.append(_row(rule, fixed, "sound", EXACT, "all", "all", everybody, len(right)))
    return rows


def hockey(shifts: Array, rate: float, weights: Any = None) -> Array:
    """ε at δ by the averaged hockey stick (H7) for (records, batches), the larger of both directions."""
    ways: Any = ("remove", "add")
    each = [
        averaged_epsilon(training.DELTA, shifts, sampling_rate=rate, direction=way, weights=weights) for way in ways
    ]
    return np.asarray(np.maximum(*each))


def by_size(norms: Array, size: int, rate: float, sigma: float) -> Array:
    """ε at δ of the mean rule by H7, averaged exactly over |B|; norms are rounded up to twentieths to save time."""
    counts, weights = batches.size_law(size, rate)
    rounded, place = np.unique(np.ceil(20 * norms) / 20, return_inverse=True)
    shifts = np.stack([batches.largest_moves(float(norm), counts) for norm in rounded]) / sigma
    return hockey(shifts, rate, weights)[place]


def classical(sigma: float, rate: float) -> float:
    """S3's baseline: δ'' = q δ and ε' = ln(q e^{√(2 ln(1.25/δ))/σ} + 1 − q)."""
    slope = math.sqrt(2 * math.log(1.25 * rate / training.DELTA))
    return math.log(rate * math.exp(slope / sigma) + 1 - rate)


def _row(rule: str, fixed: Row, way: str, curve: str, whose: str, who: str, epsilon: float, records: int) -> Row:
    return {
        "rule": rule,
        "batch": fixed["batch"],
        "sigma": fixed["sigma"],
        "stage": fixed["stage"],
        "way": way,
        "curve": curve,
        "whose": whose,
        "who": who,
        "epsilon": epsilon,
        "records": records,
        "accuracy": fixed["accuracy"],
    }


LOOKS: dict[str, dict[str, Any]] = {
    PRINTED: {"color": VERMILION, "marker": "o"},
    CLASSICAL: {"color": VERMILION, "ls": "--"},
    DRAWN: {"color": PURPLE, "marker": "s"},
    SIZES: {"color": BLUE, "marker": "^"},
    EXACT: {"color": GREEN, "ls": "--"},
}

_LEAST = 1e-7
"""An ε of 0 is drawn here."""


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """ε against the batch by stage, median of the records: the mean rule above, the sum rule below."""
    panels = figure.subplots(2, 3, sharex=True)
    for line, rule in zip(panels, ("mean", "sum"), strict=True):
        for axes, stage in zip(line, training.STAGES, strict=True):
            for curve, look in LOOKS.items():
                who = "all" if curve in (CLASSICAL, EXACT) else "half"
                points = pick(rows, rule=rule, stage=stage, curve=curve, whose="all", who=who)
                across = [str(row["batch"]) for row in points]
                up = [max(row["epsilon"], _LEAST) for row in points]
                axes.plot(across, up, label=curve, linewidth=1.3, **look)
            axes.set(title=f"{rule} rule, {stage}", yscale="log")
            axes.axhline(_LEAST, color=GREY, linewidth=0.6)
            quiet(axes)
        line[0].set_ylabel("ε, δ = 10⁻⁵ (0 at the foot)")
    for axes in panels[1]:
        axes.set_xlabel("batch")
    legend_below(figure, panels[0][0], columns=5)
    figure.suptitle(TITLE, fontsize=12)


EXPERIMENTS = {"instance-epsdelta": Experiment(TITLE, (12.5, 7.0), compute, draw, ("data_dir",))}
