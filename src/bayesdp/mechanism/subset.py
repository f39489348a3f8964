"""A random subset of the weights per step (paper S1: 10 % of them): public, the same for every record.

    released = M ∘ (Σ clip(M ∘ g_x) + noise),   M_i ~ Bernoulli(fraction), drawn anew at every step.

M is drawn before the records are looked at and may be known to everybody; clipping and witnesses see M ∘ g, so that
accounting and training use the same mask, which the paper's code does not (K1j).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from bayesdp.errors import number

Params = Any


def random_subset(key: jax.Array, params: Params, fraction: float) -> Params:
    """M: a tree like `params` of float32 zeros and ones, each 1 with probability `fraction`.

    Bad input: a fraction outside (0, 1] gets `InputError`.
    """
    fraction = number("fraction", fraction, above=0, most=1)
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(key, max(len(leaves), 1))
    masks = [jax.random.bernoulli(keys[i], fraction, leaf.shape).astype(jnp.float32) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, masks)


def restrict(tree: Params, subset: Params | None) -> Params:
    """M ∘ tree, or the tree itself when there is no subset."""
    return tree if subset is None else jax.tree.map(lambda leaf, own: leaf * own.astype(leaf.dtype), tree, subset)
