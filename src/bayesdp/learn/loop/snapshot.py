"""A run at one moment: what it has cost so far, how long gradients are, and how well the model does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bayesdp.accountant.run_tallies import Tallies
from bayesdp.errors import Array
from bayesdp.learn.loop.objective import Params

Evaluate = Callable[[Params], dict[str, float]]

SNAPSHOTS = 20
"""Snapshots of a run unless the plan says otherwise."""

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""Quantiles of the witnesses' gradient norms that are kept."""

LARGEST = float(np.finfo(np.float32).max)
"""What the norm of a gradient that overflowed is shown as."""


@dataclass(frozen=True)
class Snapshot:
    """After `step` steps: ε of the three notions so far, quantiles of gradient norms, reported numbers.

    The ε are by Rényi accounting, a little above what a run that ended here would be accounted with, and never above
    the DP value of the whole plan.
    """

    step: int
    dp: float
    bdp: float | None
    per_instance: float | None
    norms: tuple[float, ...]
    metrics: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, step: int, tallies: Tallies, coverage: float, norms: Array, metrics: dict[str, float]) -> Snapshot:
        """What can be said after `step` steps; `norms` are the witnesses' at the last of them, (witnesses,)."""
        found = tallies.so_far(coverage)
        shown = np.minimum(norms.astype(np.float64), LARGEST)
        quantiles = tuple(np.quantile(shown, LEVELS).tolist()) if len(shown) else ()
        return cls(step, found.dp, found.population, found.instance, quantiles, metrics)
