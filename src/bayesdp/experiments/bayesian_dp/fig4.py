"""S1 Fig. 4, S0 Fig. 3 (J4): ε of 10 000 steps as a function of λ, for three clip norms.

    ε(λ) = (T log A_{λ+1}(q, C/σ) + log 1/δ)/λ,      q = 64/60000, σ = 1, T = 10 000, δ = 1e-5

Every record is taken to be at the clip norm, so this is the moments accountant and nothing is estimated. What
the papers leave on the table: λ that are not whole or larger than 49, the conversion to ordinary DP (B10), and
the exact loss distribution (B11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesdp import convert
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.divergence import sgm
from bayesdp.errors import Array
from bayesdp.experiments import Experiment
from bayesdp.experiments.common.style import BLUE, GREEN, VERMILION, WIDE, Row, finish, line, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "ε of 10 000 steps against λ: as printed (valid, whole λ ≤ 49) and with all orders"
CLIPS = (0.1, 0.7, 1.0)
SIGMA, RATE, STEPS, DELTA = 1.0, 64 / 60000, 10_000, 1e-5
PRINTED = tuple(range(1, 50))
SWEPT = (0.25, 0.5, 0.75, *PRINTED, *np.union1d(np.round(np.geomspace(55, 1023, 30)), [447]).tolist())
"""λ of the sound way: beyond the best ones of all three clip norms, which are 447, 26 and 12."""


def compute(seed: int = 0) -> list[Row]:  # noqa: ARG001 - nothing is drawn
    """Rows (clip_norm, lam, way, curve, epsilon); `lam` is empty for the exact value, which has none."""
    table: list[Row] = []
    for clip in CLIPS:
        exact = WorstCaseAccountant(engine="pld")
        exact.step(noise_multiplier=SIGMA / clip, sampling_rate=RATE, steps=STEPS)
        table += _rows(clip, "paper", "tail", PRINTED, at_lambda(clip, PRINTED))
        table += _rows(clip, "sound", "tail", SWEPT, at_lambda(clip, SWEPT))
        table += _rows(clip, "sound", "hockey-stick", SWEPT, at_lambda(clip, SWEPT, "weak"))
        table += _rows(clip, "dp", "exact", ("",), [exact.epsilon(DELTA)])
    return table


def at_lambda(clip_norm: float, lambdas: Sequence[float], strength: convert.Strength = "strong") -> Array:
    """ε(λ) of each λ by itself (B4, B5), by the papers' tail conversion or by the hockey stick (B10)."""
    orders = np.asarray(lambdas, dtype=np.float64) + 1
    costs = STEPS * sgm.cost(clip_norm / SIGMA, orders, sampling_rate=RATE)
    return convert.epsilon_per_order(costs, orders, DELTA, strength)


def _rows(
    clip: float, way: str, curve: str, lambdas: Sequence[float | str], values: Sequence[float] | Array
) -> list[Row]:
    return [
        {"clip_norm": clip, "lam": lam, "way": way, "curve": curve, "epsilon": float(value)}
        for lam, value in zip(lambdas, values, strict=True)
    ]


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """One panel for each clip norm; the best λ of each curve is marked."""
    panels = figure.subplots(1, len(CLIPS), sharey=True, sharex=True)
    looks: dict[tuple[str, str], dict[str, Any]] = {
        ("paper", "tail"): {"color": VERMILION, "label": "as printed: whole λ ≤ 49, tail", **WIDE},
        ("sound", "tail"): {"color": BLUE, "label": "all λ, tail"},
        ("sound", "hockey-stick"): {"color": GREEN, "label": "all λ, hockey stick"},
    }
    for axes, clip in zip(panels, CLIPS, strict=True):
        here = pick(rows, clip_norm=clip)
        for (way, curve), look in looks.items():
            chosen = pick(here, way=way, curve=curve)
            best = min(chosen, key=lambda row: float(row["epsilon"]))
            size = 9 if way == "paper" else 5
            line(axes, chosen, "lam", **look)
            axes.plot(best["lam"], best["epsilon"], "o", color=look["color"], markersize=size)
        exact = pick(here, way="dp")[0]["epsilon"]
        axes.axhline(exact, color=GREEN, ls="--", linewidth=1.5, label="exact (PLD), no λ")
        axes.set(xscale="log", xlabel="λ", ylim=(0.02, 200))
        axes.set_title(f"C = {clip:g}, σ = {SIGMA:g}", fontsize=10)
    finish(figure, panels, title=TITLE, y="ε, δ = 10⁻⁵", columns=4)


EXPERIMENTS = {"bdp-fig4": Experiment(TITLE, (11.0, 4.4), compute, draw)}
