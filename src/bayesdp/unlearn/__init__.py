"""May this record be forgotten without retraining? What else is a record's bound good for?

    Ledger           keep or retrain, with the arithmetic: `Ledger(budget=0.1).request(17, accountant)`
    budget           β from an (ε, δ), or from how often an attacker may be right
    memorisation     how much a record's own label can gain from its being in the data; membership advantage
    forgeability     a statement that the model could have come from data without the record
    protocol         whether the DP guarantee survives what the numbers are used for

Nothing here imports JAX, except `folder` and `forgeability`, which read what a training left.
"""

from bayesdp.unlearn.closeness import Term
from bayesdp.unlearn.decision import Decision, Ledger
from bayesdp.unlearn.memorisation import Exposure, exposure, membership_advantage, memorisation
from bayesdp.unlearn.protocol import INTERNAL, MODIFY, ReleaseProtocol, protocol_of
from bayesdp.unlearn.source import APriori, FilterBudget, GaussianBudget, Measured, WorstCase, source_of
from bayesdp.unlearn.triangle import chain, coefficient, printed_coefficient

__all__ = [
    "INTERNAL",
    "MODIFY",
    "APriori",
    "Decision",
    "Exposure",
    "FilterBudget",
    "GaussianBudget",
    "Ledger",
    "Measured",
    "ReleaseProtocol",
    "Term",
    "WorstCase",
    "chain",
    "coefficient",
    "exposure",
    "membership_advantage",
    "memorisation",
    "printed_coefficient",
    "protocol_of",
    "source_of",
]
