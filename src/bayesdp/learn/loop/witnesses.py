"""Who is measured along a run: outsiders, members and watched records, in this order in every array (H5).

    outsiders   records that are never trained on (`holdout`)
    members     training records, drawn uniformly before the run
    watched     records whose own guarantee is wanted

Where all records are measured anyway (`measurement`), all of them are members: their shares are counted (H16), and
need no pass of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant.run_tallies import Counts
from bayesdp.learn.records import Data, Rows, checked, chosen, joined, records_of

EVERYONE = "everyone"
"""The `watch` that means all records of the data."""

Floats = npt.NDArray[np.float32]

MEMBERS = 2000
"""Training records drawn as witnesses beside a holdout when nothing else is said."""


def members_wanted(members: int | None, holdout: Data, usual: int = MEMBERS) -> int:
    """How many training records are to be witnesses; None: as many as `usual` beside a holdout, else none.

    Every witness that is not measured anyway costs a gradient in every step. Bad input: a negative number gets
    `InputError`.
    """
    if members is None:
        return 0 if holdout is None else usual
    return errors.whole("members", members, least=0)


def drawn_members(size: int, count: int, seed: int | None) -> Rows:
    """`count` of `size` records, or all of them, in ascending order."""
    return np.sort(np.random.default_rng(seed).permutation(size)[:count])


@dataclass(frozen=True, eq=False)
class Witnesses:
    """The witnesses of a run on `size` records: the rows that are `members`, and those outside of the data.

    `outside` are measured in a pass of their own: outsiders, members unless all records are measured, watched records
    unless these are `everyone`. None for nobody.
    """

    size: int
    members: Rows
    everyone: bool
    counts: Counts
    outside: Data

    @classmethod
    def of(cls, data: Data, *, holdout: Data, members: Rows, watch: Data, measured: bool) -> Witnesses:
        """`measured`: whether all records are measured. Bad input: records of another form than those of `data`."""
        size, everyone = records_of("data", data), isinstance(watch, str)
        if everyone:
            errors.one_of("watch", watch, [EVERYONE])
        outsiders = checked("holdout", holdout, data)
        watched = size if everyone else checked("watch", watch, data)
        inside = chosen(data, members) if len(members) and not measured else None
        parts = [part for part in (holdout, inside, None if everyone else watch) if part is not None]
        counts = Counts(outsiders, len(members), watched)
        return cls(size, members, everyone, counts, joined(parts) if parts else None)

    @property
    def all_members(self) -> bool:
        """Whether the members are all records, so that they are counted (H16)."""
        return len(self.members) == self.size

    def among(self, measured: Floats) -> Floats:
        """The witnesses' own of something measured of all records and then of those outside, (records + outside,)."""
        records, outside = measured[: self.size], measured[self.size :]
        outsiders = self.counts.outsiders
        watched = records if self.everyone else outside[outsiders:]
        return np.concatenate([outside[:outsiders], records[self.members], watched])
