"""bayesdp: train on people's data and say truthfully what it costs in privacy.

To everybody (`WorstCaseAccountant`), to people like those in the data (`BayesianAccountant`), and to one named
record (`InstanceAccountant`). Every answer is a `Guarantee`: a number and its fine print.

Codes in docstrings, such as H5, ERR 8 or S1, are explained in docs/reference of the source.

Names are loaded when they are first used, so that the command line answers `--help` without loading SciPy.
"""

from typing import TYPE_CHECKING

from bayesdp.errors import InputError
from bayesdp.lazy import lazy
from bayesdp.version import __version__

if TYPE_CHECKING:
    from bayesdp.accountant import BayesianAccountant, Curvature, Curve, InstanceAccountant, WorstCaseAccountant
    from bayesdp.accountant.calibrate import noise_for
    from bayesdp.accountant.repeated_runs.truncation import Truncation
    from bayesdp.guarantee import Guarantee
    from bayesdp.jobs.load import load
    from bayesdp.learn import (
        PSGLD,
        SGD,
        SGHMC,
        SGLD,
        SGNHT,
        VI,
        Filter,
        Network,
        Newton,
        NormalPrior,
        Posterior,
        PosteriorVI,
        Run,
        SampledPosterior,
        SecretPosterior,
        Study,
        StudyResult,
    )
    from bayesdp.mechanism import Mean, ModelLoss, People, Sum
    from bayesdp.report.of_accountants import write_report

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
    "Mean",
    "ModelLoss",
    "Network",
    "Newton",
    "NormalPrior",
    "People",
    "Posterior",
    "PosteriorVI",
    "Run",
    "SampledPosterior",
    "SecretPosterior",
    "Study",
    "StudyResult",
    "Sum",
    "Truncation",
    "WorstCaseAccountant",
    "__version__",
    "load",
    "noise_for",
    "write_report",
]

_HOMES = {
    "Filter": "bayesdp.learn",
    "Network": "bayesdp.learn",
    "Newton": "bayesdp.learn",
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
    "Mean": "bayesdp.mechanism",
    "ModelLoss": "bayesdp.mechanism",
    "People": "bayesdp.mechanism",
    "Sum": "bayesdp.mechanism",
    "Truncation": "bayesdp.accountant.repeated_runs.truncation",
    "load": "bayesdp.jobs.load",
    "noise_for": "bayesdp.accountant.calibrate",
    "write_report": "bayesdp.report.of_accountants",
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
