"""Trees of records: arrays with a row for each record, such as (x, y) or {"x": x, "y": y}. Their form is checked here.

    data       leaves (records, …), all of one length, at least one record
    record     the same tree with leaves (…)

`mechanism.devices.Records` are the same, dealt out to devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from bayesdp.errors import refuse
from bayesdp.mechanism.blocks import not_half

Data = Any
"""A tree of arrays with the records along the first axis; None for no records."""

Record = Any
"""One record: the tree without its first axis."""

Rows = npt.NDArray[np.int64]
"""Places of records in data."""


def records_of(name: str, data: Data) -> int:
    """How many records a tree of arrays holds.

    Bad input: no array, no records, arrays of different lengths, or of floats in half precision.
    """
    lengths = {int(np.shape(leaf)[0]) if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1 or -1 in lengths or 0 in lengths:
        raise refuse(name, sorted(lengths), "to hold arrays with the same number of records", got=f"{sorted(lengths)}")
    not_half(name, data)
    return lengths.pop()


def checked(name: str, records: Data, data: Data) -> int:
    """How many `records` there are, which must be of the form of those in `data`; 0 for None.

    Bad input: another tree, records of other shapes, and as for `records_of`.
    """
    if records is None:
        return 0
    if len({jax.tree.structure(records), jax.tree.structure(data)}) > 1:
        raise refuse(name, None, "to be a tree of the same form as data", got="another")
    for given, held in zip(jax.tree.leaves(records), jax.tree.leaves(data), strict=True):
        if np.ndim(given) == 0 or np.shape(given)[1:] != np.shape(held)[1:]:
            raise refuse(
                name,
                np.shape(given)[1:],
                f"to hold records of the same shape as data, {np.shape(held)[1:]}",
                "Give one record as an array with one row.",
                got=f"{np.shape(given)[1:]}",
            )
    return records_of(name, records)


def like(name: str, records: Data, data: Data) -> Data:
    """`records` in the types of `data`; no rows for None. Bad input: see `checked`."""
    if not checked(name, records, data):
        return chosen(data, np.zeros(0, np.int64))
    return jax.tree.map(lambda given, held: np.asarray(given, dtype=np.asarray(held).dtype), records, data)


def chosen(data: Data, places: Rows) -> Data:
    """The records at these places."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], data)


def joined(parts: Sequence[Data]) -> Data:
    """Records of one form, one part after the other."""
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *parts)
