"""The papers' baseline: DP-SGLD after Wang, Fienberg and Smola (2015) as S2's authors coded it (D13).

    z ← Π( z + η (∇log p(z) + (N/b) Σ_{i in batch} clip(∇log p(x_i|z); L)) + N(0, max(η² K, η) I) )
    K = 128 N T L² / (b ε²) · log(5NT/(2bδ)) · log(2/δ),    T passes over the data, Π onto the ball of radius L − 1

Every iterate is a sample. Changed to make it true: batches are Poisson with rate b/N (theirs were drawn with
replacement, K3), and gradients are clipped at L (theirs were taken to be bounded). What it really costs is accounted
for step by step: in S2's settings a fiftieth of the formula's ε = 1, and for large ε more than the formula says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from bayesdp import errors
from bayesdp.accountant.worst_case import WorstCaseAccountant
from bayesdp.errors import Array
from bayesdp.guarantee import ADJACENCIES, Adjacency, Guarantee
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.records import Data
from bayesdp.mechanism import Flat, PerExample, PrivateStep, Records, fresh_key, record_mesh, seeded_key, spread


def decreasing(step: int) -> float:
    """S2's step size for logistic regression: max(1/(i+1), 0.1)."""
    return max(1 / (step + 1), 0.1)


class Chain(NamedTuple):
    """All iterates on the real line, (steps, d), and what releasing them all costs."""

    model: Probabilistic
    draws: Array
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True)
class WangSGLD:
    """What will be done, all of it public.

    `epsilon`, `delta`: what the formula is told to keep. `passes` T over the data, in steps of `sampling_rate` q = b/N;
    `bound` L of the gradients; `step_size`: a number or a function of the step's number. Bad input gets `InputError`.
    """

    epsilon: float
    sampling_rate: float
    passes: float
    bound: float
    delta: float = 1e-3
    step_size: float | Callable[[int], float] = decreasing
    adjacency: Adjacency = "replace-one"

    def __post_init__(self) -> None:
        errors.number("epsilon", self.epsilon, above=0)
        errors.number("sampling_rate", self.sampling_rate, above=0, most=1)
        errors.number("passes", self.passes, least=self.sampling_rate)
        errors.number("bound", self.bound, above=1, hint="Iterates are kept within bound − 1 of 0.")
        errors.probability("delta", self.delta)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)

    @property
    def steps(self) -> int:
        """T N / b, rounded down."""
        return math.floor(self.passes / self.sampling_rate + 1e-9)

    @property
    def constant(self) -> float:
        """K of the noise."""
        rounds = self.passes / self.sampling_rate  # N T / b
        logs = math.log(2.5 * rounds / self.delta) * math.log(2 / self.delta)
        return 128 * rounds * self.bound**2 / self.epsilon**2 * logs

    def sizes(self) -> Array:
        """η of every step."""
        size = self.step_size
        values = [size(i) if callable(size) else size for i in range(self.steps)]
        return errors.array("step_size", values, above=0)

    def noise_multipliers(self) -> Array:
        """Noise by clip norm, sqrt(max(η² K, η)) / (η L / q), of every step."""
        eta = self.sizes()
        return np.asarray(np.sqrt(np.maximum(eta**2 * self.constant, eta)) * self.sampling_rate / (eta * self.bound))

    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP of all iterates together, from the noise itself rather than from the formula."""
        accountant = WorstCaseAccountant(engine="pld", adjacency=self.adjacency)
        levels = np.floor(self.noise_multipliers() * 1e9) / 1e9  # η often cancels but for rounding
        for level, count in zip(*np.unique(levels, return_counts=True), strict=True):
            accountant.step(noise_multiplier=float(level), sampling_rate=self.sampling_rate, steps=int(count))
        return accountant.guarantee(self.delta)

    def fit(self, model: Any, data: Data, *, params: Any = None, seed: int | None = None) -> Chain:
        """Run the chain on `data`. `model`, `params`: see `probabilistic`; a `seed` makes it **not private**."""
        known = probabilistic(model, data, params)
        key = fresh_key() if seed is None else seeded_key(seed)
        mesh = record_mesh()
        run = _compiled(known, self.sampling_rate, mesh)
        eta, noise = self.sizes(), self.noise_multipliers() * self.bound
        draws = run(known.start, key, jnp.asarray(eta), jnp.asarray(noise), self.bound, spread(data, mesh))
        return Chain(known, np.asarray(draws, np.float64), self.guarantee())


@lru_cache(maxsize=8)
def _compiled(known: Probabilistic, sampling_rate: float, mesh: Mesh) -> Any:
    """run(start, key, η, noise, bound, records) → all iterates; kept for the next chain of this model and rate."""
    gradients = PerExample(lambda z, record: -known.log_likelihood(z, record), "vmap")
    step = PrivateStep(gradients, sampling_rate, 1.0, mesh=mesh)

    def run(start: jax.Array, key: Any, eta: jax.Array, noise: jax.Array, bound: Any, records: Records) -> jax.Array:
        def move(z: jax.Array, now: Any) -> tuple[jax.Array, jax.Array]:
            number, size, std = now
            slope, _ = step(key, number, z, records, clip_norm=Flat(bound), noise_std=std)
            z = z + size * (jax.grad(known.log_prior)(z) - slope / sampling_rate)
            z = z * jnp.minimum(1, (bound - 1) / jnp.maximum(jnp.linalg.norm(z), 1e-30))
            return z, z

        draws: jax.Array = lax.scan(move, start, (jnp.arange(len(eta)), eta, noise))[1]
        return draws

    return jax.jit(run)
