"""May this record be forgotten without retraining? What else is a record's bound good for? (SPEC E12, E13, B12)

    Ledger           keep or retrain, with the arithmetic: `Ledger(budget=1, order=8).request(17, accountant)`
    memorisation     how much a record's own label can gain from its being in the data; membership advantage
    forgeability     a statement that the model could have come from data without the record
    audit            whether the DP guarantee survives what the numbers are used for

Nothing here imports JAX, except `folder` and `forgeability`, which read what a training left.
"""

from bayesdp.unlearn.audit import INTERNAL, MODIFY, Audit, protocol
from bayesdp.unlearn.decision import Decision, Term
from bayesdp.unlearn.ledger import Ledger
from bayesdp.unlearn.memorisation import Exposure, exposure, membership_advantage, memorisation
from bayesdp.unlearn.source import APriori, FilterBudget, GaussianBudget, Measured, WorstCase, source_of
from bayesdp.unlearn.triangle import chain, coefficient, printed_coefficient

__all__ = [
    "INTERNAL",
    "MODIFY",
    "APriori",
    "Audit",
    "Decision",
    "Exposure",
    "FilterBudget",
    "GaussianBudget",
    "Ledger",
    "Measured",
    "Term",
    "WorstCase",
    "chain",
    "coefficient",
    "exposure",
    "membership_advantage",
    "memorisation",
    "printed_coefficient",
    "protocol",
    "source_of",
]
