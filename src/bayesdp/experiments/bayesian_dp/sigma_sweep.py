"""ε of one step against its noise, at clip norms from quantiles of the gradients: what figures 1 and 2 share.

Noise has standard deviation 2Cσ. The papers' DP curve puts the distance 2C into the formula for adding or
removing a record; when a record really is added or removed it moves the sum by at most C, and when it is
replaced the pair is another one (worst pair, H10). Both are drawn beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.errors import Array
from bayesdp.experiments.bayesian_dp import as_printed, sound, synthetic
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, Row, band, finish, line, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE, LAM, DELTA = 1 / 1000, 24, 1e-5
SIGMAS = tuple(round(0.55 + 0.05 * i, 2) for i in range(17))
PEOPLE = 2000
"""Fresh people for the sound way; they support statements about 99.3 % of everybody."""

Sound = Callable[[Array, float, Array], dict[tuple[str, float | str], Array]]
"""(fresh people's norms, C, noise std of each σ) → (curve, coverage or "") → ε of each σ."""


def compute(
    quantiles: Sequence[float],
    sound_curves: Sound,
    *,
    clip: bool,
    seed: int,
    sigmas: Sequence[float],
    people: int,
) -> list[Row]:
    """All rows; `clip` says whether the papers' Bayesian curve clips its gradients too.

    C comes from the papers' 50 gradients, which are other people than those of the sound way.
    """
    rng = np.random.default_rng(seed)
    gradients = synthetic.gradients(synthetic.RECORDS, synthetic.DIMENSIONS, rng)
    fresh = synthetic.fresh_norms(people, synthetic.DIMENSIONS, rng)
    table = _everybody(sigmas)
    for quantile in quantiles:
        clip_norm = float(np.quantile(synthetic.norms(gradients), quantile))
        distances = synthetic.pair_distances(synthetic.clipped(gradients, clip_norm) if clip else gradients)
        noise = 2 * clip_norm * np.array(sigmas)
        printed = [_printed(distances, std) for std in noise.tolist()]
        table += _rows(quantile, sigmas, "paper", "BDP", "", printed)
        for (curve, coverage), values in sound_curves(fresh, clip_norm, noise).items():
            table += _rows(quantile, sigmas, "sound", curve, coverage, values)
    return table


def _printed(distances: Array, noise: float) -> float:
    cost = as_printed.bayesian_cost(distances, noise, sampling_rate=RATE, lam=LAM)
    return as_printed.epsilon(cost, LAM, DELTA, estimates=1)


def _everybody(sigmas: Sequence[float]) -> list[Row]:
    """DP does not depend on the quantile: noise and clip norm keep their ratio."""
    shifts = 1 / (2 * np.array(sigmas))
    costs = [as_printed.moments_cost(sigma, sampling_rate=RATE, lam=LAM) for sigma in sigmas]
    curves: dict[str, Sequence[float] | Array] = {
        "as printed": [as_printed.epsilon(cost, LAM, DELTA) for cost in costs],
        "tail": sound.tail_epsilon(shifts, sampling_rate=RATE, delta=DELTA),
        "exact": sound.exact_epsilon(shifts, sampling_rate=RATE, delta=DELTA),
        "exact, replace-one": [
            sound.exact_replace_one_epsilon(shift, sampling_rate=RATE, delta=DELTA) for shift in shifts.tolist()
        ],
    }
    return [row for name, values in curves.items() for row in _rows("all", sigmas, "dp", name, 1.0, values)]


def _rows(
    quantile: float | str,
    sigmas: Sequence[float],
    way: str,
    curve: str,
    coverage: float | str,
    values: Sequence[float] | Array,
) -> list[Row]:
    at = {"way": way, "curve": curve, "coverage": coverage}
    return [
        {"quantile": quantile, "sigma": sigma, **at, "epsilon": float(value)}
        for sigma, value in zip(sigmas, values, strict=True)
    ]


def draw(figure: Figure, rows: Sequence[Row], *, title: str, labels: dict[str, str]) -> None:
    """One panel for each quantile. `labels` name the sound curves: "tail" and "exact"."""
    quantiles = sorted({row["quantile"] for row in rows if row["quantile"] != "all"})
    panels = figure.subplots(1, len(quantiles), sharey=True)
    dp = {name: pick(rows, way="dp", curve=name) for name in ("as printed", "tail", "exact", "exact, replace-one")}
    for axes, quantile in zip(panels, quantiles, strict=True):
        here = pick(rows, quantile=quantile)
        printed = pick(here, way="paper")
        # The legend fills its columns in this order: one colour in each.
        line(axes, dp["exact, replace-one"], "sigma", color=GREEN, ls=":", label="DP, exact, record replaced")
        line(axes, dp["exact"], "sigma", color=GREEN, ls="--", label="DP, exact")
        band(axes, pick(here, way="sound", curve="exact"), "sigma", GREEN, labels["exact"])
        line(axes, dp["tail"], "sigma", color=BLUE, ls="--", label="DP, best order (tail)")
        band(axes, pick(here, way="sound", curve="tail"), "sigma", BLUE, labels["tail"])
        line(axes, dp["as printed"], "sigma", color=VERMILION, ls="--", label="DP as printed, λ = 24")
        line(axes, printed, "sigma", color=VERMILION, label="BDP as printed: all pairs, Student-t")
        axes.set_title(f"C at the {quantile:g}-quantile of norms", fontsize=10)
        axes.set_xlabel("σ (noise is 2Cσ)")
    finish(figure, panels, title=title, y="ε of one step, δ = 10⁻⁵", columns=3)
