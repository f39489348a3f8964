"""S3 Figs. 1, 5, 23, 24 (J15-J16): what training costs named records, from one run and from ten.

    one run    LeNet-5 on all of MNIST, S3's plan in full; 100 test records watched at every step. As printed: the cost
               of single steps at α = 8, inflated by Theorem 3.3, relative to the clip norm's; sound: ε at δ of the run
               that happened (ex-post, H3)
    ten runs   a linear model on 10,000 images, each scaled to norm 1, 2 epochs at rate 8 (with pixels as they are and
               S3's rate nobody would be below the clip norm by then); 20 test records against the data as they are,
               D(X‖X + x), and 10 training records both ways, with runs on the data less each of them. Theorem 3.3 as
               printed (checkpoints, means of ten runs), corrected, one-Hölder (H2), and what ten runs certify (H9)

S3's noise for ε = 10, σ = 0.469; the ten runs also with noise for DP ε = 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optax

from bayesdp import data
from bayesdp.data.dataset import Dataset, Features
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, PURPLE, VERMILION, Row, legend_below, pick, quiet
from bayesdp.experiments.per_instance import as_printed, training
from bayesdp.experiments.per_instance.side_by_side import of_run
from bayesdp.learn import SGD
from bayesdp.learn.loop.run import Run
from bayesdp.learn.study.result import StudyResult
from bayesdp.learn.study.study import Study
from bayesdp.learn.study.units import DATA
from bayesdp.mechanism import use_host_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "MNIST: what training costs named records, by S3 at α = 8 (ERR 18, 22) and soundly at δ = 10⁻⁵"

PAPERS = "σ = 0.469"
NOISE: dict[str, dict[str, Any]] = {PAPERS: {"sigma": training.SIGMAS[training.BATCH]}, "ε = 1": {"epsilon": 1.0}}
"""S3's for ε = 10, and what keeps DP ε = 1."""

SMALL_OPTIMIZER = optax.sgd(8.0)
"""Of the ten runs."""

PRINTED, SOUND, DP = "Theorem 3.3 with 3.2", "ex-post (H3)", "data-independent"


@dataclass(frozen=True)
class Size:
    """How much is done; `chosen` are other images."""

    model: str = "lenet5"
    epochs: float = training.EPOCHS
    batch: int = training.BATCH
    points: int = 100
    looks: int = 10
    small_model: str = "logistic"
    images: int = 10_000
    small_epochs: float = 2
    runs: int = 10
    outsiders: int = 20
    members: int = 10
    noise: tuple[str, ...] = tuple(NOISE)
    chosen: Dataset | None = None


def compute(seed: int = 0, *, data_dir: str | Path | None = None, size: Size | None = None) -> list[Row]:
    """Rows (part, noise, way, curve, direction, step, who, relative, divergence, epsilon, accuracy)."""
    use_host_cores()
    size = size or Size()
    images = size.chosen or data.load("mnist", data_dir=data_dir)
    few = images.subset(min(size.images, len(images.x)), seed)
    studies = [row for noise in size.noise for row in ten_runs(noise, few, size, seed)]
    return one_run(images, size, seed) + studies


def one_run(images: Dataset, size: Size, seed: int) -> list[Row]:
    """The run in full: costs of steps at the checkpoints, ε of those watched so far at each of them."""
    problem = training.problem(images, size.model, seed)
    watch = problem.outsiders(size.points, seed)
    plan = training.plan(problem.size, batch=size.batch, epochs=size.epochs, looks=size.looks, **NOISE[PAPERS])
    seen: dict[int, tuple[Array, float]] = {}

    def look(run: Run) -> None:
        seen[run.steps] = run.losses(), run.guarantees[0].epsilon

    trained = training.train(problem, plan, seed, watch=watch, look=look)
    sigma, rate = float(plan.noise[0]), plan.sampling_rate
    inflated = as_printed.stated_orders(training.ORDER, plan.steps, 3.0 * plan.steps)
    everybody = float(training.divergences(np.ones(1), [training.ORDER], sigma=sigma, rate=rate)[0, 0])
    fixed = {"part": "one run", "noise": PAPERS, "direction": "add"}
    rows = []
    for step, accuracy, near in zip(trained.at, trained.accuracy, trained.distances(watch), strict=True):
        # The last checkpoint has no step after it: it stands for one more of the last order.
        order = float(np.ceil(inflated[min(step, plan.steps - 1)]))
        costs = training.divergences(near, [order], sigma=sigma, rate=rate)[:, 0]
        for who, cost in training.people(costs):
            rows.append(
                _row(fixed, "printed", PRINTED, step, who, cost / everybody, divergence=cost, accuracy=accuracy)
            )
        for who, epsilon in training.people(seen[step][0]) if step else ():
            rows.append(_row(fixed, "sound", SOUND, step, who, epsilon=epsilon, accuracy=accuracy))
        if step:
            rows.append(_row(fixed, "sound", DP, step, "all", 1.0, everybody, seen[step][1], accuracy))
    return rows


def ten_runs(noise: str, images: Dataset, size: Size, seed: int) -> list[Row]:
    """The study: outsiders against the data as they are, then training records in both directions."""
    problem = training.problem(_unit(images), size.small_model, seed)
    plan = training.plan(problem.size, batch=size.batch, epochs=size.small_epochs, **NOISE[noise])
    plan = dataclasses.replace(plan, optimizer=SMALL_OPTIMIZER)
    x, y = problem.outsiders(size.outsiders, seed)
    inside = np.random.default_rng(seed).permutation(problem.size)[: size.members].tolist()
    asked: list[tuple[str, dict[str, Any]]] = [("add", {"outsiders": (x, y)}), ("both", {"members": inside})]
    rows = []
    for direction, records in asked:
        study = Study(plan, runs=size.runs, direction=direction, seed=seed)
        result = study.run(problem.loss, problem.params, problem.data, **records)
        for way in result.directions:
            whose = "test records" if direction == "add" else "training records"
            rows += study_rows(plan, result, way, {"part": f"ten runs, {whose}", "noise": noise})
    return rows


def study_rows(plan: SGD, result: StudyResult, direction: str, fixed: Row) -> list[Row]:
    """Theorem 3.3 as printed from checkpoints (one an epoch) and from every step, sound bounds from every step."""
    subjects = result.facts.subjects
    chains = [
        result.chains[DATA][..., i] if one.at_home(direction) else result.chains[i][..., 0]
        for i, one in enumerate(subjects)
    ]
    path = np.stack(chains, axis=-1)
    settings: dict[str, Any] = {
        "noise_multiplier": float(plan.noise[0]),
        "sampling_rate": plan.sampling_rate,
        "steps": plan.steps,
        "delta": training.DELTA,
        "direction": direction,
    }
    fixed = {**fixed, "direction": direction}
    epoch = round(1 / plan.sampling_rate)
    at = np.arange(0, plan.steps, epoch)
    rows = []
    for kept, lines in (
        ("checkpoints", of_run(path[:, at], at, **settings)),
        ("every step", of_run(path, np.arange(plan.steps), **settings)),
    ):
        for line in lines:
            if kept == "checkpoints" and line.way != "printed":
                continue  # between checkpoints the clip norm counts: nothing is left to see
            curve = f"{line.item}, {kept}" if line.way == "printed" else line.item
            column = "epsilon" if line.quantity.startswith("ε") else "divergence"
            for who, value in training.people(line.values):
                rows.append(_row(fixed, line.way, curve, plan.steps, who, **{column: value}))
    for end in ("lower", "estimate", "upper"):
        for who, value in training.people(result.epsilons(direction, end)):
            way = "estimate" if end == "estimate" else "sound"
            rows.append(_row(fixed, way, f"study, {end}", plan.steps, who, epsilon=value))
    certified = result.epsilons(direction, "upper") < result.worst[direction]
    rows.append(_row(fixed, "sound", "study, certified", plan.steps, f"{certified.sum()} of {len(subjects)}"))
    return rows


def _unit(images: Dataset) -> Dataset:
    """The images, each scaled to norm 1."""

    def scaled(x: Features) -> Features:
        norms = np.linalg.norm(x.reshape(len(x), -1), axis=1).reshape(-1, *[1] * (x.ndim - 1))
        return np.asarray(x / np.maximum(norms, 1e-6), np.float32)

    return dataclasses.replace(images, x=scaled(images.x), x_test=scaled(images.x_test))


def _row(
    fixed: Row,
    way: str,
    curve: str,
    step: int,
    who: str,
    relative: float | str = "",
    divergence: float | str = "",
    epsilon: float | str = "",
    accuracy: float | str = "",
) -> Row:
    return {
        "part": fixed["part"],
        "noise": fixed["noise"],
        "way": way,
        "curve": curve,
        "direction": fixed["direction"],
        "step": step,
        "who": who,
        "relative": relative,
        "divergence": divergence,
        "epsilon": epsilon,
        "accuracy": accuracy,
    }


LOOKS = {"10 %": "-", "half": "--", "90 %": ":"}
"""Line of each share."""

BARS = (
    ("Theorem 3.3 with 3.2, checkpoints", "printed", VERMILION),
    ("Theorem 3.3 with 3.2, every step", "printed", "#F0A070"),
    ("study, lower", "sound", BLUE),
    ("study, estimate", "estimate", PURPLE),
    ("study, upper", "sound", GREEN),
    (SOUND, "sound", "#56B4E9"),
)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Top: the one run, step costs as printed and ε at δ. Bottom: ε at δ from ten runs, medians of the records."""
    panels = figure.subplots(2, 3)
    (shown, spent, learnt), bars = panels
    once = pick(rows, part="one run")
    for who, style in LOOKS.items():
        for axes, curve, column, color in (
            (shown, PRINTED, "relative", VERMILION),
            (spent, SOUND, "epsilon", BLUE),
        ):
            points = pick(once, curve=curve, who=who)
            axes.plot([r["step"] for r in points], [r[column] for r in points], color=color, ls=style, label=who)
    shown.axhline(1, color=GREY, linewidth=0.8)
    shown.set(title="As printed: cost of a step at α = 8,\nrelative to the clip norm's", xlabel="step", yscale="log")
    everybody = pick(once, curve=DP)
    spent.plot([r["step"] for r in everybody], [r["epsilon"] for r in everybody], color=GREEN, label="DP, everybody")
    spent.set(title="Sound: ε at δ of the run so far (H3)", xlabel="step", ylim=(0, None))
    points = pick(once, curve=PRINTED, who="half")
    learnt.plot([r["step"] for r in points], [r["accuracy"] for r in points], color=GREY)
    learnt.set(title="Test accuracy", xlabel="step", ylim=(0, 1))
    for axes, (study, direction) in zip(bars, _panels(rows), strict=True):
        _bars(axes, pick(rows, part=study, direction=direction), f"{study}, {direction}")
    for axes in panels.flat:
        quiet(axes)
    for axes in (shown, spent):
        axes.legend(frameon=False, fontsize=8)
    legend_below(figure, bars[0], columns=4)
    figure.suptitle(TITLE, fontsize=12)


def _panels(rows: Sequence[Row]) -> list[tuple[str, str]]:
    found = {(row["part"], row["direction"]): None for row in rows if row["part"] != "one run"}
    return list(found)


def _bars(axes: Any, rows: Sequence[Row], title: str) -> None:
    known = list(dict.fromkeys(row["noise"] for row in rows))
    for place, noise in enumerate(known):
        here = [row for row in pick(rows, noise=noise, who="half") if row["epsilon"] != ""]
        for i, (curve, way, color) in enumerate(BARS):
            (row,) = pick(here, curve=curve, way=way)
            axes.bar(place + (i - 2.5) * 0.14, row["epsilon"], 0.13, color=color, label=curve if place == 0 else None)
        (dp,) = pick(here, curve=DP)
        axes.plot([place - 0.45, place + 0.45], [dp["epsilon"]] * 2, color="black", linewidth=1)
    axes.set_xticks(range(len(known)), known)
    axes.set(title=f"{title}\n(median; line: DP)", ylabel="ε, δ = 10⁻⁵", yscale="log")


EXPERIMENTS = {"instance-mnist": Experiment(TITLE, (13.0, 8.2), compute, draw, ("data_dir",))}
