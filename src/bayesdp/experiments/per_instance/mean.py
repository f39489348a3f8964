"""S3 Figs. 4, 25-35 (J18): the mean rule, by Theorem 3.6 from 20 x 20 samples and by averaged sensitivity (H1).

One step at the initial, middle and final checkpoint of a LeNet-5 that was trained with the sum rule: noise of σ clip
norms on the mean of a batch. For test records x*, X' = X + x*:

    Theorem 3.6          as printed, a plug-in of 20 batches and 20 tuples of α batches for each; tuples are drawn from
                         a common pool
    H1, batches drawn    averaged over the pool: an estimate
    H1, own batch        of a step whose batch counts as revealed (H3), the largest of the pool: sound for such a step
    H1, sizes            averaged exactly over |B|, from the record's norm alone (`batches`): sound
    clip norm            the data-independent cost, sensitivity C: S3's baseline

"nobody" is a record whose clipped gradient is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesdp.data.dataset import Dataset
from bayesdp.divergence import sgm
from bayesdp.divergence.averaged import averaged_cost
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREY, PURPLE, SKY, VERMILION, Row, legend_below, pick, quiet
from bayesdp.experiments.per_instance import as_printed, batches, training
from bayesdp.experiments.per_instance.batches import Batches, Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The mean rule, one step on MNIST: S3's Theorem 3.6 (20 x 20 samples, ERR 19) and H1"

ORDERS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
NOBODY = "nobody"
PRINTED, DRAWN, OWN, SIZES, BASELINE = (
    "Theorem 3.6",
    "H1, batches drawn",
    "H1, own batch",
    "H1, sizes",
    "clip norm",
)


@dataclass(frozen=True)
class Size:
    """How much is done; `pool` is at least the largest order, `chosen` are other images."""

    model: str = "lenet5"
    epochs: float = 2
    batches: tuple[int, ...] = (32, 128, 512)
    points: int = 10
    pool: int = 400
    chosen: Dataset | None = None


def compute(seed: int = 0, *, data_dir: str | Path | None = None, size: Size | None = None) -> list[Row]:
    """Rows (rule, batch, stage, way, curve, direction, order, who, divergence, relative, epsilon, accuracy).

    `epsilon` is at δ, of as many steps as S3's training has that all cost the same, the least over orders.
    """
    size = size or Size()
    usual = training.BATCH if training.BATCH in size.batches else size.batches[0]
    trained = training.at_s3s_noise(size.chosen, size.model, seed, batch=usual, epochs=size.epochs, data_dir=data_dir)
    problem, points = trained.problem, trained.problem.outsiders(size.points, seed)
    rows = []
    for stage, accuracy in zip(training.STAGES, trained.accuracy, strict=True):
        for batch in size.batches if stage == "final" else (usual,):
            pool = batches.draw(
                problem, trained.stage(stage), points, batch=batch, count=as_printed.SAMPLES + size.pool, seed=seed
            )
            for rule in ("mean", "sum") if batch == usual else ("mean",):
                step = Step(rule, batch, problem.size, training.SIGMAS[batch], pool, seed)
                rows += step_rows(step, {"stage": stage, "accuracy": accuracy})
    return rows


@dataclass(frozen=True)
class Step:
    """A step to be costed: its rule, batch and noise, and batches drawn from N records."""

    rule: Rule
    batch: int
    size: int
    sigma: float
    pool: Batches
    seed: int

    @property
    def rate(self) -> float:
        """Q."""
        return self.batch / self.size

    @property
    def steps(self) -> int:
        """Of S3's training."""
        return round(training.EPOCHS / self.rate)


def step_rows(step: Step, fixed: Row) -> list[Row]:
    """All bounds of one step, for the records and for nobody."""
    nobody = np.zeros((1, step.pool.records.shape[1]))
    pool = Batches(step.pool.sums, step.pool.sizes, np.concatenate([step.pool.records, nobody]))
    shifts = pool.moves(step.rule) / step.sigma
    worst = sgm.cost(np.array(1 / step.sigma), ORDERS, sampling_rate=step.rate) / (ORDERS - 1)
    own = sgm.cost(shifts.max(axis=1), ORDERS, sampling_rate=step.rate) / (ORDERS - 1)
    found: list[tuple[str, str, str, Array]] = [
        ("printed", PRINTED, way, theorem_3_6(step, pool, way)) for way in ("remove", "add")
    ]
    drawn = averaged_cost(shifts, ORDERS, sampling_rate=step.rate) / (ORDERS - 1)
    found += [
        ("estimate" if step.rule == "mean" else "sound", DRAWN, "both", drawn),
        ("sound", OWN, "both", own),
        ("sound", SIZES, "both", drawn if step.rule == "sum" else by_size(step, pool.norms)),
        ("sound", BASELINE, "both", np.broadcast_to(worst, own.shape)),
    ]
    rows = []
    for way, curve, direction, values in found:
        epsilons = training.of_steps(values, ORDERS, step.steps)
        for who, at in (
            ("half", np.median(values[:-1], axis=0)),
            ("most", values[:-1].max(axis=0)),
            (NOBODY, values[-1]),
        ):
            spent = {"half": np.median(epsilons[:-1]), "most": epsilons[:-1].max(), NOBODY: epsilons[-1]}[who]
            for order, value, baseline in zip(ORDERS, at, worst, strict=True):
                rows.append(
                    {
                        "rule": step.rule,
                        "batch": step.batch,
                        "stage": fixed["stage"],
                        "way": way,
                        "curve": curve,
                        "direction": direction,
                        "order": int(order),
                        "who": who,
                        "divergence": float(value),
                        "relative": float(value / baseline),
                        "epsilon": float(spent),
                        "accuracy": fixed["accuracy"],
                    }
                )
    return rows


def theorem_3_6(step: Step, pool: Batches, direction: str) -> Array:
    """As printed, (records, orders): the outer batches are the pool's first, tuples are drawn from the others."""
    samples, rng = as_printed.SAMPLES, np.random.default_rng(step.seed)
    most = int(ORDERS[-1])
    others = np.arange(samples, len(pool.sums))
    chosen = rng.permuted(np.tile(others, (samples, samples, 1)), axis=-1)[..., :most]
    inside = rng.random((samples, samples, most)) < step.rate, rng.random(samples) < step.rate
    without = pool.updates(step.rule)
    result = np.empty((len(pool.records), len(ORDERS)))
    for i, record in enumerate(pool.records):
        joined = pool.updates(step.rule, record)
        tuples, outer = without[chosen], without[:samples].copy()
        if direction == "remove":  # the tuples are of X'
            tuples[inside[0]] = joined[chosen[inside[0]]]
        else:
            outer[inside[1]] = joined[:samples][inside[1]]
        for k, order in enumerate(ORDERS):
            result[i, k] = as_printed.theorem_3_6(outer, tuples[:, :, : int(order)], int(order), step.sigma)
    return result


def by_size(step: Step, norms: Array) -> Array:
    """The mean rule by H1, averaged exactly over |B|: (records, orders)."""
    counts, weights = batches.size_law(step.size, step.rate)
    shifts = np.stack([batches.largest_moves(float(norm), counts) for norm in norms]) / step.sigma
    return np.asarray(averaged_cost(shifts, ORDERS, sampling_rate=step.rate, weights=weights) / (ORDERS - 1))


LOOKS: dict[str, dict[str, Any]] = {
    PRINTED: {"color": VERMILION, "marker": "o"},
    DRAWN: {"color": PURPLE, "marker": "s"},
    OWN: {"color": SKY, "marker": "v"},
    SIZES: {"color": BLUE, "marker": "^"},
    BASELINE: {"color": GREY, "marker": "_"},
}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Median over records: against the order (final), the stage and the batch (α = 8), and as ε at δ."""
    panels = figure.subplots(1, 4)
    mean = pick(rows, rule="mean", who="half")
    usual = pick(mean, stage="initial")[0]["batch"]
    columns = (
        ("order", pick(mean, stage="final", batch=usual), "final, by order α", "divergence"),
        ("stage", pick(mean, batch=usual, order=training.ORDER), "by stage, α = 8", "divergence"),
        ("batch", pick(mean, stage="final", order=training.ORDER), "final, by batch, α = 8", "divergence"),
        ("batch", pick(mean, stage="final", order=training.ORDER), "final, by batch: ε at δ of all steps", "epsilon"),
    )
    for axes, (column, chosen, title, quantity) in zip(panels, columns, strict=True):
        for curve, look in LOOKS.items():
            points = [row for row in pick(chosen, curve=curve) if row["direction"] != "add"]
            across = [str(row[column]) for row in points]
            axes.plot(across, [row[quantity] for row in points], label=curve, linewidth=1.3, **look)
        axes.set(title=title, yscale="log")
        quiet(axes)
    panels[0].set_ylabel("D_α of a step, median of the records")
    legend_below(figure, panels[0], columns=5)
    figure.suptitle(TITLE, fontsize=12)


EXPERIMENTS = {"instance-mean": Experiment(TITLE, (13.0, 4.8), compute, draw, ("data_dir",))}
