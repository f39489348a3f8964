"""bayesdp: train on people's data and say truthfully what it costs in privacy.

To everybody (`WorstCaseAccountant`), to people like those in the data (`BayesianAccountant`), and to one named
record (`InstanceAccountant`). Every answer is a `Guarantee`: a number and its fine print.

Names are loaded when they are first used, so that the command line answers `--help` without loading SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayesdp.errors import InputError

if TYPE_CHECKING:
    from bayesdp.accountant import BayesianAccountant, Curvature, Curve, InstanceAccountant, WorstCaseAccountant
    from bayesdp.guarantee import Guarantee
    from bayesdp.learn import (
        PSGLD,
        SGD,
        SGHMC,
        SGLD,
        SGNHT,
        VI,
        Filter,
        Network,
        NormalPrior,
        Posterior,
        PosteriorVI,
        Run,
        SampledPosterior,
        SecretPosterior,
        Study,
        StudyResult,
    )

__version__ = "0.1.0"

__all__ = [
    "PSGLD",
    "SGD",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "VI",
    "BayesianAccountant",
    "Curvature",
    "Curve",
    "Filter",
    "Guarantee",
    "InputError",
    "InstanceAccountant",
    "Network",
    "NormalPrior",
    "Posterior",
    "PosteriorVI",
    "Run",
    "SampledPosterior",
    "SecretPosterior",
    "Study",
    "StudyResult",
    "WorstCaseAccountant",
    "__version__",
]

_HOMES = {
    "Filter": "bayesdp.learn",
    "Network": "bayesdp.learn",
    "NormalPrior": "bayesdp.learn",
    "Posterior": "bayesdp.learn",
    "PosteriorVI": "bayesdp.learn",
    "Run": "bayesdp.learn",
    "SGD": "bayesdp.learn",
    "PSGLD": "bayesdp.learn",
    "SGHMC": "bayesdp.learn",
    "SGLD": "bayesdp.learn",
    "SGNHT": "bayesdp.learn",
    "SampledPosterior": "bayesdp.learn",
    "SecretPosterior": "bayesdp.learn",
    "Study": "bayesdp.learn",
    "StudyResult": "bayesdp.learn",
    "VI": "bayesdp.learn",
    "BayesianAccountant": "bayesdp.accountant",
    "Curvature": "bayesdp.accountant",
    "Curve": "bayesdp.accountant",
    "InstanceAccountant": "bayesdp.accountant",
    "WorstCaseAccountant": "bayesdp.accountant",
    "Guarantee": "bayesdp.guarantee",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bayesdp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
