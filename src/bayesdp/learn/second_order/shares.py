"""How the budget is shared out: which part of it each step spends on a gradient, on curvature, on the spread of scores.

Parts are of 1/z², which add up when Gaussian mechanisms are composed: a step with the share p has the noise multiplier
z/√p. The first step buys curvature alone, to know in which coordinates records are alike; the steps that follow go to
where the posterior is and need not be exact; the last four are what the posterior is read from. They are taken about
the optimum, each off by the noise of the one before: on average these errors cancel, so that what is not known of the
curvature matters little.
"""

from __future__ import annotations

from typing import NamedTuple

STEPS, FEWEST = 8, 6
READ = 4
"""Steps that the posterior is read from, the last ones."""

_BEGIN, _WAY, _WAY_CURVATURE = 0.04, 0.16, 0.06
_READ = (0.50, 0.20, 0.04)


class Share(NamedTuple):
    """Of the budget, in one step."""

    gradient: float
    curvature: float
    spread: float

    @property
    def whole(self) -> float:
        """All three."""
        return self.gradient + self.curvature + self.spread


def shares(steps: int) -> tuple[Share, ...]:
    """One for each step; they add up to 1."""
    middle = steps - 1 - READ
    rising = [2 * (i + 1) / (middle * (middle + 1)) for i in range(middle)]
    way = [Share(_WAY * part, _WAY_CURVATURE / middle, 0.0) for part in rising]
    return (Share(0.0, _BEGIN, 0.0), *way, *READ * [Share(*(part / READ for part in _READ))])
