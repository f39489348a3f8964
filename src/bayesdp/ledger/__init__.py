"""What was spent on one data set: charges that are written down before they are used, and what they come to together.

ledger = Ledger.open("people.ledger", budget=4, delta=1e-6)
ledger.charge(Charge(run="a", what="train", steps=((1.1, 0.01, 1000),)))
ledger.total(1e-6)                → the DP guarantee of all of it, and the others where they are sound
"""

from bayesdp.ledger.charge import Charge
from bayesdp.ledger.ledger import Ledger
from bayesdp.ledger.selection import Selection
from bayesdp.ledger.total import Total

__all__ = ["Charge", "Ledger", "Selection", "Total"]
