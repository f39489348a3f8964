"""Who gets a shadow: outsiders, members and watched records in one list, and whose cost is whose (SPEC H5, H6).

An outsider's shadow has the record, a member's lacks it. A watched record gets one with a copy more and one without
each row of the data that equals it: the largest cost counts, so it need not be known which of them it is. (Equal rows
differ in their batch coins.) For replace-one, each outsider takes the place of one member.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array, InputError
from bayesdp.learn.probabilistic import Data, records_of
from bayesdp.learn.shadow import Witnesses


class Crowd(NamedTuple):
    """All witnesses and how many of each group, in order; the rows taken away for watched records `twins` come last."""

    witnesses: Witnesses
    sizes: dict[str, int]
    twins: npt.NDArray[np.int64]

    def costs(self, each: Array) -> dict[str, Array]:
        """The rows of `each` by group, empty ones left out: "absent" and "present", or "exchanged"; "watched"."""
        parts = np.split(each, np.cumsum(list(self.sizes.values()))[:-1])
        groups = dict(zip(self.sizes, parts, strict=True))
        watched = groups["watched"].copy()
        np.maximum.at(watched, self.twins, groups.pop("fewer"))
        groups["watched"] = watched
        return {name: rows for name, rows in groups.items() if len(rows)}


def gather(data: Data, audit: Data, members: npt.NDArray[np.int64], watch: Data, *, exchange: bool = False) -> Crowd:
    """The crowd of these outsiders, rows of the data, and watched records; None for none.

    With `exchange` the outsiders take the places of the members, one each. Bad input: records of another form than
    those of `data` get `InputError`.
    """
    twins, rows = _places(data, watch)
    nobody = np.zeros(0, np.int64)
    groups: dict[str, tuple[Data, Any, int]] = {  # records, the rows they take away, whether they are added
        "exchanged" if exchange else "absent": (_like("audit", data, audit), members if exchange else -1, 1),
        "present": (_rows(data, nobody if exchange else members), nobody if exchange else members, 0),
        "watched": (_like("watch", data, watch), -1, 1),
        "fewer": (_rows(data, rows), rows, 0),
    }
    sizes = {name: len(jax.tree.leaves(part[0])[0]) for name, part in groups.items()}
    place = [np.broadcast_to(part[1], sizes[name]) for name, part in groups.items()]
    return Crowd(
        Witnesses(
            jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *(part[0] for part in groups.values())),
            jnp.asarray(np.repeat([float(part[2]) for part in groups.values()], list(sizes.values()))),
            jnp.asarray(np.concatenate(place), jnp.int32),
        ),
        sizes,
        twins,
    )


def _rows(data: Data, places: npt.NDArray[np.int64]) -> Data:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[places], data)


def _like(name: str, data: Data, records: Data) -> Data:
    """`records` in the types of `data`; no rows for None."""
    if records is None:
        return _rows(data, np.zeros(0, np.int64))
    records_of(name, records)
    if str(jax.tree.structure(records)) != str(jax.tree.structure(data)):
        raise InputError(f"Expected {name} to be a tree of the same form as data, got another.")
    for held, given in zip(jax.tree.leaves(data), jax.tree.leaves(records), strict=True):
        if np.shape(held)[1:] != np.shape(given)[1:]:
            raise InputError(
                f"Expected {name} to hold records of shape {np.shape(held)[1:]} like data, got {np.shape(given)[1:]}."
            )
    return jax.tree.map(lambda held, given: jnp.asarray(given, jnp.asarray(held).dtype), data, records)


def _places(data: Data, watch: Data) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(watched record, row of the data that equals it), every such pair."""
    tables = [np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(data)]
    asked: list[Any] = [np.asarray(leaf) for leaf in jax.tree.leaves(_like("watch", data, watch))]
    found: list[Any] = [np.zeros((0, 2), np.int64)]
    for one in range(len(asked[0])):
        same = np.ones(len(tables[0]), bool)
        for table, leaf in zip(tables, asked, strict=True):
            same &= (table == leaf[one].ravel()).all(axis=1)
        rows = np.flatnonzero(same)
        found.append(np.column_stack([np.full(len(rows), one), rows]))
    pairs = np.concatenate(found)
    return pairs[:, 0], pairs[:, 1]
