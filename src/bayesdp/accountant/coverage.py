"""From the ε of each witness to the ε of a share of people: order statistics over both orientations (SPEC H5, H12).

Outsiders and members are separate samples: they share the failure probability, and the larger ε counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array, InputError
from bayesdp.estimate import quantile


@dataclass(frozen=True)
class Curve:
    """Share of people → ε, valid for all shares at once: a share may be picked after looking (H12).

    Unpacks as `coverage, epsilon = curve`; both ascend. `limit` is the DP value that holds for everybody, infinite
    when no clip norm was given.
    """

    coverage: Array
    epsilon: Array
    delta: float
    failure: float
    limit: float

    def at(self, coverage: float) -> float:
        """The ε of that share of people; infinite when neither the witnesses nor a clip norm support it."""
        return min(quantile.at(self.coverage, self.epsilon, coverage), self.limit)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.coverage, self.epsilon))


def covered(losses: Mapping[str, Array], coverage: float, failure: float, limit: float = math.inf) -> float:
    """The ε of a share `coverage` of people fixed beforehand, from the ε of witnesses by orientation; 0 without any.

    Where a sample is too small for that share, `limit`; without one, `InputError`.
    """
    epsilon = 0.0
    for name, values in losses.items():
        if math.isinf(limit):
            check_support({name: len(values)}, coverage, failure / len(losses))
        rank = quantile.rank_for(coverage, len(values), failure / len(losses))
        epsilon = max(epsilon, limit if rank is None else float(np.sort(values)[rank - 1]))
    return epsilon


def check_support(counts: Mapping[str, int], coverage: float, failure: float) -> None:
    """Refuse a coverage that these numbers of witnesses cannot support at that failure probability each."""
    for name, count in counts.items():
        if quantile.rank_for(coverage, count, failure) is None:
            most = quantile.most_covered(count, failure)
            raise errors.refuse(
                "coverage",
                coverage,
                f'to be at most {math.floor(most * 1e5) / 1e5:g}, which {count} witnesses "{name}" support',
                "Use more witnesses, or give cap (the clip norm): then the DP value speaks for the rest.",
            )


def curve(losses: Mapping[str, Array], delta: float, failure: float, limit: float = math.inf) -> Curve:
    """Coverage → ε for the whole population at once; each rank is bounded at failure/(witnesses x orientations)."""
    if not losses:
        raise InputError("Expected at least one step before a curve is asked for, got none.")
    curves = [quantile.curve(values, failure / len(losses)) for values in losses.values()]
    shares = np.unique(np.concatenate([coverage for coverage, _ in curves]))
    shares = shares[shares <= min(coverage[-1] for coverage, _ in curves)]
    epsilon = np.max([values[np.searchsorted(coverage, shares)] for coverage, values in curves], axis=0)
    return Curve(shares, np.minimum(epsilon, limit), delta, failure, limit)
