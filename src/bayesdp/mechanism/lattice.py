"""Sums on a lattice g ℤ^d: contributions cut off towards 0 to whole numbers, added up exactly, then noise, then floats.

    S = Σ_x trunc(clip(g_x) / g),    released = g (S + Z) / L,    Z = round(s N),  g = σ/s        (H26)

Cutting off lengthens no coordinate, hence no norm: one record moves S by at most C/g. Whole numbers have the same sum
in any order, so that S says nothing of how it was added up. And Z is on the same lattice: S + round(sN) = round(S + sN)
is the Gaussian mechanism, rounded afterwards. What is then made of the whole number S + Z may be a float.

A microbatch is added up in 32 bits, each record held to its share of them; microbatches in two words, 2^15 `high` +
`low`. A dense layer's outer products a gᵀ are cut off in their factors, which takes four matrix products of whole
numbers below 2^8: float32 adds up 256 of those exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import refuse
from bayesdp.mechanism.lengths import two_to_the
from bayesdp.mechanism.rounded_gaussian import SCALE

Params = Any
Tree = Any

SLACK = 1 - 2.0**-20
"""Contributions are shortened by this: what the roundings of their scale may add."""

_LOW = 15
_LIMB = 256
"""A factor is below `_LIMB`²; the digits of so many records times 255² add up to less than 2^24."""


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
    the lattice out so that entries of both have about as many digits.
    """
    a, g = norms
    safe_a, safe_g = jnp.maximum(a, 1e-30), jnp.maximum(g, 1e-30)
    length = safe_a * scale * safe_g
    scale = scale * jnp.minimum(1, np.float32(_share(records)) / jnp.maximum(length, 1))
    wanted = jnp.sqrt(jnp.maximum(length, 1) * np.float32(math.sqrt(inputs.shape[1] / outputs.shape[1])))
    power = jnp.floor(jnp.log2(jnp.clip(wanted, 1, _LIMB**2 / 2))) - jnp.ceil(jnp.log2(safe_a))
    power = two_to_the(jnp.clip(power, -60, 60).astype(jnp.int32))
    return Factors(_cut(inputs * power[:, None]), _cut(outputs * (scale / power)[:, None]))


def _cut(values: jax.Array) -> jax.Array:
    most = _LIMB**2 - 1
    return jnp.trunc(jnp.clip(values, -most, most))


def products(factors: Factors) -> jax.Array:
    """Σ_x A_x B_xᵀ exactly, int32: products of digits to the base 256, some records at a time."""
    done = jnp.zeros((factors.inputs.shape[1], factors.outputs.shape[1]), jnp.int32)
    for start in range(0, factors.inputs.shape[0], _LIMB):
        a_high, a_low = _digits(factors.inputs[start : start + _LIMB])
        b_high, b_low = _digits(factors.outputs[start : start + _LIMB])
        parts = ((a_high.T @ b_high, 16), (a_high.T @ b_low, 8), (a_low.T @ b_high, 8), (a_low.T @ b_low, 0))
        for part, shift in parts:
            done = done + (part.astype(jnp.int32) << shift)
    return done


def _digits(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    high = jnp.trunc(values * (1 / _LIMB))
    return high, values - _LIMB * high
