"""S2 Fig. 1 left, SPEC J10: private logistic regression on Abalone, by DPVI, DP-SGLD and bd.VI (`dpvi_logistic`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesdp.experiments import dpvi_logistic, s2_data
from bayesdp.experiments.dpvi_logistic import SIZE, Problem
from bayesdp.experiments.style import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NAME", "OPTIONS", "PROBLEM", "SIZE", "TITLE", "compute", "draw"]

NAME = "dpvi-abalone"
TITLE = "Abalone, private variational inference: the paper's recipe and bd.VI"
OPTIONS = ("data_dir",)

PROBLEM = Problem(
    load=s2_data.abalone,
    sampling_rate=0.05,
    steps=1000,
    clip=5.0,
    sigmas=tuple(np.exp(np.linspace(0.2, 5, 10)).tolist()),
    passes=10,
    bound=5.0,
)


def compute(seed: int = 0, *, data_dir: str | Path | None = None, problem: Problem = PROBLEM) -> list[Row]:
    """See `dpvi_logistic.compute`; another `problem` for smaller sizes."""
    return dpvi_logistic.compute(problem, seed, data_dir)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Three panels."""
    dpvi_logistic.draw(figure, rows, title=TITLE, lowest=-1.0)
