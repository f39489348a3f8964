"""What a learner asks of the loop: its plan, its objective, where it starts, and what only some learners have."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.errors import refuse
from bayesdp.learn.loop.filter import Filter
from bayesdp.learn.loop.objective import Objective, Pace, Params
from bayesdp.learn.loop.plan import Plan
from bayesdp.mechanism.blocks import not_half


@dataclass(frozen=True, eq=False)
class Course:
    """The course of a run, all of it public.

    Args:
        plan: steps, clipping, noise, and how they are accounted for.
        objective: what is learnt.
        params: where it starts; (chains, …) with chains.
        chains: how many trajectories make up the run, each of them charged; None for one without an axis of its own.
        pace: numbers (steps, …) that the objective is told at every step.
        subset_fraction, measure_every, filter: see `SGD`.

    Bad input: parameters that are no tree of float arrays, or in half precision, get `InputError`.
    """

    plan: Plan
    objective: Objective
    params: Params
    chains: int | None = None
    pace: Pace = None
    subset_fraction: float | None = None
    measure_every: int | None = None
    filter: Filter | None = None

    def __post_init__(self) -> None:
        if isinstance(self.params, dict) and "batch_stats" in self.params:
            raise refuse(
                "params",
                None,
                "without batch statistics",
                "Use group or layer normalisation.",
                got="a batch_stats collection: batch normalisation lets records see each other, so no clip norm bounds "
                "a record's effect",
            )
        leaves = jax.tree.leaves(self.params)
        if not leaves:
            raise refuse("params", None, "to hold at least one array", got="none")
        for leaf in leaves:
            if not isinstance(leaf, jax.Array | np.ndarray | np.generic) or not jnp.issubdtype(
                leaf.dtype, jnp.floating
            ):
                raise errors.refuse(
                    "params",
                    leaf,
                    "to be a tree of float arrays",
                    "For Equinox use eqx.partition(model, eqx.is_inexact_array), for Flax nnx.split(model, nnx.Param, "
                    "…).",
                )
        not_half("params", self.params)
