"""Three accountants: they keep the tally and know nothing of models."""

from bayesdp.accountant.bayesian import BayesianAccountant
from bayesdp.accountant.coverage import Curve, Group, Groups, by_group
from bayesdp.accountant.instance import InstanceAccountant
from bayesdp.accountant.langevin.last_iterate import Curvature
from bayesdp.accountant.worst_case import WorstCaseAccountant

__all__ = [
    "BayesianAccountant",
    "Curvature",
    "Curve",
    "Group",
    "Groups",
    "InstanceAccountant",
    "WorstCaseAccountant",
    "by_group",
]
