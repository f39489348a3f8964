"""A sampler's step on the private loop: gradient of the likelihood clipped and noised, prior exact, iterate kept.

    force = ∇log p(θ) + (1/q) (Σ_{i in batch} clip(∇log p(x_i|θ); L) + N(0, s² I)) = −∇U~(θ) + noise        (F1)

The sampler's own noise **is** the noise of the private sum: nothing else in a step is random, and each key of the loop
is used once. `move` turns the force into the next iterate; all of that is post-processing of the noisy sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.learn.network import Network
from bayesdp.learn.probabilistic import Data, Probabilistic, Record, probabilistic
from bayesdp.mechanism.bookkeeping import gradients_of
from bayesdp.mechanism.clip_rule import Norms
from bayesdp.mechanism.clipping import Gradients, PerExample

Theta = Any
"""The parameters on the real line: a vector, or a network's tree."""


@dataclass(frozen=True)
class Target:
    """What is sampled: `model` for the reader, `gradients` of −log p(x|θ) for the private sum, and where to begin."""

    model: Probabilistic | Network
    gradients: Gradients
    start: Theta = field(compare=False)

    @classmethod
    def of(cls, model: Any, data: Data, params: Any) -> Target:
        """`model`, `params` as for `probabilistic`; or a `Network`. Bad input gets `InputError`."""
        if isinstance(model, Network):
            start = jax.tree.map(jnp.asarray, model.params if params is None else params)
            return cls(model, gradients_of(model.loss), start)
        reading = probabilistic(model, data, params)
        return cls(reading, PerExample(Surprise(reading), "vmap"), reading.start)

    def reading(self) -> Probabilistic:
        """The model on flattened parameters."""
        return self.model.reading() if isinstance(self.model, Network) else self.model


@dataclass(frozen=True)
class Surprise:
    """−log p(x|z) of one record."""

    model: Probabilistic

    def __call__(self, z: jax.Array, record: Record) -> jax.Array:
        return -self.model.log_likelihood(z, record)


class Pace(NamedTuple):
    """Public numbers of every step: its size, temperature and friction, the standard deviation of the force's noise,
    whether it is before the first sample, and the place of its iterate (those that are not kept share a last one).
    """

    size: Any
    temperature: Any
    friction: Any
    noise: Any
    early: Any
    slot: Any


@dataclass(frozen=True)
class Kernel:
    """The objective of a sampler, as `mechanism.Gradients` at θ; `records` is N, `samples` how many are kept."""

    target: Target
    records: int
    samples: int

    def begin(self, theta: Theta) -> tuple[Any, Any]:
        """Where a step looks at first, and the sampler's own state."""
        return theta, ()

    def theta(self, point: Any) -> Theta:
        """The iterate at a point."""
        return point

    def move(self, point: Any, inner: Any, force: Theta, now: Pace) -> tuple[Any, Any]:
        """The next point and state, from the noisy force."""
        raise NotImplementedError

    def start(self, optimizer: None, point: Any) -> Any:
        """The sampler's own state before the first step."""
        del optimizer
        return self.begin(self.theta(point))[1]

    def store(self, points: Any) -> Theta:
        """Room for the samples of all chains, (samples + 1, chains, …)."""
        return jax.tree.map(lambda leaf: jnp.zeros((self.samples + 1, *leaf.shape), leaf.dtype), self.theta(points))

    def keep(self, store: Theta, now: Pace, points: Any) -> Theta:
        """The store with this step's iterates of all chains."""
        # Not rows.at[slot].set(leaf), a scatter, which would copy all rows.
        put = partial(lax.dynamic_update_index_in_dim, index=now.slot, axis=0)
        return jax.tree.map(put, store, self.theta(points))

    def drawn(self, key: jax.Array, point: Any) -> Any:
        """Where a step looks: nothing is drawn."""
        del key
        return point

    def clip_sum(
        self, point: Any, examples: Data, mask: jax.Array, clip_norm: Any, subset: Any = None
    ) -> tuple[Theta, Norms]:
        """Σ_x m_x clip(−∇log p(x|θ)) and the norms."""
        return self.target.gradients.clip_sum(self.theta(point), examples, mask, clip_norm, subset)

    def norms(self, point: Any, examples: Data, mask: jax.Array, clip_norm: Any, subset: Any = None) -> Norms:
        """The norms alone."""
        return self.target.gradients.norms(self.theta(point), examples, mask, clip_norm, subset)

    def zero(self, point: Any) -> Theta:
        """An empty sum."""
        return jax.tree.map(jnp.zeros_like, self.theta(point))

    def advance(self, optimizer: None, now: Pace, point: Any, inner: Any, released: Theta) -> tuple[Any, Any]:
        """The point and state after a step, from the noisy mean of the slopes."""
        del optimizer
        return self.move(point, inner, self.force(point, released), now)

    def force(self, point: Any, released: Theta) -> Theta:
        """−∇U~ and its noise: the gradient of the prior, less N times the noisy mean of the slopes."""
        prior = jax.grad(self.target.model.log_prior)(self.theta(point))
        return jax.tree.map(lambda exact, noisy: exact - self.records * noisy, prior, released)
