"""S1 Fig. 10 and Table I, SPEC J9: logistic regression on Adult by variational inference (`s1_posterior`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayesdp.experiments import s1_posterior, s2_data
from bayesdp.experiments.s1_posterior import Setting
from bayesdp.experiments.style import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "bdp-adult"
TITLE = "Adult, ten samples of a secret posterior (δ = 10⁻⁵): who is promised what, at which accuracy"
SIZE = (12.0, 5.8)
OPTIONS = ("data_dir",)

SETTING = Setting(sampling_rate=0.005, steps=2000, printed={"bdp": 0.16, "dp": 0.5, "accuracy": 0.81})


def compute(seed: int = 0, *, data_dir: str | Path | None = None, setting: Setting = SETTING) -> list[Row]:
    """Ten runs on one split of the data."""
    return s1_posterior.compute(s2_data.adult(seed, data_dir), setting, seed)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Accuracy against ε, and ε against the width of a sample."""
    s1_posterior.draw(figure, rows, SETTING.printed, TITLE)
