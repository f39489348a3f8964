"""The records that were named before the run, and what it cost each of them."""

from __future__ import annotations

from dataclasses import dataclass

from bayesdp import errors
from bayesdp.report import part
from bayesdp.report.part import Numbers, Part


@dataclass(frozen=True, kw_only=True)
class WatchedRecords(Part):
    """`names`, as the one who trained calls them, and the per-instance ε of each at the report's δ.

    Bad input: none, or another number of losses than of names, get `InputError`.
    """

    names: tuple[str, ...]
    epsilon: Numbers

    def __post_init__(self) -> None:
        names = part.sentences("names", self.names)
        if not names:
            raise errors.refuse("names", self.names, "to name at least one record")
        self._put(names=names, epsilon=part.numbers("epsilon", self.epsilon, infinite=True, least=0, length=len(names)))
