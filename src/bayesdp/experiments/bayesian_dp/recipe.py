"""S1's private training (J5, J6) as its public code has it: the gradient of the *batch* is clipped, then gets noise.

    ḡ = M ∘ Σ_{x in B} ∇loss(w, x) / L,      w ← optimiser(w, clip(ḡ; C) + N(0, σ²C² I) on M),      L = q N

M is a random tenth of the weights, drawn anew at each step, or all of them; C = ∞ for CIFAR-10. Clipping projects on
a ball and brings no two points further apart, so a record moves the result by at most |M ∘ ∇loss(w, x)| / L: this
is what the sound accounting takes. It bounds nothing for a record whose gradient nobody bounds: then only 2C is
left, from one side of the ball to the other, which is 20 times the noise at σ = 0.1 (C19).

Batches are Poisson here, networks have no batch normalisation, and L is public: where the paper has shuffled batches
of fixed size with batch normalisation, its own formula does not hold (ERR 12c).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh

from bayesdp.errors import Array
from bayesdp.mechanism import BookKeeping, ModelLoss, PrivateStep, add_noise, random_subset, record_mesh, spread
from bayesdp.mechanism.key import seeded_key
from bayesdp.mechanism.noise import step_keys
from bayesdp.mechanism.subset import restrict

Params = Any
Data = tuple[Any, Any]

LEFT_OUT = 8
"""Leave-one-out gradients of a step in the public code, hence 28 pairs."""

PAIRS = np.triu_indices(LEFT_OUT, 1)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What the paper fixes: σ, C (None: no clipping), q, T, the optimiser, the share of weights that a step moves."""

    sigma: float
    clip_norm: float | None
    sampling_rate: float
    steps: int
    optimizer: optax.GradientTransformation
    subset_fraction: float | None = None

    @property
    def noise_std(self) -> float:
        """σC, the noise on the mean gradient; σ without clipping."""
        return self.sigma * (1.0 if self.clip_norm is None else self.clip_norm)


class Seen(NamedTuple):
    """An interval of training: parameters at its end, and of every step in it what the two accountings look at.

    `distances` (steps, witnesses): how far each witness moves the result at most. `pairs` (steps, 28): distances of
    the paper's leave-one-out gradients to each other. `lengths` (steps,): |ḡ| before clipping.
    """

    step: int
    params: Params
    distances: Array
    pairs: Array
    lengths: Array


def train(
    recipe: Recipe,
    loss: ModelLoss,
    params: Params,
    data: Data,
    *,
    witnesses: Data | None = None,
    seed: int,
    interval: int,
) -> Iterator[Seen]:
    """Train, handing over what was seen after every `interval` steps; the seed makes it reproducible, not private.

    Witnesses do not change what is learnt. The paper's eight records of a step are drawn uniformly from the data; they
    join the batch for its accounting only.
    """
    mesh, size = record_mesh(), len(data[0])
    program = _program(loss, recipe.optimizer, recipe.sampling_rate, size, recipe.subset_fraction, mesh)
    records, watched = spread(data, mesh), None if witnesses is None else spread(witnesses, mesh)
    rng = np.random.default_rng(seed)
    limit = math.inf if recipe.clip_norm is None else recipe.clip_norm
    fixed = (records, watched, seeded_key(seed), np.float32(limit), np.float32(recipe.noise_std))
    moving = (params, recipe.optimizer.init(params))
    for start in range(0, recipe.steps, interval):
        numbers = np.arange(start, min(start + interval, recipe.steps))
        drawn = np.stack([rng.choice(size, LEFT_OUT, replace=False) for _ in numbers])
        eight = jax.tree.map(lambda leaf, drawn=drawn: np.asarray(leaf)[drawn], data)
        moving, seen = program(moving, (numbers, eight), *fixed)
        yield Seen(int(numbers[-1]) + 1, moving[0], *(np.asarray(one) for one in seen))


@lru_cache(maxsize=4)
def _program(
    loss: ModelLoss,
    optimizer: optax.GradientTransformation,
    sampling_rate: float,
    size: int,
    subset_fraction: float | None,
    mesh: Mesh,
) -> Any:
    """Several steps, compiled; C and the noise are arguments, so that runs which differ in these share it."""
    level = sampling_rate * size
    step = PrivateStep(BookKeeping(loss), sampling_rate, level, subset_fraction=subset_fraction, mesh=mesh)

    def several(moving: Any, now: Any, records: Any, watched: Any, key: Any, clip_norm: Any, noise_std: Any) -> Any:
        def one(moving: Any, now: Any) -> Any:
            (params, state), (number, eight) = moving, now
            keys = step_keys(key, number)
            # The step draws the same subset from the same key, so that training and accounting share it (K1j).
            subset = None if subset_fraction is None else random_subset(keys.subset, params, subset_fraction)
            mean, seen = step(key, number, params, records, clip_norm=None, noise_std=0.0, witnesses=watched)
            clipped, length = _clipped(mean, clip_norm)
            noisy = restrict(add_noise(keys.noise, clipped, noise_std), subset)
            pairs = _leave_one_out(loss, params, mean, eight, subset, level, clip_norm)
            distances = jnp.zeros(0) if seen is None else seen.distance / level
            updates, state = optimizer.update(noisy, state, params)
            return (optax.apply_updates(params, updates), state), (distances, pairs, length)

        return lax.scan(one, moving, now)

    return jax.jit(several)


def _leave_one_out(
    loss: ModelLoss, params: Params, mean: Params, eight: Data, subset: Params, level: float, clip_norm: jax.Array
) -> jax.Array:
    """|clip(ḡ without x_i) − clip(ḡ without x_j)| of the 28 pairs of eight records, ḡ of the batch and these eight."""

    def own(example: Data) -> Params:
        return restrict(jax.grad(loss)(params, example), subset)

    gradients = lax.map(own, eight)
    whole = jax.tree.map(lambda batch, more: batch + more.sum(0) / level, mean, gradients)

    def without(own: Params) -> jax.Array:
        left = jax.tree.map(lambda all_, one: all_ - one / level, whole, own)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(_clipped(left, clip_norm)[0])])

    rows = lax.map(without, gradients)
    distances = lax.map(lambda row: jnp.sqrt(jnp.sum((rows - row) ** 2, axis=1)), rows)
    result: jax.Array = distances[PAIRS]
    return result


def _clipped(tree: Params, clip_norm: jax.Array | float) -> tuple[Params, jax.Array]:
    """clip(tree; C) and |tree| (clipping, B13); C may be infinite."""
    length = optax.tree.norm(tree)
    factor = jnp.minimum(1.0, clip_norm / jnp.maximum(length, 1e-30))
    return jax.tree.map(lambda leaf: leaf * factor, tree), length
