"""The doubly stochastic ELBO as private gradients: what of a record is clipped and noised, and what is made of it (D3).

    -ELBO/N = (1/N) Σ_i E_q[-log p(x_i|z)] - (1/N) (E_q[log p(z)] + H(q)),    z = μ + F·draw,    draw ~ N(0, I)

The draw is public and shared by all records of a step. With g_i = -∇_z log p(x_i|z), and J(θ) = ∂z/∂θ:

    variant      clipped and noised     what the optimiser is given
    "plain"      Jᵀ g_i                 the noisy mean + ∇rest                     prior and entropy exact (ERR 13e)
    "paper"      Jᵀ g_i + ∇rest         the noisy mean                             Algorithm 1 of paper S2 (D3)
    "aligned"    g_i                    Jᵀ (noisy mean) + ∇rest                    the scale costs nothing (DPVIm, L6)
    "natural"    g_i                    N Fisher⁻¹ (Jᵀ (noisy mean) + ∇rest)       aligned, natural gradient of -ELBO

rest = -(1/N) (E_q[log p(z)] + H(q)) does not depend on the data. Everything right of the noise is post-processing. The
optimiser sees θ as {"mean": μ, "scale": the numbers of F}, so that each can have its own step size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax

from bayesdp.learn.loop.objective import ClipNorm, Objective, Params, Position, StepSettings
from bayesdp.learn.loop.objective import State as Carried
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.records import Data, Record
from bayesdp.learn.vi.guide import Guide
from bayesdp.learn.vi.natural_gradient import in_theta, natural
from bayesdp.learn.vi.noise_aware import Walk
from bayesdp.mechanism.blocks import full_precision
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.lengths import length
from bayesdp.mechanism.per_example import adding, empty

Variant = Literal["aligned", "plain", "natural", "paper"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


class Point(NamedTuple):
    """Where a step is taken: the guide θ and the step's public draws (S, d); and there ∇rest."""

    theta: jax.Array
    draws: jax.Array
    rest: jax.Array


class State(NamedTuple):
    """What a run carries beside θ: the optimiser's state, the mean of the last iterates, and how these wander."""

    optimizer: Carried
    average: jax.Array
    walk: Walk | None


@dataclass(frozen=True)
class Elbo(Objective):
    """The objective, with its signals at a `Point`.

    `records` is N, `steps` the length of the run, `num_particles` how many z a step averages over, `averaged_from` the
    first step of the mean of iterates, `noise_aware` whether their wandering is kept; `optimizer` is one of
    {"mean": …, "scale": …}.
    """

    model: Probabilistic
    guide: Guide
    optimizer: optax.GradientTransformation
    records: int
    steps: int
    num_particles: int
    variant: Variant
    averaged_from: int
    noise_aware: bool = False

    def start(self, params: jax.Array) -> State:
        """The state before the first step."""
        walk = Walk.at(params[: self.guide.dim]) if self.noise_aware else None
        return State(self.optimizer.init(self._parts(params)), params, walk)

    def draw(self, key: jax.Array, params: jax.Array) -> jax.Array:
        """The step's public draws, (S, d)."""
        del params
        return jax.random.normal(key, (self.num_particles, self.model.dim))

    def locate(self, draws: jax.Array, params: jax.Array) -> Point:
        """θ with the step's public draws."""

        def rest(theta: jax.Array) -> jax.Array:
            prior = jnp.mean(jax.vmap(self.model.log_prior)(self.guide.draw(theta, draws)))
            return -(prior + self.guide.entropy(theta)) / self.records

        return Point(params, draws, jax.grad(rest)(params))

    @full_precision
    def clip_sum(
        self,
        params: Point,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[jax.Array, Norms]:
        """Σ_x m_x clip(signal_x) and the norms, with the guarantee of `PerExample` (H20)."""
        del subset
        signals = self._signals(params, examples)
        factors, norms = apply_rule(clip_rule(clip_norm), length(signals), mask)
        zero = empty(jnp.zeros(signals.shape[1:]), per_unit)
        return adding(per_unit, mask.shape[0])(zero, signals, factors), norms

    @full_precision
    def norms(
        self, params: Point, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Params | None = None
    ) -> Norms:
        """The norms alone."""
        del subset
        return apply_rule(clip_rule(clip_norm), length(self._signals(params, examples)), mask)[1]

    def zero(self, params: Point) -> jax.Array:
        """An empty sum of signals."""
        return jnp.zeros(params.theta.shape if self.variant in ("plain", "paper") else params.draws.shape)

    def advance(self, now: StepSettings, point: Point, state: State, released: jax.Array) -> Position:
        """θ and the state after a step, from the noisy mean of the signals."""
        number, parts = now.number, self._parts(point.theta)
        updates, inner = self.optimizer.update(self._parts(self._gradient(point, released)), state.optimizer, parts)
        theta = jnp.concatenate([part + updates[name] for name, part in parts.items()])
        seen = jnp.maximum(number - self.averaged_from, 0) + 1
        average = state.average + (theta - state.average) / seen
        walk = None
        if state.walk is not None:
            walk = state.walk.plus(theta[: self.guide.dim], number, self.averaged_from, self.steps)
        return Position(theta, State(inner, average, walk))

    def _signals(self, point: Point, examples: Data) -> jax.Array:
        """What is clipped and released of every record, (records, S, d) or (records, θ).

        Dividing by √S gives the mean over S draws the noise that it has for one.
        """
        points = self.guide.draw(point.theta, point.draws)

        def one(record: Record) -> jax.Array:
            down: jax.Array = jax.vmap(lambda z: -jax.grad(self.model.log_likelihood)(z, record))(points)
            return down

        gradients: jax.Array = jax.vmap(one)(examples)
        if self.variant in ("aligned", "natural"):
            return gradients / math.sqrt(self.num_particles)
        rest = point.rest if self.variant == "paper" else None
        return in_theta(self.guide, point.theta, point.draws, gradients / self.num_particles, rest)

    def _gradient(self, point: Point, released: jax.Array) -> jax.Array:
        """An estimate of -∇_θ ELBO/N from what was released; of N Fisher⁻¹ times it for "natural"."""
        if self.variant == "paper":
            return released
        if self.variant == "plain":
            return released + point.rest
        gradient = self._pull_back(point, released * math.sqrt(self.num_particles)) + point.rest
        return self.records * natural(self.guide, point.theta, gradient) if self.variant == "natural" else gradient

    def _parts(self, theta: jax.Array) -> dict[str, jax.Array]:
        return {"mean": theta[: self.guide.dim], "scale": theta[self.guide.dim :]}

    def _pull_back(self, point: Point, gradients: jax.Array) -> jax.Array:
        """Jᵀ gradients, the mean over the draws."""
        _, back = jax.vjp(lambda theta: self.guide.draw(theta, point.draws), point.theta)
        gradient: jax.Array = back(gradients / len(gradients))[0]
        return gradient
