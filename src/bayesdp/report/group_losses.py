"""ε by group of people in a report: what the accountant's `Groups` says, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bayesdp import errors
from bayesdp.accountant import Groups
from bayesdp.report import part
from bayesdp.report.part import Gapped, Part

ORIENTATIONS = ("absent", "present")


@dataclass(frozen=True, kw_only=True)
class GroupLosses(Part):
    """ε of a share `coverage` of each group, all groups together with confidence 1 − `failure` (H5).

    `names`: of the groups; `witnesses`: how many each has, by orientation ("absent", "present"); `epsilon`: None where
    they are too few to speak for the group, which takes `needed` of each sampled side; `dp` is the DP ε at the same δ.

    Bad input gets `InputError` naming the field.
    """

    names: tuple[str, ...]
    witnesses: Mapping[str, tuple[int, ...]]
    epsilon: Gapped
    coverage: float
    failure: float
    needed: int
    dp: float = math.inf

    def __post_init__(self) -> None:
        names = tuple(part.text("names", one) for one in self.names)
        if not names:
            raise errors.refuse("names", self.names, "to name at least one group")
        self._put(
            names=names,
            witnesses=part.mapping("witnesses", self.witnesses, lambda name, one: _counts(name, one, len(names))),
            epsilon=part.gapped("epsilon", self.epsilon, len(names)),
            coverage=errors.probability("coverage", self.coverage),
            failure=errors.number("failure", self.failure, least=0, most=1),
            needed=errors.whole("needed", self.needed, least=1),
            dp=part.infinite("dp", self.dp),
        )
        for name in self.witnesses:
            errors.one_of("witnesses", name, ORIENTATIONS)

    @classmethod
    def of(cls, groups: Groups | None) -> Self | None:
        """An accountant's groups; None for none."""
        if groups is None:
            return None
        found = groups.groups
        return cls(
            names=tuple(one.name for one in found),
            witnesses={side: tuple(one.witnesses[side] for one in found) for side in found[0].witnesses},
            epsilon=tuple(one.epsilon for one in found),
            coverage=groups.coverage,
            failure=groups.failure,
            needed=groups.needed,
            dp=groups.dp,
        )


def _counts(name: str, value: Any, length: int) -> tuple[int, ...]:
    found = tuple(errors.whole(name, one, least=0) for one in value)
    if len(found) != length:
        raise errors.refuse(name, len(found), f"with {length} entries", got=f"{len(found)}")
    return found
