"""People with several rows each: a record of the loop is then a person, whose rows are clipped together.

    loss(params, person) = Σ_r m_r loss(params, row_r),    g_person = Σ_r m_r ∇ loss(params, row_r), clipped once

Every row of a person moves a step, and all of them together by at most the clip norm: so what is promised to a record
is promised to the person (user-level DP: McMahan et al. 2018, "Learning differentially private recurrent language
models"). A *sum*, not a mean: it is the log-likelihood of the person's rows, without clipping the update is that of the
rows themselves, and people with many rows have not less to say than others. Arrays are padded to one length: what fills
them are copies of the person's first row, which are as finite as that one is, and a mask takes them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.tree_util import register_dataclass

from bayesdp.errors import refuse, whole
from bayesdp.padding import ROWS, layout

Rows = Any
"""A tree of arrays; of people (people, rows, …), of one person (rows, …)."""


@register_dataclass
@dataclass(frozen=True)
class People:
    """Rows of people, a tree of arrays with the people along the first axis: whatever takes records takes people.

    Args:
        rows: a tree of arrays (people, rows, …).
        present: (people, rows): which of these are somebody's rows.

    Examples:
        >>> import numpy as np
        >>> visits = bd.People.of(np.arange(5.0), ["ann", "ben", "ann", "ann", "ben"], most=3)
        >>> visits.present.sum(axis=1).tolist()  # rows of Ann and of Ben
        [3, 2]
    """

    rows: Rows
    present: Any

    @classmethod
    def of(cls, rows: Rows, person: npt.ArrayLike, *, most: int = ROWS, seed: int | None = None) -> People:
        """The rows of a tree of arrays (rows, …), told apart by `person` (rows,): in the order of first appearance.

        Of a person with more than `most` rows, a public number, so many are drawn at random, whoever the others are:
        by the operating system, or by `seed`. Arrays have `most` places for everybody.

        Bad input: another number of persons than rows, no rows, `most` below 1: `InputError`.
        """
        names = np.asarray(person)
        most = whole("most", most, least=1)
        lengths = {np.shape(leaf)[0] if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(rows)}
        if names.ndim != 1 or not names.size or lengths != {len(names)}:
            expected = "to name the person of each row of rows"
            raise refuse("person", names.shape, expected, got=f"{names.shape} for rows of {sorted(lengths)}")
        _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
        owner = np.argsort(np.argsort(first))[inverse]
        coins = np.random.default_rng(seed).random(len(names))
        _, places, present = layout(owner, most, coins)
        return cls.laid_out(rows, places, present)

    @classmethod
    def laid_out(cls, rows: Rows, places: npt.NDArray[np.int64], present: npt.NDArray[np.bool_]) -> People:
        """Rows of a tree (rows, …) by their `places` (people, rows)."""
        return cls(jax.tree.map(lambda leaf: np.asarray(leaf)[places], rows), present)

    def mapped(self, function: Callable[[Rows], Rows]) -> People:
        """The same people with other rows: `function` of all of them one after the other, (all rows, …)."""
        shape = np.shape(self.present)
        made = function(_flat(self.rows, shape))
        return People(jax.tree.map(lambda leaf: np.reshape(leaf, (*shape, *np.shape(leaf)[1:])), made), self.present)

    @property
    def all_rows(self) -> Rows:
        """The rows one after the other, (all rows, …), those that only fill up among them: copies of others."""
        return _flat(self.rows, np.shape(self.present))


@dataclass(frozen=True)
class PeopleLoss:
    """The loss of a person: the sum of `loss(params, row)` over their rows."""

    loss: Callable[[Any, Any], jax.Array]

    def __call__(self, params: Any, person: People) -> jax.Array:
        """The loss of one person."""
        losses = jax.vmap(self.loss, (None, 0))(params, person.rows)
        return jnp.sum(jnp.where(person.present, losses, 0))


def _flat(rows: Rows, shape: tuple[int, ...]) -> Rows:
    count = shape[0] * shape[1]
    return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), rows)
