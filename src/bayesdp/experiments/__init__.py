"""The figures and tables of the papers, by name: `bayesdp reproduce NAME`.

The papers are called S0 to S4 throughout:

    S0, S1   Triastcyn and Faltings, Bayesian Differential Privacy for Machine Learning, in two versions: `bayesian_dp`
    S2       Jälkö, Dikmen and Honkela, Differentially Private Variational Inference for Non-conjugate Models: `dpvi`
    S3       Thudi et al., Gradients Look Alike: Privacy is Often Overestimated in DP-SGD: `per_instance`
    S4       Li et al., On Connecting Stochastic Gradient MCMC and Differential Privacy: `langevin`

`baselines` holds what they compare with, `errata` what they got wrong, `common` what several folders share. All live
in the package so that an installed `bayesdp` can redo them. A module's `EXPERIMENTS` are by the names of `MODULES`;
`run.reproduce` writes the files. Modules are imported when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayesdp.errors import one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODULES = {
    "bdp-fig1": "bayesian_dp.fig1",
    "bdp-fig2": "bayesian_dp.fig2",
    "bdp-fig3": "bayesian_dp.fig3",
    "bdp-fig4": "bayesian_dp.fig4",
    "bdp-mnist": "bayesian_dp.images",
    "bdp-cifar10": "bayesian_dp.images",
    "bdp-leak": "bayesian_dp.leak",
    "bdp-abalone": "bayesian_dp.posterior",
    "bdp-adult": "bayesian_dp.posterior",
    "bdp-table1": "bayesian_dp.table1",
    "dpvi-abalone": "dpvi.logistic",
    "dpvi-adult": "dpvi.logistic",
    "dpvi-q": "dpvi.sweep",
    "dpvi-clip": "dpvi.sweep",
    "dpvi-mixture": "dpvi.mixture",
    "dpvi-covariance": "dpvi.covariance",
    "dpvi-coverage": "dpvi.coverage",
    "instance-mnist": "per_instance.mnist",
    "instance-distribution": "per_instance.distribution",
    "instance-mean": "per_instance.mean",
    "instance-epsdelta": "per_instance.epsdelta",
    "mnist-scattering": "bayesian_dp.mnist_scattering",
    "sgld-adult": "langevin.adult",
    "sgld-gan": "langevin.gan",
    "sgld-mnist": "langevin.mnist",
    "sgld-stepsize": "langevin.step_size",
    "sgld-svhn": "langevin.svhn",
}
"""Name on the command line → module of this package."""


@dataclass(frozen=True)
class Experiment:
    """A figure or table: its title, its size in inches, its numbers and its picture.

    `compute(seed)` gives the table: one dict per row, the same columns in each, among them `way`. `options` are those
    of `full`, `data_dir` and `results` that it takes as well. `draw(figure, rows)` makes the picture of that table.
    """

    title: str
    size: tuple[float, float]
    compute: Callable[..., list[dict[str, Any]]]
    draw: Callable[[Figure, Sequence[dict[str, Any]]], None]
    options: tuple[str, ...] = ()


def load(name: str) -> Experiment:
    """The experiment `name`. An unknown name gets `InputError` listing the known ones."""
    module = import_module(f"{__name__}.{MODULES[one_of('name', name, MODULES)]}")
    found: Experiment = module.EXPERIMENTS[name]
    return found


__all__ = ["MODULES", "Experiment", "load"]
