"""The way to each parameter's clipped sum, and the words for it.

Where a parameter meets a record once, as the matrix of a product with one vector, its gradients are outer products,
which need not be written out (`outer`); a table's are the rows that were looked up; all others are written out for
each record, sites added, and their own length is taken: a Gram sum would save some of that, but cancels (H20).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from bayesdp.mechanism.tapping.fast import Convolution
from bayesdp.mechanism.tapping.local import is_lookup, is_outer, outer_order, places
from bayesdp.mechanism.tapping.program import Slot, Step
from bayesdp.mechanism.tapping.reading import Reading, Site


class Turn(NamedTuple):
    """A reshape, or with `axes` a transpose, from one shape to another."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    axes: tuple[int, ...] | None = None

    def forth(self, x: jax.Array) -> jax.Array:
        """As the program does it."""
        return x.reshape(self.after) if self.axes is None else x.transpose(self.axes)

    def back(self, x: jax.Array) -> jax.Array:
        """Undone."""
        if self.axes is None:
            return x.reshape(self.before)
        return x.transpose([self.axes.index(axis) for axis in range(x.ndim)])


@dataclass(frozen=True)
class Way:
    """How a parameter's gradients are held: "outer" products, "rows" of a table, "whole", or "none" at all."""

    kind: Literal["outer", "rows", "whole", "none"]
    why: str
    sites: tuple[Site, ...] = ()
    turns: tuple[Turn, ...] = ()

    def matrix(self, x: jax.Array) -> jax.Array:
        """A tree leaf as the matrix (inputs, outputs) of an outer product."""
        for turn in self.turns:
            x = turn.forth(x)
        site = self.sites[0]
        x = x.transpose(outer_order(site))
        return x.reshape(-1, math.prod(site.step.outputs[0].shape))

    def leaf(self, matrix: jax.Array) -> jax.Array:
        """The matrix as a leaf."""
        site = self.sites[0]
        order, shape = outer_order(site), site.weights[0].shape
        x = matrix.reshape([shape[axis] for axis in order])
        x = x.transpose([order.index(axis) for axis in range(len(order))])
        for turn in reversed(self.turns):
            x = turn.back(x)
        return x


def ways_of(reading: Reading, parameters: int) -> list[Way]:
    """The way of each parameter."""
    makers = {slot: step for step in reading.program.steps for slot in step.outputs}
    return [_way(reading, number, makers) for number in range(parameters)]


def _way(reading: Reading, number: int, makers: dict[Slot, Step]) -> Way:
    leaf = reading.program.inputs[number]
    met = [slot for slot in reading.boundary if number in reading.sources[slot]]
    sites = tuple(site for site in reading.sites if any(slot in met for slot in site.weights))
    if not met:
        return Way("none", "no gradient: no record meets it")
    alone = len(met) == 1 and reading.sources[met[0]] == {number}
    if alone and len(sites) == 1 and is_outer(sites[0]):
        turns = _turns(leaf, met[0], makers)
        if turns is not None:
            return Way("outer", "outer products: the matrix of one product", sites, turns)
    looked_up = alone and met[0] is leaf and all(is_lookup(site) for site in sites)
    if looked_up and sum(places(site.step) for site in sites) < leaf.shape[0]:
        return Way("rows", "only the rows that a record looks up", sites)
    return Way("whole", "written out for each record: " + "; ".join(dict.fromkeys(_words(reading, s) for s in sites)))


def _turns(leaf: Slot, end: Slot, makers: dict[Slot, Step]) -> tuple[Turn, ...] | None:
    """The steps from a parameter to the value that meets a record, if they only move entries."""
    found: list[Turn] = []
    while end is not leaf:
        step = makers[end]
        before = step.inputs[0]
        same = before.aval.dtype == end.aval.dtype and math.prod(before.shape) == math.prod(end.shape)
        if step.name == "transpose":
            found.append(Turn(before.shape, end.shape, tuple(step.settings["permutation"])))
        elif same and step.name in _MOVING and _in_order(step):
            found.append(Turn(before.shape, end.shape))
        else:
            return None
        end = before
    return tuple(found[::-1]) if leaf.aval.dtype == jnp.float32 else None


_MOVING = {"reshape", "squeeze", "expand_dims", "broadcast_in_dim", "convert_element_type", "copy", "copy_p"}


def _in_order(step: Step) -> bool:
    dimensions = step.settings.get("dimensions")
    return not (step.name == "reshape" and dimensions is not None)


def _words(reading: Reading, site: Site) -> str:
    step = site.step
    if step in reading.closed:
        return f"its loop stays shut, as {reading.closed[step]}"
    if step in reading.loops:
        return "a loop begins with it"
    inside = "" if site.loop is None else f" in each of {site.loop.rounds} rounds of a loop"
    if step.name == "conv_general_dilated":
        known = site.loop is None and Convolution.of(step) is not None
        return f"the kernel of a convolution{inside}" + (
            "" if known else ", of a form that is taken by JAX's derivative"
        )
    if step.name == "dot_general":
        return f"the matrix of a product with several vectors, or met more than once{inside}"
    words: dict[str, str] = {"gather": "rows are looked up", "mul": "it multiplies", "add": "it is added"}
    return words.get(step.name, f"by the derivative of `{step.name}`") + inside


class Explained(NamedTuple):
    """Of one parameter: its name in the tree, its shape, and the way to its clipped sum."""

    parameter: str
    shape: tuple[int, ...]
    way: str

    def __str__(self) -> str:
        return f"{self.parameter or 'params'} {self.shape}: {self.way}"


def explained(params: Any, ways: list[str]) -> tuple[Explained, ...]:
    """The way to each leaf by the name that it has in the tree."""
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    named = zip(leaves, ways, strict=True)
    return tuple(Explained(jax.tree_util.keystr(path), tuple(jnp.shape(leaf)), way) for (path, leaf), way in named)
