"""Gaussian noise for a pytree, and the one place that turns a run's key into the keys of a step."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism import lattice
from bayesdp.mechanism.key import keys_of_number, random_words
from bayesdp.mechanism.rounded_gaussian import rounded_gaussians

Params = Any


class StepKeys(NamedTuple):
    """Independent keys of one step: which records, which weights (public), which noise, other public draws."""

    sampling: jax.Array
    subset: jax.Array
    noise: jax.Array
    public: jax.Array


def step_keys(key: jax.Array, step: jax.Array | int) -> StepKeys:
    """The keys of step number `step`, by folding the number into the run's key: resuming needs no other state."""
    return StepKeys(*keys_of_number(key, step, 4))


def add_noise(
    key: jax.Array,
    tree: Params,
    std: jax.Array | float,
    *,
    part: jax.Array | int = 0,
    parts: int = 1,
    drawn: jax.Array | None = None,
) -> Params:
    """`tree` + N(0, std² I), an independent draw for every entry of every leaf.

    Each of `parts` devices, which are going to add up their trees, calls with its own `part` and adds the noise of its
    own slice of the entries: together each entry gets noise once, and the work is shared. `drawn` are its normals where
    they are there already (`normals`). `std` may be traced (a schedule); 0 leaves the tree unchanged. The normals are
    float32: they reach 6.7 standard deviations and their last bits depend on their size, so the proofs, which are about
    real numbers, hold up to rounding.
    """
    leaves, structure = jax.tree.flatten(tree)
    ends = list(accumulate(leaf.size for leaf in leaves))
    width = -(-ends[-1] // parts) if ends else 0
    # The noise is cut to the leaves, not the leaves joined to a vector: on a CPU joining them takes ten times longer.
    own = normals(key, width, part) if drawn is None else drawn
    start = jnp.asarray(part, jnp.int32) * width
    noise = lax.dynamic_update_slice_in_dim(jnp.zeros(parts * width), own, start, 0)
    noisy = [
        leaf + std * noise[end - leaf.size : end].reshape(leaf.shape) for leaf, end in zip(leaves, ends, strict=True)
    ]
    return jax.tree.unflatten(structure, noisy)


def add_whole_noise(
    key: jax.Array, total: Params, *, part: jax.Array | int = 0, parts: int = 1, drawn: jax.Array | None = None
) -> Params:
    """`total`, a tree of `lattice.Whole`, + round(s N), an independent draw for every entry (H26); see `add_noise`."""
    leaves, structure = jax.tree.flatten(total, is_leaf=_whole)
    ends = list(accumulate(leaf.low.size for leaf in leaves))
    width = -(-ends[-1] // parts) if ends else 0
    noise = rounded_gaussians(key, width, part) if drawn is None else drawn
    if parts > 1:
        start = jnp.asarray(part, jnp.int32) * width
        noise = lax.dynamic_update_slice_in_dim(jnp.zeros(parts * width, jnp.int32), noise, start, 0)
    noisy = [
        lattice.plus(leaf, noise[end - leaf.low.size : end].reshape(leaf.low.shape))
        for leaf, end in zip(leaves, ends, strict=True)
    ]
    return jax.tree.unflatten(structure, noisy)


def _whole(node: Any) -> bool:
    return isinstance(node, lattice.Whole)


def normals(key: jax.Array, width: int, part: jax.Array | int = 0) -> jax.Array:
    """The normals of one device for `width` entries."""
    return normal(jax.random.fold_in(key, part), (width,))


def normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Standard normals by Box and Muller: sqrt(2E) (cos θ, sin θ), E exponential and θ uniform on the circle.

    `jax.random.normal` inverts a 23-bit uniform and stops at 5.4 standard deviations, which the noise of a long run
    would reach; here E has 32 bits on both sides of its median and the tail reaches 6.7. One Threefry block per two
    words in place of one per word, and no range reduction for sine and cosine, make it several times faster too: for
    wide models the noise would otherwise take as long as the gradient.
    """
    size = math.prod(shape)
    half = (size + 1) // 2
    first, second = random_words(key, 2 * half).reshape(2, half)
    radius = jnp.sqrt(2 * exponential(first))
    cosine, sine = circle(second)
    return jnp.concatenate([radius * cosine, radius * sine])[:size].reshape(shape)


def exponential(bits: jax.Array) -> jax.Array:
    """-log U for U = (bits + 1/2) / 2^32, to float32 accuracy on both sides: near 0 and near 1."""
    near_zero = bits < jnp.uint32(2**31)
    small = (jnp.where(near_zero, bits, ~bits).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-32)
    return jnp.where(near_zero, -jnp.log(small), -jnp.log1p(-small))


def circle(bits: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(cos θ, sin θ) of a uniform angle: 30 bits place it within ±π/4 of an axis, two bits turn it by right angles.

    Taylor's polynomials are within 3e-8 there.
    """
    within = ((bits << 2).astype(jnp.int32).astype(jnp.float32) + 2) * jnp.float32(math.pi / 2**33)
    square = within * within
    sine = within * (1 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square / 362880))))
    cosine = 1 + square * (-1 / 2 + square * (1 / 24 + square * (-1 / 720 + square / 40320)))
    swapped, turned = (bits & jnp.uint32(1 << 30)) != 0, (bits & jnp.uint32(1 << 31)) != 0
    x, y = jnp.where(swapped, -sine, cosine), jnp.where(swapped, cosine, sine)
    return jnp.where(turned, -x, x), jnp.where(turned, -y, y)
