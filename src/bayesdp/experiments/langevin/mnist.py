"""S4 Table 1, MNIST (J22): the printed rows, what S4's settings cost exactly, and networks sampled at DP ε ≤ 1.

    printed        Table 1 as it stands
    S4's settings  η = 0.3, L = 0.3, batch 128, 20 epochs: their exact ε (ERR 30) by noise and neighbour, and what they
                   do for a small convolutional network on pixels, with Algorithm 1's noise and with none
    redone         DP-SGD at ε = 0.5 and 8 and Confident-GNMax at 1.97, the table's other rows (`mnist_peers`)
    sampled        SGLD and SGHMC at ε = 1 and temperature 1, priors N(0, 1): the network, and a linear model on
                   scattering features (H13); the longest steps whose own noise keeps ε (exact calibration, F8)

SGHMC has the friction with which momentum keeps 1 − `FORGET` of itself in a step: h/B then compares with SGLD's step,
and so does its ε. Predictions are averaged over samples. L and rates were picked among a few on the last 10,000
training records, with the other 50,000 to train on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import data
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.data.dataset import Dataset
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, GREY, PURPLE, VERMILION, Row, pick, quiet
from bayesdp.experiments.langevin import mnist_peers
from bayesdp.guarantee import Adjacency
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.networks import classifier
from bayesdp.learn.sgmcmc.sampler import Sampler
from bayesdp.learn.sgmcmc.sghmc import SGHMC
from bayesdp.learn.sgmcmc.sgld import SGLD
from bayesdp.mechanism import use_host_cores
from bayesdp.mechanism.bookkeeping import ModelLoss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "MNIST at δ = 10⁻⁵: S4's Table 1 as printed, and networks sampled under exact accounting"

DELTA, EPSILON = 1e-5, 1.0
PRINTED = {
    "non-private": (math.inf, 0.9934),
    "DP-SGD": (0.5, 0.90),
    "DP-SGD, more": (8.0, 0.97),
    "Confident-GNMax": (1.97, 0.9851),
    "DP-SGLD": (0.99, 0.9921),
}
"""Table 1: ε at δ = 10⁻⁵, test accuracy."""

STEP, BOUND, BATCH, RECORDS, EPOCHS = 0.3, 0.3, 128, 60_000, 20
"""S4's η, L, batch, N and epochs."""

FORGET = 0.1
SAMPLES = 20
"""Samples that predictions are averaged over."""


@dataclass(frozen=True)
class Setting:
    """A model of `learn.models.networks`, its data and how it is sampled at ε = 1."""

    model: str
    features: str
    sampling_rate: float
    steps: int
    clip_norm: float


SETTINGS = {
    "network": Setting("cnn", "pixels", 0.03, 400, 2.0),
    "linear, scattering": Setting("logistic", "scattering", 0.05, 200, 1.0),
}


@dataclass(frozen=True)
class Size:
    """How much is done; `chosen` are other images, for both kinds of features."""

    seeds: int = 3
    epochs: float = EPOCHS
    steps: int | None = None
    chosen: Dataset | None = None


def compute(seed: int = 0, *, data_dir: str | Path | None = None, size: Size | None = None) -> list[Row]:
    """Rows (way, curve, model, adjacency, temperature, noise_multiplier, epsilon, seed, accuracy)."""
    use_host_cores()
    size = size or Size()
    rows = [_row("printed", curve, epsilon=e, accuracy=a) for curve, (e, a) in PRINTED.items()] + accounted()
    for name, setting in SETTINGS.items():
        images = size.chosen or data.load("mnist", data_dir=data_dir, **_features(setting))
        if setting.model == "cnn":
            rows += [fitted("S4's settings", name, plan, setting, images, seed) for plan in _as_stated(size, images)]
        for curve, plan in plans(setting, size.steps or setting.steps).items():
            rows += [fitted(curve, name, plan, setting, images, seed + i) for i in range(size.seeds)]
        rows += redone(name, setting, size, images, seed)
    return rows


def redone(name: str, setting: Setting, size: Size, images: Dataset, seed: int) -> list[Row]:
    """The table's other rows: DP-SGD for every model, Confident-GNMax on scattering features."""
    rows = []
    for epsilon in (PRINTED["DP-SGD"][0], PRINTED["DP-SGD, more"][0]):
        steps = size.steps or setting.steps
        plan = mnist_peers.dp_sgd(epsilon, DELTA, setting.model, setting.features, setting.sampling_rate, steps, images)
        for i in range(seed, seed + size.seeds):
            cost, accuracy = mnist_peers.trained(plan, *_start(setting, images, i), images, i)
            known = ("sound", "DP-SGD", "add-remove", "", float(plan.noise.min()), cost)
            rows.append(_row(*known, model=name, seed=i, accuracy=accuracy))
    if setting.features == "scattering":
        for i in range(seed, seed + size.seeds):
            epsilon, accuracy = mnist_peers.taught(PRINTED["Confident-GNMax"][0], DELTA, images, i)
            rows.append(
                _row("sound", "Confident-GNMax", "add-remove", "", "", epsilon, model=name, seed=i, accuracy=accuracy)
            )
    return rows


def accounted() -> list[Row]:
    """The exact ε of S4's settings, for Algorithm 1's noise (temperature 1/2) and the posterior's (1)."""
    rows = []
    for temperature in (0.5, 1.0):
        for adjacency in ("add-remove", "replace-one"):
            chain = _chain(temperature, adjacency)
            epsilon = chain.accountant(STEP).epsilon(DELTA)
            rows.append(
                _row("sound", "S4's settings, accounted", adjacency, temperature, chain.noise_multiplier(STEP), epsilon)
            )
    return rows


def _chain(temperature: float, adjacency: Adjacency) -> Langevin:
    return Langevin(
        records=RECORDS,
        batch=BATCH,
        steps=round(EPOCHS * RECORDS / BATCH),
        bound=BOUND,
        temperature=temperature,
        adjacency=adjacency,
    )


def plans(setting: Setting, steps: int, delta: float = DELTA) -> dict[str, Sampler]:
    """Both samplers with the longest steps that keep ε."""
    common: dict[str, Any] = {
        "sampling_rate": setting.sampling_rate,
        "steps": steps,
        "clip_norm": setting.clip_norm,
        "delta": delta,
        "thin": max(1, steps // (2 * SAMPLES)),
    }
    sgld = SGLD(step_size=1e-5, **common).calibrate_step(EPSILON)
    # h/B is SGLD's step, a little shorter against rounding, and hB what a step forgets: so z is SGLD's.
    size, friction = math.sqrt(FORGET * sgld.step_size) * (1 - 1e-9), math.sqrt(FORGET / sgld.step_size)
    return {"SGLD": sgld, "SGHMC": SGHMC(step_size=size, friction=friction, **common)}


def _as_stated(size: Size, images: Dataset) -> list[Sampler]:
    """S4's settings with Algorithm 1's noise, and with none."""
    steps = round(size.epochs * len(images.x) / BATCH)
    stated = SGLD(
        step_size=STEP / len(images.x),
        sampling_rate=BATCH / len(images.x),
        steps=steps,
        clip_norm=BOUND,
        temperature=0.5,
        delta=DELTA,
        thin=max(1, steps // (2 * SAMPLES)),
    )
    return [stated, dataclasses.replace(stated, temperature=0.0)]


def _features(setting: Setting) -> dict[str, Any]:
    return {"features": "scattering"} if setting.features == "scattering" else {}


def fitted(curve: str, name: str, plan: Sampler, setting: Setting, images: Dataset, seed: int) -> Row:
    loss, start = _start(setting, images, seed)
    found = plan.fit(Network(loss, start), (images.x, images.y), seed=seed)
    chances = found.predict(images.x_test, draws=SAMPLES, seed=seed)
    accuracy = float(np.mean(np.argmax(chances, axis=1) == images.y_test))
    epsilon = plan.epsilon()
    way = "non-private" if math.isinf(epsilon) else "sound"
    noise = float(plan.noise.min())
    return _row(way, curve, plan.adjacency, plan.temperature, noise, epsilon, model=name, seed=seed, accuracy=accuracy)


def _start(setting: Setting, images: Dataset, seed: int) -> tuple[ModelLoss, Any]:
    loss = classifier(setting.model, len(images.classes))
    start = loss.model.init(jax.random.key(seed), images.x.shape[1:])
    if setting.model == "logistic":  # convex: nothing is gained by a random start
        start = jax.tree.map(jnp.zeros_like, start)
    return loss, start


def _row(
    way: str,
    curve: str,
    adjacency: str = "",
    temperature: float | str = "",
    noise_multiplier: float | str = "",
    epsilon: float = math.inf,
    *,
    model: str = "",
    seed: int | str = "",
    accuracy: float | str = "",
) -> Row:
    return {
        "way": way,
        "curve": curve,
        "model": model,
        "adjacency": adjacency,
        "temperature": temperature,
        "noise_multiplier": noise_multiplier,
        "epsilon": epsilon,
        "seed": seed,
        "accuracy": accuracy,
    }


LOOKS = {
    ("SGLD", "network"): {"color": BLUE, "marker": "o"},
    ("SGHMC", "network"): {"color": BLUE, "marker": "^"},
    ("SGLD", "linear, scattering"): {"color": GREEN, "marker": "o"},
    ("SGHMC", "linear, scattering"): {"color": GREEN, "marker": "^"},
    ("S4's settings", "network"): {"color": GREY, "marker": "s"},
    ("DP-SGD", "network"): {"color": BLUE, "marker": "D", "fillstyle": "none"},
    ("DP-SGD", "linear, scattering"): {"color": GREEN, "marker": "D", "fillstyle": "none"},
    ("Confident-GNMax", "linear, scattering"): {"color": PURPLE, "marker": "*"},
}
FLOOR = 84.0
"""Of the figure, in percent: a chain below it is named there."""


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Left, accuracy against ε; right, the ε that S4 states for its settings and what they are accounted at."""
    points, cost = figure.subplots(1, 2, width_ratios=(2.2, 1))
    for row in pick(rows, way="printed"):
        at = (row["epsilon"], 100 * row["accuracy"])
        if math.isfinite(row["epsilon"]):
            points.plot(*at, "x", color=VERMILION)
            name = f"{row['curve'].removesuffix(', more')}, printed"
            left = row["curve"] == "DP-SGLD"  # its neighbour would run into it
            points.annotate(
                name,
                at,
                (-6 if left else 6, -4),
                textcoords="offset points",
                fontsize=8,
                ha="right" if left else "left",
            )
        else:
            points.axhline(at[1], color=VERMILION, ls=":", label="non-private, printed")
    for (curve, model), look in LOOKS.items():
        found = pick(rows, way="sound", curve=curve, model=model)
        across, up = [row["epsilon"] for row in found], [100 * row["accuracy"] for row in found]
        shown = [max(height, FLOOR + 0.4) for height in up]
        points.plot(across, shown, linestyle="none", alpha=0.7, label=f"{curve}, {model}", **look)
        for x, height in zip(across, up, strict=True):
            if height < FLOOR:
                points.annotate(
                    f"one chain at {height:.1f} %", (x, FLOOR + 0.4), (8, -3), textcoords="offset points", fontsize=8
                )
    for row in pick(rows, way="non-private"):
        points.axhline(100 * row["accuracy"], color=GREY, ls="--", label="S4's settings, network, no noise")
    points.set(xscale="log", xlabel="ε, δ = 10⁻⁵", ylabel="test accuracy, %", ylim=(FLOOR, 100))
    points.set_xlim(0.15, 20)
    points.legend(frameon=False, fontsize=8, loc="lower right")
    known = pick(rows, curve="S4's settings, accounted")
    names = {0.5: "Algorithm 1", 1.0: "posterior"}
    labels = ["stated", *(f"{names[row['temperature']]},\n{row['adjacency']}" for row in known)]
    heights = [PRINTED["DP-SGLD"][0], *(row["epsilon"] for row in known)]
    bars = cost.bar(range(len(labels)), heights, color=[VERMILION, *[GREEN] * len(known)])
    cost.bar_label(bars, [f"{height:.2f}" for height in heights], fontsize=8)
    cost.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    cost.set_ylabel("ε of S4's settings")
    for axes in (points, cost):
        quiet(axes)
    figure.suptitle(TITLE, fontsize=12)


EXPERIMENTS = {"sgld-mnist": Experiment(TITLE, (11.0, 5.2), compute, draw, ("data_dir",))}
