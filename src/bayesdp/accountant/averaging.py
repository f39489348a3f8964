"""An average over runs, bounded: one estimator, its failure probability shared out over all averages (H9, C12)."""

from __future__ import annotations

from typing import NamedTuple

from bayesdp.compose.averages import LogMean
from bayesdp.errors import Array
from bayesdp.estimate import upper_mean


class Averaging(NamedTuple):
    """How an average over runs is bounded."""

    estimator: str
    failure: float

    def over(self, estimates: int) -> LogMean:
        """The bound, the failure probability shared out over all estimates (union bound, C12)."""
        share = self.failure / max(1, estimates)

        def log_mean(values: Array, cap: Array | None, /) -> Array:
            return upper_mean(values, method=self.estimator, failure=share, log_high=cap)

        return log_mean
