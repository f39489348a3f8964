"""S2 Fig. 2, SPEC J12: accuracy against ε for several sampling rates q, on Abalone and Adult.

As coded the likelihood is multiplied by 1/q before clipping at c, so that the clip norm of a record is really c q and
a larger q also clips less (K3). The second way keeps c q at the value of the largest q. Abalone has T = 2000 as the
text says; the code runs 2000/q steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayesdp.experiments import dpvi_sweep, s2_data
from bayesdp.experiments.dpvi_sweep import SIZE, Recipe, Sweep
from bayesdp.experiments.s2_logistic import LARGE
from bayesdp.experiments.style import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NAME", "OPTIONS", "SIZE", "SWEEPS", "TITLE", "compute", "draw"]

NAME = "dpvi-q"
TITLE = "Sampling rates: the paper's recipe and bd.VI"
OPTIONS = ("data_dir",)


def recipes(rates: Sequence[float], clip: float) -> dict[str, tuple[Recipe, ...]]:
    """As coded, and with one clip norm for all rates."""
    return {
        "paper": tuple(Recipe(q, "coded", q, clip) for q in rates),
        "same clip": tuple(Recipe(q, "coded", q, clip * max(rates) / q) for q in rates[::2]),
    }


SWEEPS = (
    Sweep(
        "Abalone",
        s2_data.abalone,
        recipes((0.01, 0.0325, 0.055, 0.0775, 0.1), 5.0),
        sigmas=(2.0, 4.0, 6.0, 8.0, 10.0),
        rates=(0.005, 0.01, 0.03, 0.1),
    ),
    Sweep(
        "Adult",
        s2_data.adult,
        recipes((0.001, 0.002, 0.003, 0.004, 0.005), 50.0),
        sigmas=(0.4, 0.8, 1.2, 1.6, 2.0),
        rates=(0.0005, 0.002, 0.008, 0.03),
        reference=LARGE,
    ),
)


def compute(seed: int = 0, *, data_dir: str | Path | None = None, sweeps: Sequence[Sweep] = SWEEPS) -> list[Row]:
    """See `dpvi_sweep.compute`; other `sweeps` for smaller sizes."""
    return dpvi_sweep.compute(sweeps, seed, data_dir)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Three panels for each data set."""
    ways = {
        "paper": "the paper's, clip norm c q",
        "same clip": "the same, one clip norm for all q",
        "ours": "bd.VI, equal exact ε",
    }
    dpvi_sweep.draw(figure, rows, title=TITLE, swept="q =", ways=ways)
