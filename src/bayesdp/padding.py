"""The rows of people in one rectangle: a line for each person, filled up where there are fewer rows than places.

person 0: rows 4, 7, 9      →  places [[4, 7, 9], [2, 2, 2]],   present [[1, 1, 1], [1, 0, 0]]
person 1: row 2
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROWS = 10
"""Rows of one person that are used at most, where nothing else is said: a public number."""


class Layout(NamedTuple):
    """The people, ascending, where their rows lie (people, width), and which of these places hold one of theirs."""

    people: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    present: npt.NDArray[np.bool_]


def layout(owner: npt.NDArray[np.int64], width: int, keys: npt.NDArray[np.generic] | None = None) -> Layout:
    """The rows of each person, whose number `owner` (rows,) has: `width` of them at most, those with the least `keys`.

    Without keys they are taken as they come. A place without a row has the person's first again: a copy of a row is as
    finite as the row is, so that a mask can take it out of a sum and of its gradient.
    """
    order = np.lexsort((np.arange(len(owner)) if keys is None else keys, owner))
    people, starts, counts = np.unique(owner[order], return_index=True, return_counts=True)
    place = np.arange(width)
    present = place < counts[:, None]
    return Layout(people, order[starts[:, None] + np.where(present, place, 0)], present)
