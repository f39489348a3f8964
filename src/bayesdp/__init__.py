"""bayesdp: train on people's data and say truthfully what it costs in privacy.

To everybody (`WorstCaseAccountant`), to people like those in the data (`BayesianAccountant`), and to one named
record (`InstanceAccountant`). Every answer is a `Guarantee`: a number and its fine print.
"""

from bayesdp.accountant import BayesianAccountant, Curve, InstanceAccountant, WorstCaseAccountant
from bayesdp.errors import InputError
from bayesdp.guarantee import Guarantee

__version__ = "0.1.0"

__all__ = [
    "BayesianAccountant",
    "Curve",
    "Guarantee",
    "InputError",
    "InstanceAccountant",
    "WorstCaseAccountant",
    "__version__",
]
