"""Who gets a neighbouring run: outsiders, members and watched records in one list, and whose cost is whose (H5, H6).

An outsider's neighbouring run has the record, a member's lacks it. A watched record gets one with a copy more and one
without each row of the data that equals it: the largest cost counts, so it need not be known which of them it is.
(Equal rows differ in their batch coins.) For replace-one, each outsider takes the place of one member.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.divergence.gaussian_loss import GaussianPairs
from bayesdp.errors import Array
from bayesdp.learn.posterior_sampling.neighbour_runs import Witnesses
from bayesdp.learn.records import Data, Rows, chosen, like


class Group(NamedTuple):
    """Records of one kind, the rows of the data that they take away (−1: none), and whether they are added (1 or 0)."""

    records: Data
    places: Rows | int
    adds: int


class Twins(NamedTuple):
    """Watched records, by their place among these, and the rows of the data that equal them: every such pair."""

    watched: Rows
    rows: Rows


class WitnessGroups(NamedTuple):
    """All witnesses and how many of each group, in order; the rows taken away for watched records `twins` come last."""

    witnesses: Witnesses
    sizes: dict[str, int]
    twins: Rows

    def costs(self, each: Array) -> dict[str, Array]:
        """The rows of `each` by group, empty ones left out: "absent" and "present", or "exchanged"; "watched"."""
        parts = np.split(each, np.cumsum(list(self.sizes.values()))[:-1])
        groups = dict(zip(self.sizes, parts, strict=True))
        watched = groups["watched"].copy()
        np.maximum.at(watched, self.twins, groups.pop("fewer"))
        groups["watched"] = watched
        return {name: rows for name, rows in groups.items() if len(rows)}

    def pairs(self, each: GaussianPairs) -> dict[str, GaussianPairs]:
        """The pairs of witnesses, `each` having them by their place in the list, by group as in `costs`."""
        starts = np.cumsum([0, *self.sizes.values()])
        rows = {name: start + np.arange(size) for start, (name, size) in zip(starts, self.sizes.items(), strict=False)}
        owners = {name: np.arange(size) for name, size in self.sizes.items()}
        for places, more in ((rows, rows["fewer"]), (owners, self.twins)):
            places["watched"] = np.concatenate([places["watched"], more])
            del places["fewer"]
        return {name: each.chosen(rows[name], owners[name]) for name in rows if len(rows[name])}

    @classmethod
    def of(cls, data: Data, holdout: Data, members: Rows, watch: Data, *, exchange: bool = False) -> WitnessGroups:
        """These outsiders, rows of the data, and watched records; None for none.

        With `exchange` the outsiders take the places of the members, one each. Bad input: records of another form than
        those of `data` get `InputError`.
        """
        twins, nobody = _twins(data, watch), np.zeros(0, np.int64)
        inside = nobody if exchange else members
        groups = {
            "exchanged" if exchange else "absent": Group(
                like("holdout", holdout, data), members if exchange else -1, adds=1
            ),
            "present": Group(chosen(data, inside), inside, adds=0),
            "watched": Group(like("watch", watch, data), -1, adds=1),
            "fewer": Group(chosen(data, twins.rows), twins.rows, adds=0),
        }
        sizes = {name: len(jax.tree.leaves(group.records)[0]) for name, group in groups.items()}
        places = [np.broadcast_to(group.places, sizes[name]) for name, group in groups.items()]
        return cls(
            Witnesses(
                jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *(group.records for group in groups.values())),
                jnp.asarray(np.repeat([float(group.adds) for group in groups.values()], list(sizes.values()))),
                jnp.asarray(np.concatenate(places), jnp.int32),
            ),
            sizes,
            twins.watched,
        )


def _twins(data: Data, watch: Data) -> Twins:
    tables = [np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves(data)]
    asked = [np.asarray(leaf) for leaf in jax.tree.leaves(like("watch", watch, data))]
    found = [np.zeros((0, 2), np.int64)]
    for one in range(len(asked[0])):
        same = np.ones(len(tables[0]), bool)
        for table, leaf in zip(tables, asked, strict=True):
            same &= (table == leaf[one].ravel()).all(axis=1)
        rows = np.flatnonzero(same)
        found.append(np.column_stack([np.full(len(rows), one), rows]))
    pairs = np.concatenate(found)
    return Twins(pairs[:, 0], pairs[:, 1])
