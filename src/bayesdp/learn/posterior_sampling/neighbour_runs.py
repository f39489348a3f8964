"""Coupled neighbouring runs (H6): the posterior as it would be with one record more, one fewer, or another.

    θ = T(D; ω),    outsider x: θ' = T(D + x; ω, coins of x),    member x: θ' = T(D − x; ω),
                    x in the place of member y: θ' = T(D − y + x; ω)

T is variational inference without noise, ω its randomness: who is in which batch, and the Monte Carlo draws. All
trajectories are one program and take each step with the same ω, so they differ in the one record and in nothing else:

    θ ← optimiser(θ, −g/N),    g = (1/q) Σ_{i in batch} ∇ E_q log p(x_i|z) + ∇ E_q log p(z) + ∇ entropy

Batches are Poisson with rate q: an outsider has coins of its own, a member's are those of the run, and who takes its
place takes its coins. N (`records`) is public and stays what it is. Train in float64: two trajectories lie about
σ√(d/N) apart, which rounding to float32 would blur. What a pair costs is computed in `release`, and charged in
`accountant.release_account`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax import lax

from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data
from bayesdp.learn.vi.guide import Guide
from bayesdp.mechanism.sampling import poisson_fold

_MICROBATCH = 256
"""Records taken at a time, by all trajectories together."""


class Witnesses(NamedTuple):
    """A change of the data for each neighbour: `adds` its record (1 or 0), and row `place` goes out (−1: none does)."""

    records: Data
    adds: jax.Array
    place: jax.Array


@dataclass(frozen=True, eq=False)
class NeighbourRuns:
    """The program. One object compiles once for all data of one shape.

    `initial_scale` is the guide's first standard deviation; `num_particles` Monte Carlo draws a step; the result is the
    mean of the last `averaged` iterates. `forgetful` makes S1's one-step neighbours (ERR 8): each takes its record for
    certain, is written down, and goes on from where the run itself is. `records` is N, None for that of the data.
    """

    model: Probabilistic
    guide: Guide
    optimizer: optax.GradientTransformation
    sampling_rate: float
    steps: int
    initial_scale: float = 0.1
    num_particles: int = 1
    averaged: int = 1
    forgetful: bool = False
    records: int | None = None

    def __call__(self, key: jax.Array, data: Data, witnesses: Witnesses) -> jax.Array:
        """θ of the run in row 0, then θ' of every witness: (1 + witnesses, parameters of the guide).

        For forgetful ones a leading axis of steps. A trajectory that left the real numbers is NaN.
        """
        result: jax.Array = self._program(key, data, witnesses)
        return result

    @cached_property
    def _program(self) -> Any:
        return jax.jit(self._train)

    def _train(self, key: jax.Array, data: Data, witnesses: Witnesses) -> jax.Array:
        start = self.guide.start(self.model.start, self.initial_scale)
        theta = jnp.broadcast_to(start, (1 + len(witnesses.place), start.size))
        count = count_of(self.records, data)

        def step(carry: Any, number: jax.Array) -> tuple[Any, jax.Array | None]:
            theta, state, total = carry
            gradient = self._gradients(jax.random.fold_in(key, number), theta, data, witnesses)
            updates, state = jax.vmap(self.optimizer.update)(-gradient / count, state, theta)
            theta = optax.apply_updates(theta, updates)
            if self.forgetful:
                common = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), (theta, state))
                return (*common, total), theta
            return (theta, state, total + jnp.where(number >= self.steps - self.averaged, theta, 0)), None

        carry = (theta, jax.vmap(self.optimizer.init)(theta), jnp.zeros_like(theta))
        (_, _, total), every = lax.scan(step, carry, jnp.arange(self.steps))
        return total / self.averaged if every is None else every

    def _gradients(self, key: jax.Array, theta: jax.Array, data: Data, witnesses: Witnesses) -> jax.Array:
        """∇ELBO of every trajectory at its own θ, one ω for all."""
        draws, batch, coins = jax.random.split(key, 3)
        noise = jax.random.normal(draws, (self.num_particles, self.model.dim))

        def likelihood(theta: jax.Array, records: Data, weight: jax.Array) -> jax.Array:
            def one(z: jax.Array) -> jax.Array:
                return jnp.sum(jnp.where(weight != 0, weight * self.model.log_likelihoods(z, records), 0))

            return jnp.mean(jax.vmap(one)(self.guide.draw(theta, noise)))

        def rest(theta: jax.Array) -> jax.Array:
            return jnp.mean(jax.vmap(self.model.log_prior)(self.guide.draw(theta, noise))) + self.guide.entropy(theta)

        def add(carry: Any, indices: jax.Array, mask: jax.Array) -> Any:
            total, sampled = carry
            records = jax.tree.map(lambda leaf: leaf[indices], data)
            more = jax.vmap(jax.grad(likelihood), (0, None, None))(theta, records, mask.astype(theta.dtype))
            return total + more, sampled | jnp.any((indices == witnesses.place[:, None]) & mask, axis=1)

        count, size = len(witnesses.place), len(jax.tree.leaves(data)[0])
        total, sampled = poisson_fold(
            batch,
            add,
            (jnp.zeros_like(theta), jnp.zeros(count, bool)),
            sampling_rate=self.sampling_rate,
            count=size,
            capacity=size,
            microbatch=min(_MICROBATCH, 16 * (1 + int(1.2 * self.sampling_rate * size) // 16)),
        )
        if count:
            tossed = jax.random.bernoulli(coins, self.sampling_rate, (count,))
            taken = jnp.ones(count, bool) if self.forgetful else jnp.where(witnesses.place < 0, tossed, sampled)
            pairs = jax.tree.map(
                lambda comes, held: jnp.stack([comes, held[witnesses.place]], axis=1), witnesses.records, data
            )
            weight = taken[:, None] * jnp.stack([1.0 * witnesses.adds, -1.0 * (witnesses.place >= 0)], axis=1)
            total = total.at[1:].add(jax.vmap(jax.grad(likelihood))(theta[1:], pairs, weight))
        return jnp.asarray(total / self.sampling_rate + jax.vmap(jax.grad(rest))(theta))


def in_doubles(data: Data) -> Data:
    """Records whose numbers are float64, where that is enabled; whole numbers stay what they are."""

    def leaf(values: npt.ArrayLike) -> jax.Array:
        floating = np.issubdtype(np.asarray(values).dtype, np.floating)
        return jnp.asarray(values, float) if floating else jnp.asarray(values)

    return jax.tree.map(leaf, data)
