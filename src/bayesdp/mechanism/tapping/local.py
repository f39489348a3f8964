"""The part that one site has in a record's gradient: (∂y/∂w)ᵀ g, from what the record brought and from g alone.

By the step's own derivative, whatever the step is: of y = x W it is the product xᵀ g, of a sum g itself. The rows of a
table that a record looks up stay rows: Σ of the g of all places that read the same one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.tapping.fast import Convolution
from bayesdp.mechanism.tapping.forward import Values
from bayesdp.mechanism.tapping.program import Step
from bayesdp.mechanism.tapping.reading import Kind, Reading, Site


def weight_gradients(
    reading: Reading, site: Site, public: Values, saved: Sequence[jax.Array], g: Sequence[jax.Array]
) -> list[jax.Array]:
    """Of each of the site's weights: its gradient at this site for every record, (records, …)."""
    if site.step in reading.loops:  # where a parameter is carried into a loop
        return list(g)
    step, loop = site.step, site.loop
    kinds = reading.kinds if loop is None else loop.kinds
    if step.name == "conv_general_dilated" and loop is None and site.weights == step.inputs[1:]:
        convolution = Convolution.of(step)
        if convolution is not None:
            return [convolution.gradients(saved[0], g[0], step.inputs[1].shape)]
    others = [slot for slot in step.inputs if kinds[slot] <= Kind.PARAMETER and slot not in site.weights]
    constants = [public[slot] for slot in others]

    def once(weights: list[Any], constants: list[Any], records: Sequence[Any]) -> list[Any]:
        known = dict(zip([*site.weights, *others], [*weights, *constants], strict=True))
        own = iter(records)
        outputs = step(*(known[slot] if slot in known else next(own) for slot in step.inputs))
        return [out for slot, out in zip(step.outputs, outputs, strict=True) if slot.is_float]

    every = once
    if loop is not None:
        axes = [[0 if slot in loop.stacked else None for slot in slots] for slots in (site.weights, others)]
        every = jax.vmap(once, in_axes=(axes[0], axes[1], 0))
    weights = [public[slot] for slot in site.weights]

    def one(records: Sequence[Any], g: list[Any]) -> list[jax.Array]:
        found: list[jax.Array] = jax.vjp(lambda weights: every(weights, constants, records), weights)[1](g)[0]
        return found

    return list(jax.vmap(one)(list(saved), list(g)))


def outer_factors(site: Site, saved: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a product with a vector a and g, (records, inputs) and (records, outputs): the gradient is a gᵀ."""
    right = site.step.inputs[1] in site.weights
    contracted = site.step.settings["dimension_numbers"][0][0 if right else 1]
    a = saved.transpose(0, *(axis + 1 for axis in contracted), *_others(saved.ndim - 1, contracted, 1))
    return a.reshape(a.shape[0], -1), g.reshape(g.shape[0], -1)


def outer_order(site: Site) -> tuple[int, ...]:
    """The axes of the weights of a product with a vector: those that are summed over, then the others."""
    right = site.step.inputs[1] in site.weights
    contracted = tuple(site.step.settings["dimension_numbers"][0][1 if right else 0])
    return (*contracted, *_others(len(site.weights[0].shape), contracted, 0))


def _others(axes: int, without: Sequence[int], plus: int) -> tuple[int, ...]:
    return tuple(axis + plus for axis in range(axes) if axis not in without)


def is_outer(site: Site) -> bool:
    """Whether a site is the product of a matrix with one vector of a record."""
    step = site.step
    if step.name != "dot_general" or site.loop is not None or len(site.weights) != 1:
        return False
    if step.inputs[0] is step.inputs[1]:
        return False
    (contracted, batch), right = step.settings["dimension_numbers"], step.inputs[1] in site.weights
    x, axes = step.inputs[0 if right else 1], contracted[0 if right else 1]
    return not batch[0] and math.prod(x.shape) == math.prod(x.shape[axis] for axis in axes)


def is_lookup(site: Site) -> bool:
    """Whether a site reads rows of a table, at places that are a record's."""
    step, table = site.step, site.step.inputs[0]
    if step.name != "gather" or site.loop is not None or site.weights != (table,) or len(table.shape) < 2:
        return False
    numbers, clipped = step.settings["dimension_numbers"], step.settings["mode"] == lax.GatherScatterMode.CLIP
    # A whole row begins at 0 whatever is asked for, where what is outside is brought inside.
    first = numbers.start_index_map == (0,) or (clipped and 0 in numbers.start_index_map)
    rows = first and numbers.collapsed_slice_dims in ((), (0,)) and not numbers.operand_batching_dims
    return bool(rows and tuple(step.settings["slice_sizes"]) == (1, *table.shape[1:]))


def places(step: Step) -> int:
    """How many rows a lookup reads."""
    return math.prod(step.inputs[1].shape[:-1])


def looked_up(site: Site, indices: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows (records, places) and what each place adds to them (records, places, entries)."""
    table = site.step.inputs[0].shape
    numbers, mode = site.step.settings["dimension_numbers"], site.step.settings["mode"]
    row = indices[..., numbers.start_index_map.index(0)].reshape(indices.shape[0], -1)
    offset = [axis + 1 for axis in numbers.offset_dims]
    g = g.transpose(0, *(axis for axis in range(1, g.ndim) if axis not in offset), *offset)
    g = g.reshape(*row.shape, math.prod(table[1:]))
    inside = (row >= 0) & (row < table[0])
    if mode == lax.GatherScatterMode.FILL_OR_DROP:
        g = jnp.where(inside[..., None], g, 0)
    return jnp.clip(row, 0, table[0] - 1), g


def merged(row: jax.Array, g: jax.Array) -> jax.Array:
    """The gradients of rows, each in the first place that reads its row, and 0 where the row came before.

    Of all places at once: two look-ups of one row add up, and their length is that of the sum (H20).
    """
    same = row[:, :, None] == row[:, None, :]
    first = jnp.argmax(same, axis=2) == jnp.arange(row.shape[1])
    weights = jnp.where(same & first[:, :, None], 1.0, 0.0)
    return lax.dot_general(weights, g, (((2,), (1,)), ((0,), (0,))))
