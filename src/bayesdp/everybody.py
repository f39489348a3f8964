"""A number beside the promise to everybody: where it is not below the DP ε it brings nothing, and is not shown (H14).

    no better than for everybody: DP ε 2

Everybody has the DP promise whatever a Bayesian or per-instance bound comes to, so no reader is ever told a larger
number than that. JSON keeps what was computed and which bound won.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from bayesdp.guarantee import Guarantee
from bayesdp.rounding import up
from bayesdp.standing import STANDINGS

NO_BETTER = "no better than for everybody"


def beside(guarantees: Sequence[Guarantee]) -> list[Guarantee]:
    """The same guarantees; the Bayesian and per-instance ones know the least DP ε among them that holds for them too.

    That is one for the same neighbours, at no larger δ, that stands no worse.
    """
    result = []
    for one in guarantees:
        known = [other.epsilon for other in guarantees if one.notion != "dp" and _holds(other, one)]
        known += [] if one.dp_epsilon is None else [one.dp_epsilon]
        result.append(dataclasses.replace(one, dp_epsilon=min(known)) if known else one)
    return result


def capped(one: Guarantee) -> Guarantee:
    """What holds where `one` is no better than DP: the same with the DP ε. Else `one` itself."""
    return dataclasses.replace(one, epsilon=least(one.epsilon, one.dp_epsilon)) if one.no_better else one


def wins(epsilon: float, dp: float | None) -> bool:
    """Whether the DP ε `dp` is no larger than `epsilon`: then it is the number to read."""
    return dp is not None and math.isfinite(dp) and epsilon >= dp


def shown(epsilon: float, dp: float | None, digits: int = 5) -> str:
    """`epsilon` for a reader, never below it; the words above where `dp` wins."""
    return f"{NO_BETTER}: DP ε {up(dp or 0.0, digits)}" if wins(epsilon, dp) else up(epsilon, digits)


def least(epsilon: float, dp: float | None) -> float:
    """The smaller of the two, which is what an attacker is held to."""
    return epsilon if dp is None else min(epsilon, dp)


def _holds(dp: Guarantee, one: Guarantee) -> bool:
    """Whether the DP guarantee says something to whoever `one` speaks for."""
    fits = dp.notion == "dp" and dp.adjacency == one.adjacency and dp.delta <= one.delta
    no_worse = STANDINGS.index(dp.standing) <= STANDINGS.index(one.standing)
    return fits and no_worse and math.isfinite(dp.epsilon)
