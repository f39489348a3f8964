"""One module for each figure of the papers, by name: `bayesdp reproduce NAME`.

They live in the package so that an installed `bayesdp` can redo them. Each module has a `NAME`, a `TITLE`,
a `SIZE` in inches, `compute(seed)` → rows and `draw(figure, rows)`; `run.reproduce` writes the files.
Modules are imported when asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from bayesdp.errors import one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODULES = {
    "bdp-fig1": "bayesdp.experiments.bdp_fig1",
    "bdp-fig2": "bayesdp.experiments.bdp_fig2",
    "bdp-fig3": "bayesdp.experiments.bdp_fig3",
    "bdp-fig4": "bayesdp.experiments.bdp_fig4",
}
"""Name on the command line → module."""


class Experiment(Protocol):
    """What a module of `MODULES` has."""

    NAME: str
    TITLE: str
    SIZE: tuple[float, float]

    def compute(self, seed: int = 0) -> list[dict[str, Any]]:
        """The table: one dict per row, the same columns in each, among them `way` and `epsilon`."""
        ...

    def draw(self, figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
        """The figure of that table."""
        ...


def load(name: str) -> Experiment:
    """The module of the experiment `name`. An unknown name gets `InputError` listing the known ones."""
    return cast(Experiment, import_module(MODULES[one_of("name", name, MODULES)]))


__all__ = ["MODULES", "Experiment", "load"]
