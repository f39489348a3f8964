"""Attacks on the mechanism: lower bounds on ε that stand beside the upper ones (L9).

scores of plays with and without a canary → errors of a test on plays it has not seen → what they refute
"""

from bayesdp.audit.audit import audit
from bayesdp.audit.membership import membership
from bayesdp.audit.replay import replay
from bayesdp.report.audit import Audit, CanaryBounds, LowerBound

__all__ = ["Audit", "CanaryBounds", "LowerBound", "audit", "membership", "replay"]
