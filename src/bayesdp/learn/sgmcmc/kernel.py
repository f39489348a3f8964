"""A sampler's step on the private loop: gradient of the likelihood clipped and noised, prior exact, iterate kept.

    force = ∇log p(θ) + (1/q) (Σ_{i in batch} clip(∇log p(x_i|θ); L) + N(0, s² I)) = −∇U~(θ) + noise        (F1)

The sampler's own noise **is** the noise of the private sum: nothing else in a step is random, and each key of the loop
is used once. `move` turns the force into the next iterate; all of that is post-processing of the noisy sum.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.learn.loop.objective import ClipNorm, Numbers, Objective, Params, Point, Position, State, StepSettings
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model, probabilistic
from bayesdp.learn.records import Data, Record
from bayesdp.learn.sgmcmc.virial import Virial
from bayesdp.mechanism.clipping import Norms
from bayesdp.mechanism.people import People, PeopleLoss
from bayesdp.mechanism.people_books import gradients_of
from bayesdp.mechanism.per_example import Gradients, PerExample

Theta = Params
"""The parameters on the real line: a vector, or a network's tree."""


@dataclass(frozen=True)
class Target:
    """What is sampled: `model` for the reader, `gradients` of −log p(x|θ) for the private sum, and where to begin."""

    model: Probabilistic | Network
    gradients: Gradients
    start: Theta = field(compare=False)

    @classmethod
    def of(cls, model: Model | Network, data: Data, params: Params) -> Target:
        """`model`, `params` as for `probabilistic`; or a `Network`. Bad input gets `InputError`."""
        if isinstance(model, Network):
            start = jax.tree.map(jnp.asarray, model.params if params is None else params)
            loss = PeopleLoss(model.loss) if isinstance(data, People) else model.loss
            return cls(model, gradients_of(loss), start)
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

    size: Numbers | float
    temperature: Numbers | float
    friction: Numbers | float
    noise: Numbers | float
    early: Numbers | float
    slot: Numbers | float


class Watched(NamedTuple):
    """A sampler's own state, and what shows whether it is as hot as it should be."""

    inner: State
    virial: Virial


@dataclass(frozen=True)
class Kernel(Objective):
    """The objective of a sampler, with its signals at θ; `records` is N, `samples` how many are kept."""

    target: Target
    records: int
    samples: int

    def begin(self, theta: Theta) -> Position:
        """Where the first step is taken, and the sampler's own state."""
        return Position(theta, ())

    def theta(self, point: Point) -> Theta:
        """The iterate at a point."""
        return point

    @abstractmethod
    def move(self, point: Point, inner: State, force: Theta, now: Pace) -> Position:
        """The next point and state, from the noisy force."""

    def start(self, params: Point) -> Watched:
        """The sampler's own state before the first step, and nothing seen."""
        return Watched(self.begin(self.theta(params)).state, Virial.none(self.theta(params)))

    def store(self, params: Point) -> Theta:
        """Room for the samples of all chains, (samples + 1, chains, …)."""
        return jax.tree.map(lambda leaf: jnp.zeros((self.samples + 1, *leaf.shape), leaf.dtype), self.theta(params))

    def keep(self, store: Theta, now: StepSettings, params: Point) -> Theta:
        """The store with this step's iterates of all chains."""
        # Not rows.at[slot].set(leaf), a scatter, which would copy all rows.
        put = partial(lax.dynamic_update_index_in_dim, index=now.pace.slot, axis=0)
        return jax.tree.map(put, store, self.theta(params))

    def clip_sum(
        self,
        params: Point,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Theta | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Theta, Norms]:
        """Σ_x m_x clip(−∇log p(x|θ)) and the norms."""
        return self.target.gradients.clip_sum(self.theta(params), examples, mask, clip_norm, subset, per_unit)

    def norms(
        self, params: Point, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Theta | None = None
    ) -> Norms:
        """The norms alone."""
        return self.target.gradients.norms(self.theta(params), examples, mask, clip_norm, subset)

    def zero(self, params: Point) -> Theta:
        """An empty sum."""
        return jax.tree.map(jnp.zeros_like, self.theta(params))

    def advance(self, now: StepSettings, point: Point, state: Watched, released: Theta) -> Position:
        """The point and state after a step, from the noisy mean of the gradients."""
        force = self.force(point, released)
        virial = state.virial.plus(self.theta(point), self.pull(point, force), now.pace.early)
        params, inner = self.move(point, state.inner, force, now.pace)
        return Position(params, Watched(inner, virial))

    def pull(self, point: Point, force: Theta) -> Theta:
        """The force on θ, where a sampler has it in other coordinates."""
        del point
        return force

    def force(self, point: Point, released: Theta) -> Theta:
        """−∇U~ and its noise: the gradient of the prior, less N times the noisy mean of the gradients."""
        prior = jax.grad(self.target.model.log_prior)(self.theta(point))
        return jax.tree.map(lambda exact, noisy: exact - self.records * noisy, prior, released)
