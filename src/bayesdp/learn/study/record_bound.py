"""The Rényi bound of one record of a study, at orders that share one failure probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant.repeated_runs.interval import ManyRuns
from bayesdp.errors import Array

ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0)
"""The orders of a record's Rényi bound unless others are given."""


@dataclass(frozen=True)
class RecordBound:
    """An a-priori Rényi bound for one record: D_α between the plan with it and without it, in `direction`.

    Everything that is ever read off it holds together with probability 1 − `failure`: the failure is shared out over
    `orders`, fixed when it is made. `words` say where the bound comes from.
    """

    name: str
    direction: str
    failure: float
    words: str
    orders: tuple[float, ...]
    _sides: tuple[ManyRuns, ...]

    def divergence(self, orders: npt.ArrayLike) -> Array:
        """Upper bounds on D_α, one for each order; infinite where even the worst case is.

        Between two of its `orders` the next larger one counts (D rises with the order), beyond the last the worst case.
        """
        asked = errors.array("orders", orders, above=1, ndim=(0, 1))
        flat = asked.ravel()
        worst = np.max([[float(side.worst([one])[0]) for one in flat] for side in self._sides], axis=0)
        above = np.append(self._certified, np.inf)[np.searchsorted(self.orders, flat)]
        return np.asarray(np.minimum(above, worst).reshape(asked.shape))

    @cached_property
    def _certified(self) -> Array:
        return np.asarray(np.max([side.divergences(list(self.orders))[0] for side in self._sides], axis=0))
