"""Who gets a shadow: outsiders, members and watched records in one list, and whose cost is whose (SPEC H5, H6).

An outsider's shadow has the record, a member's lacks it. A watched record gets one with a copy more and, where the
data hold it, one with a copy fewer: the larger cost counts, so it need not be known which of the two it is.
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
    """All witnesses: outsiders, members, watched records added, watched records taken away: those numbered `twins`."""

    witnesses: Witnesses
    sizes: tuple[int, int, int, int]
    twins: npt.NDArray[np.int64]

    def costs(self, each: Array) -> dict[str, Array]:
        """The rows of `each` by group, empty ones left out: "absent", "present", "watched"."""
        absent, present, watched, fewer = np.split(each, np.cumsum(self.sizes)[:-1])
        watched = watched.copy()
        watched[self.twins] = np.maximum(watched[self.twins], fewer)
        groups = {"absent": absent, "present": present, "watched": watched}
        return {name: rows for name, rows in groups.items() if len(rows)}


def gather(data: Data, audit: Data, members: npt.NDArray[np.int64], watch: Data) -> Crowd:
    """The crowd of these outsiders, rows of the data, and watched records; None for none.

    Bad input: records of another form than those of `data` get `InputError`.
    """
    places = _places(data, watch)
    twins = np.flatnonzero(places >= 0)
    parts = [
        _like("audit", data, audit),
        _rows(data, members),
        _like("watch", data, watch),
        _rows(data, places[twins]),
    ]
    sizes = tuple(len(jax.tree.leaves(part)[0]) for part in parts)
    place = [np.full(sizes[0], -1), members, np.full(sizes[2], -1), places[twins]]
    return Crowd(
        Witnesses(
            jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts),
            jnp.asarray(np.repeat([1.0, -1.0, 1.0, -1.0], sizes)),
            jnp.asarray(np.concatenate(place), jnp.int32),
        ),
        sizes,  # type: ignore[arg-type]  # one for each of the four parts
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


def _places(data: Data, watch: Data) -> npt.NDArray[np.int64]:
    """The row of each watched record in the data, −1 where it is not one of them."""
    tables = [np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(data)]
    asked: list[Any] = [np.asarray(leaf) for leaf in jax.tree.leaves(_like("watch", data, watch))]
    result = np.full(len(asked[0]), -1, np.int64)
    for row in range(len(result)):
        same = np.ones(len(tables[0]), bool)
        for table, leaf in zip(tables, asked, strict=True):
            same &= (table == leaf[row].ravel()).all(axis=1)
        if same.any():
            result[row] = int(np.argmax(same))
    return result
