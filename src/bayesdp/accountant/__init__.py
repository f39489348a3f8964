"""Three accountants: they keep the tally and know nothing of models."""

from bayesdp.accountant.bayesian import BayesianAccountant
from bayesdp.accountant.coverage import Curve
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.last_iterate import Curvature
from bayesdp.accountant.worst_case import WorstCaseAccountant

__all__ = ["BayesianAccountant", "Curvature", "Curve", "InstanceAccountant", "WorstCaseAccountant"]
