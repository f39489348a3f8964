"""S3 Figs. 2, 3, 14-22 (J17, E14): how the cost of a step is spread over 500 training records (ERR 22).

    stage        initial, middle and final checkpoint of LeNet-5 on MNIST, batch 128, noise for DP ε = 10
    batch, training ε, model    one of them changed; CIFAR-10: a linear model on features of 5,000 photographs
    order        the same costs at other orders α

Two quantities for each: Theorem 3.2 as S3 shows it, D_8 relative to a record at the clip norm; and the ε at δ of as
many steps as the training has, all at that distance. For the training ε, also the ε at δ of the run that happened (H3)
for the first of the records: S3 §5.3 asks whether less noise lowers the tenth percentile's.

By default two epochs, and noise that keeps the training ε over them by Rényi accounting, S3's own; `full`: ten epochs,
all of S3's batches, and ResNet-20 on photographs (with group normalisation; S3 has two hundred epochs of it).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesdp import data
from bayesdp.data.dataset import Dataset, with_features
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, Row, pick, quiet
from bayesdp.experiments.per_instance import training
from bayesdp.mechanism import use_host_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Costs of a step for 500 training records: at α = 8 as S3 shows them, and as ε at δ = 10⁻⁵ (ERR 22)"

ORDERS = (2, 4, 8, 16, 32, 64)
WHOSE = ("all", "right", "wrong")
PHOTOGRAPHS = (5000, 2000)
"""Of CIFAR-10, to train and to test on."""

PIXELS = "cifar10-pixels"
RUN = "run that happened (H3)"
STEP = "Theorem 3.2"


@dataclass(frozen=True)
class Setting:
    """One training: what is changed, and to what."""

    sweep: str
    value: Any
    model: str = "lenet5"
    batch: int = training.BATCH
    epsilon: float = 10.0
    data: str = "mnist"


@dataclass(frozen=True)
class Size:
    """How much is done; `chosen` are other images, for both data sets."""

    epochs: float = 2
    base: Setting = Setting("base", "")
    batches: tuple[int, ...] = (64, 512)
    epsilons: tuple[float, ...] = (1.0, 3.0, 100.0)
    models: tuple[str, ...] = ("logistic", "mlp")
    networks: tuple[str, ...] = ()
    points: int = 500
    watched: int = 200
    chosen: Dataset | None = None

    def settings(self) -> list[Setting]:
        """The base first."""
        changed: list[tuple[str, str, tuple[Any, ...]]] = [
            ("training ε", "epsilon", self.epsilons),
            ("batch", "batch", self.batches),
            ("model", "model", self.models),
        ]
        found = [
            dataclasses.replace(self.base, sweep=sweep, value=value, **{field: value})
            for sweep, field, values in changed
            for value in values
        ]
        features = dataclasses.replace(self.base, sweep="data", value="CIFAR-10", model="logistic", data="cifar10")
        deep = [
            dataclasses.replace(self.base, sweep="data", value=f"CIFAR-10, {name}", model=name, data=PIXELS)
            for name in self.networks
        ]
        return [self.base, *found, features, *deep]


FULL = Size(
    epochs=training.EPOCHS, batches=(16, 32, 64, 256, 512), epsilons=(1.0, 3.0, 30.0, 100.0), networks=("resnet20",)
)


def compute(
    seed: int = 0, *, full: bool = False, data_dir: str | Path | None = None, size: Size | None = None
) -> list[Row]:
    """Rows (sweep, value, stage, whose, curve, order, who, divergence, relative, epsilon, dp, accuracy, records)."""
    use_host_cores()
    size = size or (FULL if full else Size())
    held: dict[str, Dataset] = {}
    rows = []
    for setting in size.settings():
        if setting.data not in held:
            held[setting.data] = size.chosen or _images(setting.data, data_dir, seed)
        rows += setting_rows(setting, held[setting.data], size, seed)
    return rows


def setting_rows(setting: Setting, images: Dataset, size: Size, seed: int) -> list[Row]:
    """Train, and cost a step for the records at each stage."""
    problem = training.problem(images, setting.model, seed)
    plan = training.plan(problem.size, batch=setting.batch, epochs=size.epochs, epsilon=setting.epsilon, engine="rdp")
    points = problem.members(size.points, seed)
    asked = setting.sweep in ("base", "training ε")
    first = points[0][: size.watched], points[1][: size.watched]
    trained = training.train(problem, plan, seed, watch=first if asked else None)
    noise: dict[str, Any] = {"sigma": float(plan.noise[0]), "rate": plan.sampling_rate}
    rows = []
    for stage, accuracy, near in zip(training.STAGES, trained.accuracy, trained.distances(points), strict=True):
        right = problem.correct(trained.stage(stage), points)
        fixed: Row = {"sweep": setting.sweep, "value": setting.value, "stage": stage, "accuracy": accuracy}
        fixed["dp"] = setting.epsilon
        spent = training.epsilon_of(near, **noise, steps=plan.steps)
        orders = ORDERS if setting.sweep == "base" else (training.ORDER,)
        costs = training.divergences(near, orders, **noise)
        worst = training.divergences(np.ones(1), orders, **noise)[0]
        for whose, chosen in zip(WHOSE, (np.ones_like(right), right, ~right), strict=True):
            for k, order in enumerate(orders):
                rows += _spread(fixed, whose, order, costs[chosen, k], float(worst[k]), spent[chosen])
    if asked:
        final = problem.correct(trained.stage("final"), first)
        epsilons = trained.run.losses()
        for whose, chosen in zip(WHOSE, (np.ones_like(final), final, ~final), strict=True):
            rows += _spread({**fixed, "stage": "whole run"}, whose, 0, None, 0.0, epsilons[chosen])
    return rows


def _spread(fixed: Row, whose: str, order: int, costs: Array | None, worst: float, epsilons: Array) -> list[Row]:
    """Shares of these records, both quantities; `costs` None: ε of the run that happened alone."""
    if not len(epsilons):
        return []
    divergences = dict(training.people(costs)) if costs is not None else {}
    return [
        {
            "sweep": fixed["sweep"],
            "value": fixed["value"],
            "stage": fixed["stage"],
            "whose": whose,
            "way": "sound",
            "curve": STEP if divergences else RUN,
            "order": order or "",
            "who": who,
            "divergence": divergences.get(who, ""),
            "relative": divergences[who] / worst if divergences else "",
            "epsilon": epsilon,
            "dp": fixed["dp"],
            "accuracy": fixed["accuracy"],
            "records": len(epsilons),
        }
        for who, epsilon in training.people(epsilons)
    ]


def _images(name: str, data_dir: str | Path | None, seed: int) -> Dataset:
    """MNIST, CIFAR-10's pixels, or scattering features of a part of it."""
    images = data.load(name.removesuffix("-pixels"), data_dir=data_dir)
    if name != "cifar10":
        return images
    train, test = PHOTOGRAPHS
    few = images.subset(min(train, len(images.x)), seed)
    few = dataclasses.replace(few, x_test=few.x_test[:test], y_test=few.y_test[:test], places=None)
    return with_features(few, "scattering")


COLORS = (VERMILION, PURPLE, BLUE, GREEN, ORANGE, GREY)
ACROSS = ("1 %", "10 %", "half", "90 %", "most")


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Shares of the records against their cost: S3's relative D_8 above, ε at δ below; last, by training ε (§5.3)."""
    panels = figure.subplots(2, 5)
    usual = pick(rows, sweep="base", curve=STEP, order=training.ORDER)
    final = pick(usual, stage="final", whose="all")

    def others(sweep: str) -> dict[str, list[Row]]:
        found = pick(rows, sweep=sweep, curve=STEP, stage="final", whose="all", order=training.ORDER)
        return {str(value): pick(found, value=value) for value in dict.fromkeys(row["value"] for row in found)}

    groups: list[tuple[str, dict[str, list[Row]]]] = [
        ("by stage", {stage: pick(usual, stage=stage, whose="all") for stage in training.STAGES}),
        ("final: right and wrong", {whose: pick(usual, stage="final", whose=whose) for whose in WHOSE[1:]}),
        ("final, by batch", {"128": final, **others("batch")}),
        ("final, by model", {"lenet5": final, **others("model"), **others("data")}),
    ]
    for column, (title, curves) in enumerate(groups):
        for (label, chosen), color in zip(curves.items(), COLORS, strict=False):
            for axes, quantity in ((panels[0][column], "relative"), (panels[1][column], "epsilon")):
                known = [row for row in chosen if row["who"] in ACROSS]
                axes.plot(
                    [row["who"] for row in known], [row[quantity] for row in known], "o-", color=color, label=label
                )
        panels[0][column].set(title=title, yscale="log")
        panels[0][column].legend(frameon=False, fontsize=8)
        panels[1][column].set(xlabel="share of the records with less", ylim=(0, None))
    panels[0][0].set_ylabel("D₈ of a step / the clip norm's (as S3)")
    panels[1][0].set_ylabel("ε at δ of all steps")
    steps = pick(rows, curve=STEP, stage="final", whose="all", order=training.ORDER)
    by_noise = [row for row in steps if row["sweep"] in ("base", "training ε")]
    _by_noise(panels[0][4], by_noise, "relative", "final, by training ε")
    _by_noise(panels[1][4], pick(rows, curve=RUN, whose="all"), "epsilon", "the run that happened (H3)")
    for axes in panels.flat:
        quiet(axes)
    figure.suptitle(TITLE, fontsize=12)


def _by_noise(axes: Any, rows: Sequence[Row], column: str, title: str) -> None:
    """S3 §5.3: a quantity against the training ε, by share of the records."""
    for who, color in zip(("10 %", "half", "90 %"), (BLUE, PURPLE, ORANGE), strict=True):
        points = sorted((row["dp"], row[column]) for row in pick(rows, who=who))
        axes.plot(*zip(*points, strict=True), "o-", color=color, label=who)
    levels = sorted({row["dp"] for row in rows})
    if column == "epsilon":
        axes.plot(levels, levels, "--", color=GREY, label="DP, everybody")
    axes.set(title=title, xlabel="training ε", xscale="log", yscale="log")
    axes.legend(frameon=False, fontsize=8)


EXPERIMENTS = {"instance-distribution": Experiment(TITLE, (16.0, 7.5), compute, draw, ("full", "data_dir"))}
