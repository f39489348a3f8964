"""Three accountants: they keep the tally and know nothing of models."""

from bayesdp.accountant.bayesian import BayesianAccountant, Curve
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.worst_case import WorstCaseAccountant

__all__ = ["BayesianAccountant", "Curve", "InstanceAccountant", "WorstCaseAccountant"]
