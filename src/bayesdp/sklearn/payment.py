"""Each fit is charged to a ledger before the first of its noise is drawn, or says that nobody counts it.

scikit-learn's searches fit an estimator many times and show scores that are computed without noise. The ledger pays for
the fits; nothing pays for the scores, and every guarantee says so.
"""

from __future__ import annotations

import secrets
import warnings
from pathlib import Path
from typing import Any

from bayesdp.ledger import Charge, Ledger

SCORES = (
    "Scores on records (score, cross_val_score, GridSearchCV) are computed without noise: no guarantee pays for "
    "showing them, or for a choice made by them."
)
_UNCOUNTED = "No ledger was given: other fits on the same people come on top of this one, and nobody counts them."
_COUNTED = (
    "This speaks for one fit. The ledger held {earlier} other charges when it was paid: what all of them cost together "
    "is the ledger's total."
)
LOOKS = ("scores on records that scikit-learn computes without noise",)


class PrivacyWarning(UserWarning):
    """A fit that nobody counts, or something else that makes a guarantee say less than one may think."""


def pay(ledger: Ledger | str | Path | None, what: str, cost: dict[str, Any]) -> tuple[str, ...]:
    """Charge `cost`, fields of a `Charge`, and return what a guarantee then has to say.

    Without a ledger it warns. Bad input: what the ledger does not pay for gets `InputError`, and nothing is charged.
    """
    if ledger is None:
        message = f"{what} was fitted without a ledger: nobody adds up what several fits on the same people cost."
        warnings.warn(message, PrivacyWarning, stacklevel=3)
        return _UNCOUNTED, SCORES
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    line = book.charge(Charge(run=secrets.token_hex(8), what=what, looks=LOOKS, **cost))
    earlier = sum(one.value["kind"] == "charge" for one in book.lines()[: line.number])
    return _COUNTED.format(earlier=earlier), SCORES
