"""One module for each figure or table of the papers, by name: `bayesdp reproduce NAME`.

They live in the package so that an installed `bayesdp` can redo them. Each module has a `NAME`, a `TITLE`,
a `SIZE` in inches, `compute(seed)` → rows and `draw(figure, rows)`; `run.reproduce` writes the files. A module
with `OPTIONS` names those of `full`, `data_dir` and `results` that its `compute` takes as well.
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
    "bdp-mnist": "bayesdp.experiments.bdp_mnist",
    "bdp-cifar10": "bayesdp.experiments.bdp_cifar10",
    "bdp-leak": "bayesdp.experiments.bdp_leak",
    "bdp-abalone": "bayesdp.experiments.bdp_abalone",
    "bdp-adult": "bayesdp.experiments.bdp_adult",
    "bdp-table1": "bayesdp.experiments.bdp_table1",
    "dpvi-abalone": "bayesdp.experiments.dpvi_abalone",
    "dpvi-adult": "bayesdp.experiments.dpvi_adult",
    "dpvi-q": "bayesdp.experiments.dpvi_q",
    "dpvi-clip": "bayesdp.experiments.dpvi_clip",
    "dpvi-mixture": "bayesdp.experiments.dpvi_mixture",
    "dpvi-covariance": "bayesdp.experiments.dpvi_covariance",
    "dpvi-coverage": "bayesdp.experiments.dpvi_coverage",
    "instance-mnist": "bayesdp.experiments.instance_mnist",
    "instance-distribution": "bayesdp.experiments.instance_distribution",
    "instance-mean": "bayesdp.experiments.instance_mean",
    "instance-epsdelta": "bayesdp.experiments.instance_epsdelta",
    "mnist-scattering": "bayesdp.experiments.mnist_scattering",
    "sgld-adult": "bayesdp.experiments.sgld_adult",
    "sgld-gan": "bayesdp.experiments.sgld_gan",
    "sgld-mnist": "bayesdp.experiments.sgld_mnist",
    "sgld-stepsize": "bayesdp.experiments.sgld_stepsize",
    "sgld-svhn": "bayesdp.experiments.sgld_svhn",
}
"""Name on the command line → module."""


class Experiment(Protocol):
    """What a module of `MODULES` has."""

    NAME: str
    TITLE: str
    SIZE: tuple[float, float]

    def compute(self, seed: int = 0, **options: Any) -> list[dict[str, Any]]:
        """The table: one dict per row, the same columns in each, among them `way`."""
        ...

    def draw(self, figure: Figure, rows: Sequence[dict[str, Any]]) -> None:
        """The figure of that table."""
        ...


def load(name: str) -> Experiment:
    """The module of the experiment `name`. An unknown name gets `InputError` listing the known ones."""
    return cast(Experiment, import_module(MODULES[one_of("name", name, MODULES)]))


__all__ = ["MODULES", "Experiment", "load"]
