"""S2 Fig. 3, SPEC J13: accuracy against ε for several clip norms, on Abalone and Adult.

As coded a clip norm of c is really c q on a record's own gradient (K3): 0.01 to 0.05 on Abalone and 0.01 to 0.1 on
Adult, where typical gradients are 0.5 to 2 long. The second way clips at c itself, as the text says.
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

NAME = "dpvi-clip"
TITLE = "Clip norms: the paper's recipe and bd.VI"
OPTIONS = ("data_dir",)
FACTORS = (1 / 16, 1 / 4, 1.0, 4.0)
"""Our clip norms by the suggested one."""


def recipes(rate: float, clips: Sequence[float]) -> dict[str, tuple[Recipe, ...]]:
    """Both readings of c."""
    return {
        "paper": tuple(Recipe(c, "coded", rate, c) for c in clips),
        "printed": tuple(Recipe(c, "printed", rate, c) for c in clips[::2]),
    }


SWEEPS = (
    Sweep(
        "Abalone",
        s2_data.abalone,
        recipes(0.01, (1.0, 2.0, 3.0, 4.0, 5.0)),
        sigmas=(2.0, 4.0, 6.0, 8.0, 10.0),
        clip_factors=FACTORS,
    ),
    Sweep(
        "Adult",
        s2_data.adult,
        recipes(0.001, (10.0, 32.5, 55.0, 77.5, 100.0)),
        sigmas=(0.4, 0.8, 1.2, 1.6, 2.0),
        clip_factors=FACTORS,
        reference=LARGE,
    ),
)


def compute(seed: int = 0, *, data_dir: str | Path | None = None, sweeps: Sequence[Sweep] = SWEEPS) -> list[Row]:
    """See `dpvi_sweep.compute`; other `sweeps` for smaller sizes."""
    return dpvi_sweep.compute(sweeps, seed, data_dir)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Three panels for each data set."""
    ways = {
        "paper": "the paper's, clipped at c q",
        "printed": "as printed, clipped at c",
        "ours": "bd.VI, × suggested C",
    }
    dpvi_sweep.draw(figure, rows, title=TITLE, swept="c", ways=ways)
