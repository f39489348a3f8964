"""From the ε of each witness to the ε of a share of people: order statistics (H5) over both orientations.

Outsiders and members are separate samples: they share the failure probability, and the larger ε counts. A side is
`counted` where its witnesses are all there are: every member, when everybody is measured (H16). Its shares are then
known, and cost no failure probability. Else members are
drawn from the data set without replacement, which `estimate.quantile` allows for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.estimate import quantile


@dataclass(frozen=True)
class Curve:
    """Share of people → ε, valid for all shares at once: a share may be picked after looking (simultaneous ranks, H12).

    Unpacks as `coverage, epsilon = curve`; both ascend.

    Args:
        coverage: shares of people.
        epsilon: the ε of each share.
        delta: the δ that all of them are at.
        failure: the chance that any of them is wrong.
        limit: the ε that nobody's exceeds (H14), infinite when no clip norm was given.
        dp: what the plan promises everybody at the same δ, a little below `limit`.

    Examples:
        >>> typical = bd.BayesianAccountant(cap=1.0)
        >>> for side in ("absent", "present"):
        ...     typical.step([0.1] * 1500 + [1.0] * 500, noise_std=2.0, sampling_rate=0.02, steps=100, orientation=side)
        >>> curve = typical.curve(delta=1e-5)
        >>> round(curve.at(0.5), 2), round(curve.at(0.9), 2)
        (0.04, 0.41)
    """

    coverage: Array
    epsilon: Array
    delta: float
    failure: float
    limit: float
    dp: float = math.inf

    def at(self, coverage: float) -> float:
        """The ε of that share of people; infinite when neither the witnesses nor a clip norm support it."""
        return min(quantile.at(self.coverage, self.epsilon, coverage), self.limit)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.coverage, self.epsilon))


def covered(
    losses: Mapping[str, Array],
    coverage: float,
    failure: float,
    limit: float = math.inf,
    counted: Collection[str] = (),
) -> float:
    """The ε of a share `coverage` of people fixed beforehand, from the ε of witnesses by orientation; 0 without any.

    Where a sample is too small for that share, `limit`; without one, `InputError`.
    """
    epsilon, share = 0.0, _share(losses, failure, counted)
    for name, values in losses.items():
        if name in counted:
            rank: int | None = math.ceil(errors.probability("coverage", coverage) * len(values) - 1e-9)
        else:
            if math.isinf(limit):
                check_support({name: len(values)}, coverage, share)
            rank = quantile.rank_for(coverage, len(values), share, replaced=_replaced(name))
        epsilon = max(epsilon, limit if rank is None else float(np.sort(values)[rank - 1]))
    return epsilon


def _share(losses: Mapping[str, Array], failure: float, counted: Collection[str]) -> float:
    """Of the failure probability, for each side that is a sample."""
    return failure / max(1, len(losses.keys() - set(counted)))


def _counted_curve(values: Array) -> tuple[Array, Array]:
    """Rank r of n speaks for r/n of those counted."""
    draws = np.sort(values)
    return np.arange(1.0, len(draws) + 1) / len(draws), draws


def check_support(counts: Mapping[str, int], coverage: float, failure: float) -> None:
    """Refuse a coverage that these numbers of witnesses cannot support at that failure probability each."""
    for name, count in counts.items():
        if quantile.rank_for(coverage, count, failure, replaced=_replaced(name)) is None:
            most = quantile.most_covered(count, failure, replaced=_replaced(name))
            raise errors.refuse(
                "coverage",
                coverage,
                f'to be at most {math.floor(most * 1e5) / 1e5:g}, which {count} witnesses "{name}" support',
                f"Use more witnesses, or give {errors.named('cap')} (the clip norm): then the DP value speaks for the "
                "rest.",
            )


def curve(
    losses: Mapping[str, Array],
    delta: float,
    failure: float,
    limit: float = math.inf,
    dp: float = math.inf,
    counted: Collection[str] = (),
) -> Curve:
    """Coverage → ε for the whole population at once; each rank is bounded at failure/(witnesses x sampled sides)."""
    if not losses:
        raise errors.unmet("steps", 0, "at least one step before a curve is asked for", "none")
    share = _share(losses, failure, counted)
    curves = [
        _counted_curve(values) if name in counted else quantile.curve(values, share, replaced=_replaced(name))
        for name, values in losses.items()
    ]
    if set(losses) <= set(counted):
        failure = 0.0
    shares = np.unique(np.concatenate([coverage for coverage, _ in curves]))
    shares = shares[shares <= min(coverage[-1] for coverage, _ in curves)]
    epsilon = np.max([values[np.searchsorted(coverage, shares)] for coverage, values in curves], axis=0)
    return Curve(shares, np.minimum(epsilon, limit), delta, failure, limit, dp)


@dataclass(frozen=True)
class Group:
    """A group of people: how many witnesses it has, by orientation, and the ε of its share `coverage`.

    `epsilon` is None where its witnesses are too few to speak for it: then it has what everybody has.
    """

    name: str
    witnesses: Mapping[str, int]
    epsilon: float | None


@dataclass(frozen=True)
class Groups:
    """ε by group, all of them together with confidence 1 − `failure`, each for a share `coverage` of its people.

    `dp` is what the plan promises everybody at the same δ. A group needs `needed` witnesses of each
    orientation that is sampled.
    """

    groups: tuple[Group, ...]
    delta: float
    coverage: float
    failure: float
    needed: int
    dp: float = math.inf


def by_group(
    losses: Mapping[str, Array],
    labels: Mapping[str, Sequence[object]],
    *,
    delta: float,
    coverage: float,
    failure: float,
    dp: float = math.inf,
    counted: Collection[str] = (),
) -> Groups:
    """ε of each group of people (classes, a public column) from the ε and the label of witnesses by orientation (H5).

    Given who is in which group, the witnesses of a group are independent draws of it, and the failure probability is
    shared out over groups and sampled sides: so all groups hold together, whichever is looked at. A side that is
    `counted` has all there are (H16). `coverage` is fixed beforehand. It is a statement beside `covered` and `curve`,
    with a failure probability of its own.

    Bad input: a label for each witness, δ, coverage or failure outside (0, 1).
    """
    delta, share = errors.probability("delta", delta), errors.probability("coverage", coverage)
    known = {name: np.array([str(one) for one in labels.get(name, ())], dtype=object) for name in losses}
    for name, values in losses.items():
        if len(known[name]) != len(values):
            raise errors.refuse(
                "labels",
                len(known[name]),
                f'with one entry for each of the {len(values)} witnesses "{name}"',
                got=f"{len(known[name])}",
            )
    names = sorted({one for side in known.values() for one in side}, key=_in_order)
    if not names:
        raise errors.unmet("labels", labels, "at least one witness", "none")
    each = _share(losses, errors.probability("failure", failure), counted) / len(names)
    found = []
    for name in names:
        own = {side: losses[side][known[side] == name] for side in losses}
        spoken = all(
            len(values) > 0 and (side in counted or _supported(share, len(values), each, side))
            for side, values in own.items()
        )
        # Of several sides each has its own part of the failure probability, which `covered` shares out again.
        whole = each * max(1, len(losses.keys() - set(counted)))
        epsilon = covered(own, share, whole, counted=counted) if spoken else None
        found.append(Group(name, {side: len(values) for side, values in own.items()}, epsilon))
    needed = math.ceil(math.log(each) / math.log(share))
    return Groups(tuple(found), delta, share, 0.0 if set(losses) <= set(counted) else failure, needed, dp)


def _in_order(name: str) -> tuple[bool, float, str]:
    """Numbers by their size, before words."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def _supported(coverage: float, count: int, failure: float, orientation: str) -> bool:
    """Whether so many witnesses speak for that share."""
    return quantile.rank_for(coverage, count, failure, replaced=_replaced(orientation)) is not None


def _replaced(orientation: str) -> bool:
    """Whether the witnesses are independent draws: members of a data set, each at most once, are not."""
    return orientation != "present"
