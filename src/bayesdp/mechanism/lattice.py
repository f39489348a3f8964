"""Sums on a lattice g ℤ^d: contributions cut off towards 0 to whole numbers, added up exactly, then noise, then floats.

    S = Σ_x trunc(clip(g_x) / g),    released = g (S + Z) / L,    Z = round(s N),  g = σ/s        (H26)

Cutting off lengthens no coordinate, hence no norm: one record moves S by at most C/g. Whole numbers have the same sum
in any order, so that S says nothing of how it was added up. And Z is on the same lattice: S + round(sN) = round(S + sN)
is the Gaussian mechanism, rounded afterwards. What is then made of the whole number S + Z may be a float.

A microbatch is added up in 32 bits, each record held to its share of them; microbatches in two words, 2^15 `high` +
`low`. A dense layer's outer products a gᵀ are cut off in their factors. One has two digits to the base 64, from −32 to
32, the other is so small that float32 adds up the products of all records with a digit exactly: two matrix products.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import refuse
from bayesdp.mechanism.rounded_gaussian import SCALE

Params = Any
Tree = Any

SLACK = 1 - 2.0**-20
"""Contributions are shortened by this: what the roundings of their scale may add."""

_LOW = 15
_DIGIT, _AT_ONCE = 32, 256
"""The largest digit of a factor to the base 64, in size; and how many records are added up at a time."""

_MOST_OUTPUTS = 2 * _DIGIT**2
"""The largest number with two digits. With `_most_inputs` it is the largest product that 32 bits can add up."""


class Whole(NamedTuple):
    """2^15 `high` + `low`, int32 arrays; 0 <= low < 2^15 once `carried`."""

    high: jax.Array
    low: jax.Array


def per_length(noise_std: jax.Array | float) -> jax.Array:
    """1/g, how many steps of the lattice make up a length of 1, for noise of this standard deviation."""
    found: jax.Array = jnp.float32(SCALE * SLACK) / jnp.asarray(noise_std, jnp.float32)
    return found


def microbatch_for(noise_multiplier: float) -> int:
    """The most records that 32 bits can add up when each may be as long as the clip norm.

    Bad input: a noise multiplier so small that this is none.
    """
    most = math.floor(_share(1) * noise_multiplier / SCALE)
    if most < 1:
        raise refuse(
            "noise_multiplier",
            noise_multiplier,
            f"to be at least {SCALE / _share(1):.1g} on a lattice",
            'So little noise hides nobody. Use noise_kind="float".',
        )
    return most


def _share(records: int) -> float:
    """How far each of so many may move a sum of 32 bits."""
    return 2.0**30 / records


def zero(tree: Params) -> Tree:
    """An empty sum of microbatches, like `tree`."""
    return jax.tree.map(lambda leaf: Whole(jnp.zeros(leaf.shape, jnp.int32), jnp.zeros(leaf.shape, jnp.int32)), tree)


def plus(sums: Tree, more: Params) -> Tree:
    """`sums` and whole numbers of 32 bits."""
    return _map(lambda one, new: carried(Whole(one.high + (new >> _LOW), one.low + (new & 0x7FFF))), sums, more)


def carried(sums: Whole) -> Whole:
    """The same number with `low` below 2^15: of several sums of it one and the same."""
    return Whole(sums.high + (sums.low >> _LOW), sums.low & 0x7FFF)


def lengths(sums: Tree, unit: jax.Array) -> Params:
    """Whole numbers times `unit`, as floats: a function of the numbers alone, so that nothing else can show."""

    def one(number: Whole) -> jax.Array:
        high, low = carried(number)
        return (high.astype(jnp.float32) * 2.0**_LOW + low.astype(jnp.float32)) * unit

    return _map(one, sums)


def _map(function: Any, sums: Tree, *others: Tree) -> Tree:
    return jax.tree.map(function, sums, *others, is_leaf=lambda node: isinstance(node, Whole))


def add_up(gradients: jax.Array, factors: jax.Array, per_unit: jax.Array, records: int) -> jax.Array:
    """Σ_x trunc(f_x g_x / g) of gradients (n, …), int32; `records` is how many share the 32 bits."""
    # A factor of 0 does not remove an infinite gradient: 0 · inf is not a number.
    kept = jnp.where(jnp.expand_dims(factors, range(1, gradients.ndim)) > 0, gradients, 0)
    return total(steps(kept, factors, per_unit, records))


def steps(gradients: jax.Array, factors: jax.Array, per_unit: jax.Array, records: int) -> jax.Array:
    """trunc(f_x g_x / g), int32."""
    most = np.float32(_share(records))
    scaled = gradients * jnp.expand_dims(factors * per_unit, range(1, gradients.ndim))
    return jnp.clip(scaled, -most, most).astype(jnp.int32)


def total(rows: jax.Array) -> jax.Array:
    """The sum along the first axis by halves: XLA's own, of whole numbers, is many times slower on a CPU."""
    while rows.shape[0] > 1:
        half = rows.shape[0] // 2
        rest = rows[2 * half :]
        rows = rows[:half] + rows[half : 2 * half]
        rows = jnp.concatenate([rows, rest]) if rest.shape[0] else rows
    return rows[0]


class Factors(NamedTuple):
    """Whole numbers as floats, (records, inputs) and (records, outputs): their lattices' product is ours."""

    inputs: jax.Array
    outputs: jax.Array


def factors_of(
    inputs: jax.Array, outputs: jax.Array, norms: tuple[jax.Array, jax.Array], scale: jax.Array, records: int
) -> Factors:
    """a_x and g_x of a dense layer cut off so that A_x B_xᵀ is at most scale_x a_x g_xᵀ in every entry.

    `norms` are upper bounds of |a_x| and |g_x|, `scale` the factor of each record over g. The steps of the two share
    the lattice out so that entries of both have about as many digits; the roundings of their scales, 3 u, are within
    `SLACK`.
    """
    a, g = norms
    safe_a, safe_g = jnp.maximum(a, 1e-30), jnp.maximum(g, 1e-30)
    length = safe_a * scale * safe_g
    scale = scale * jnp.minimum(1, np.float32(_share(records)) / jnp.maximum(length, 1))
    length = jnp.clip(length, 1, np.float32(_share(records)))
    most = _most_inputs(records)
    wanted = jnp.sqrt(length * np.float32(math.sqrt(inputs.shape[1] / outputs.shape[1])))
    stretch = jnp.clip(wanted, length / _MOST_OUTPUTS, most) / safe_a
    return Factors(_cut(inputs * stretch[:, None], most), _cut(outputs * (scale / stretch)[:, None], _MOST_OUTPUTS))


def _most_inputs(records: int) -> int:
    """The largest A with which so many records' products with a digit add up to at most 2^24."""
    return int(2**24 // (_DIGIT * min(records, _AT_ONCE)))


def _cut(values: jax.Array, most: int) -> jax.Array:
    return jnp.trunc(jnp.clip(values, -most, most))


def products(factors: Factors) -> jax.Array:
    """Σ_x A_x B_xᵀ exactly, int32: products with the two digits of B to the base 64, some records at a time."""
    done = jnp.zeros((factors.inputs.shape[1], factors.outputs.shape[1]), jnp.int32)
    for start in range(0, factors.inputs.shape[0], _AT_ONCE):
        inputs, outputs = factors.inputs[start : start + _AT_ONCE], factors.outputs[start : start + _AT_ONCE]
        high = jnp.round(outputs * (0.5 / _DIGIT))
        parts = inputs.T @ high, inputs.T @ (outputs - 2 * _DIGIT * high)
        done = done + 2 * _DIGIT * parts[0].astype(jnp.int32) + parts[1].astype(jnp.int32)
    return done
