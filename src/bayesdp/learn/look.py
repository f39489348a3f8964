"""A run at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Look:
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
