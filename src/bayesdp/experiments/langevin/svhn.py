"""S4 Table 1, the SVHN row (J23, ERR 29): what the stated training really costs.

S4 states η = 0.1, L = 5, 604,388 images and ε = 2.97 at δ = 10⁻⁶, neither batch nor epochs. Batches from 32 to 16,384
are accounted for here over 1 and 20 epochs, with Algorithm 1's noise and with the posterior's, beside what the limit
of much noise would say. That limit is near the stated value for batch 128 and 20 epochs, where the real noise is a
tenth of the clip norm.

With `full` a network is also sampled by SGLD and SGHMC at ε = 1, as in `mnist`, where SVHN is at hand: on its
73,257 training images (S4 has 531,131 extra ones beside them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayesdp import data
from bayesdp.accountant.langevin.step_size import Langevin
from bayesdp.data.dataset import Dataset
from bayesdp.divergence.hockey_stick import gaussian_epsilon
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, legend_below, line, pick, quiet
from bayesdp.experiments.langevin.mnist import SETTINGS, fitted, plans
from bayesdp.mechanism import use_host_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "S4's SVHN run (η = 0.1, L = 5): stated ε = 2.97; what it costs by batch size (ERR 29)"

RECORDS, STEP, CLIP, DELTA, STATED = 604388, 0.1, 5.0, 1e-6, 2.97
BATCHES = tuple(2**power for power in range(5, 15))
EPOCHS = (1, 20)
TEMPERATURES = {0.5: "Algorithm 1", 1.0: "posterior"}


def compute(
    seed: int = 0,
    *,
    full: bool = False,
    data_dir: str | Path | None = None,
    batches: Sequence[int] = BATCHES,
    chosen: Dataset | None = None,
    steps: int | None = None,
) -> list[Row]:
    """Rows (batch, epochs, noise, noise_multiplier, way, curve, epsilon, accuracy).

    `full` trains as well; `chosen` are other images than SVHN's, `steps` fewer of them.
    """
    rows = [
        row
        for batch in batches
        for epochs in EPOCHS
        for temperature in TEMPERATURES
        for row in _rows(batch, epochs, temperature)
    ]
    if full:
        use_host_cores()
        rows += trained(chosen or data.load("svhn", data_dir=data_dir), seed, steps)
    return rows


def trained(images: Dataset, seed: int, steps: int | None = None) -> list[Row]:
    """Both samplers of a network at ε = 1, by their own noise."""
    setting = SETTINGS["network"]
    rows = []
    for curve, plan in plans(setting, steps or setting.steps, DELTA).items():
        found = fitted(curve, "network", plan, setting, images, seed)
        rows.append(
            {
                "batch": round(plan.sampling_rate * len(images.x)),
                "epochs": plan.sampling_rate * plan.steps,
                "noise": "posterior",
                "noise_multiplier": found["noise_multiplier"],
                "way": "sound",
                "curve": f"{curve}, trained",
                "epsilon": found["epsilon"],
                "accuracy": found["accuracy"],
            }
        )
    return rows


def _rows(batch: int, epochs: int, temperature: float) -> list[Row]:
    chain = Langevin(
        records=RECORDS,
        batch=batch,
        steps=math.ceil(epochs * RECORDS / batch),
        bound=CLIP,
        temperature=temperature,
    )
    z = chain.noise_multiplier(STEP)
    # Where the noise is far below the clip norm a loss distribution would not fit into memory, nor say more.
    accounted = chain.accountant(STEP, "pld" if z > 0.5 else "rdp").epsilon(DELTA)
    mu = chain.rate * math.sqrt(chain.steps) / z
    about = {"batch": batch, "epochs": epochs, "noise": TEMPERATURES[temperature], "noise_multiplier": z}
    limit = float(gaussian_epsilon(DELTA, mu))
    return [
        {**about, "way": "paper", "curve": "limit of much noise", "epsilon": limit, "accuracy": ""},
        {**about, "way": "sound", "curve": "accounted", "epsilon": accounted, "accuracy": ""},
    ]


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """One panel for each number of epochs."""
    panels = figure.subplots(1, len(EPOCHS), sharey=True)
    for axes, epochs in zip(panels, EPOCHS, strict=True):
        here = pick(rows, epochs=epochs)
        paper, sound = pick(here, way="paper", noise="Algorithm 1"), pick(here, way="sound")
        line(axes, paper, "batch", color=VERMILION, label="limit of much noise (not a bound)")
        line(axes, pick(sound, noise="Algorithm 1"), "batch", color=GREEN, label="accounted, noise of Algorithm 1")
        line(axes, pick(sound, noise="posterior"), "batch", color=BLUE, label="accounted, noise of the posterior")
        axes.axhline(STATED, color=VERMILION, ls=":", label="stated: 2.97")
        axes.set(xscale="log", yscale="log", xlabel="batch", title=f"{epochs} epoch{'s' if epochs > 1 else ''}")
        quiet(axes)
    panels[0].set_ylabel("DP ε, δ = 10⁻⁶")
    figure.suptitle(TITLE, fontsize=12)
    legend_below(figure, panels[0], columns=4)


EXPERIMENTS = {"sgld-svhn": Experiment(TITLE, (11.0, 5.0), compute, draw, ("full", "data_dir"))}
