"""The doubly stochastic ELBO as private gradients: what of a record is clipped and noised, and what is made of it (D3).

    -ELBO/N = (1/N) Σ_i E_q[-log p(x_i|z)] - (1/N) (E_q[log p(z)] + H(q)),    z = μ + F·draw,    draw ~ N(0, I)

The draw is public and shared by all records of a step. With g_i = -∇_z log p(x_i|z), and J(θ) = ∂z/∂θ:

    variant      clipped and noised     what the optimiser is given
    "plain"      Jᵀ g_i                 the noisy mean + ∇rest                     prior and entropy exact (ERR 13e)
    "paper"      Jᵀ g_i + ∇rest         the noisy mean                             S2's Algorithm 1 (D3)
    "aligned"    g_i                    Jᵀ (noisy mean) + ∇rest                    the scale costs nothing (L6)
    "natural"    g_i                    N Fisher⁻¹ (Jᵀ (noisy mean) + ∇rest)       aligned, natural gradient of -ELBO

rest = -(1/N) (E_q[log p(z)] + H(q)) does not depend on the data. Everything right of the noise is post-processing. The
optimiser sees θ as {"mean": μ, "scale": the numbers of F}, so that each can have its own step size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax

from bayesdp.learn.guide import Guide
from bayesdp.learn.natural import natural, squares_in_theta
from bayesdp.learn.noise_aware import Walk
from bayesdp.learn.probabilistic import Data, Probabilistic, Record
from bayesdp.mechanism.blocks import full_precision
from bayesdp.mechanism.clip_rule import Norms, apply_rule, clip_rule

Variant = Literal["aligned", "plain", "natural", "paper"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)


class Point(NamedTuple):
    """Where a step looks: the guide θ and the step's public draws (S, d); and there ∇rest."""

    theta: jax.Array
    draws: jax.Array
    rest: jax.Array


class State(NamedTuple):
    """What a run carries beside θ: the optimiser's state, the mean of the last iterates, and how these wander."""

    optimizer: Any
    average: jax.Array
    walk: Walk | None


@dataclass(frozen=True)
class Elbo:
    """The objective, as `mechanism.Gradients` at a `Point`.

    `records` is N, `steps` the length of the run, `draws` how many z a step averages over, `averaged_from` the first
    step of the mean of iterates, `noise_aware` whether their wandering is kept.
    """

    model: Probabilistic
    guide: Guide
    records: int
    steps: int
    draws: int
    variant: Variant
    averaged_from: int
    noise_aware: bool = False

    def start(self, optimizer: optax.GradientTransformation, theta: jax.Array) -> State:
        """The state before the first step."""
        return State(
            optimizer.init(self._parts(theta)), theta, Walk.at(theta[: self.guide.dim]) if self.noise_aware else None
        )

    def drawn(self, key: jax.Array, theta: jax.Array) -> Point:
        """Where a step looks."""
        draws = jax.random.normal(key, (self.draws, self.model.dim))

        def rest(theta: jax.Array) -> jax.Array:
            prior = jnp.mean(jax.vmap(self.model.log_prior)(self.guide.draw(theta, draws)))
            return -(prior + self.guide.entropy(theta)) / self.records

        return Point(theta, draws, jax.grad(rest)(theta))

    @full_precision
    def clip_sum(
        self, point: Point, examples: Data, mask: jax.Array, clip_norm: Any, subset: Any = None
    ) -> tuple[jax.Array, Norms]:
        """Σ_x m_x clip(signal_x) and the norms; a record moves the sum by its clipped norm, as for `PerExample`."""
        del subset
        slopes = self._slopes(point, examples)
        factors, norms = apply_rule(clip_rule(clip_norm), self._squares(point, slopes), mask)
        # A factor of 0 does not remove an infinite gradient: 0 · inf is not a number.
        kept = jnp.where(factors[:, None, None] > 0, slopes, 0)
        total = self._signal(point, jnp.tensordot(factors, kept, axes=1))
        if self.variant == "paper":
            total = total + jnp.sum(factors) * point.rest
        return total, norms

    @full_precision
    def norms(self, point: Point, examples: Data, mask: jax.Array, clip_norm: Any, subset: Any = None) -> Norms:
        """The norms alone."""
        del subset
        return apply_rule(clip_rule(clip_norm), self._squares(point, self._slopes(point, examples)), mask)[1]

    def zero(self, point: Point) -> jax.Array:
        """An empty sum of signals."""
        return jnp.zeros(point.theta.shape if self.variant in ("plain", "paper") else point.draws.shape)

    def advance(
        self,
        optimizer: optax.GradientTransformation,
        number: jax.Array,
        point: Point,
        state: State,
        released: jax.Array,
    ) -> tuple[jax.Array, State]:
        """θ and the state after step `number`, from the noisy mean of the signals: post-processing."""
        parts = self._parts(point.theta)
        updates, inner = optimizer.update(self._parts(self._gradient(point, released)), state.optimizer, parts)
        theta = jnp.concatenate([part + updates[name] for name, part in parts.items()])
        seen = jnp.maximum(number - self.averaged_from, 0) + 1
        average = state.average + (theta - state.average) / seen
        walk = None
        if state.walk is not None:
            walk = state.walk.plus(theta[: self.guide.dim], number, self.averaged_from, self.steps)
        return theta, State(inner, average, walk)

    def _slopes(self, point: Point, examples: Data) -> jax.Array:
        """-∇_z log p(x|z_s) of every record and draw, (records, S, d)."""
        points = self.guide.draw(point.theta, point.draws)

        def one(record: Record) -> jax.Array:
            down: jax.Array = jax.vmap(lambda z: -jax.grad(self.model.log_likelihood)(z, record))(points)
            return down

        slopes: jax.Array = jax.vmap(one)(examples)
        return slopes

    def _signal(self, point: Point, slopes: jax.Array) -> jax.Array:
        """What is released of slopes (S, d), a linear map.

        Dividing by √S gives the mean over S draws the noise that it has for one.
        """
        if self.variant in ("aligned", "natural"):
            return slopes / math.sqrt(len(slopes))
        return self._pull_back(point, slopes)

    def _squares(self, point: Point, slopes: jax.Array) -> jax.Array:
        """The squared length of each record's signal."""
        draws = self.draws
        if self.variant in ("aligned", "natural"):
            return jnp.sum(slopes**2, axis=(1, 2)) / draws
        rest = point.rest if self.variant == "paper" else None
        return squares_in_theta(self.guide, point.theta, point.draws, slopes / draws, rest)

    def _gradient(self, point: Point, released: jax.Array) -> jax.Array:
        """An estimate of -∇_θ ELBO/N from what was released; of N Fisher⁻¹ times it for "natural"."""
        if self.variant == "paper":
            return released
        if self.variant == "plain":
            return released + point.rest
        gradient = self._pull_back(point, released * math.sqrt(self.draws)) + point.rest
        return self.records * natural(self.guide, point.theta, gradient) if self.variant == "natural" else gradient

    def _parts(self, theta: jax.Array) -> dict[str, jax.Array]:
        return {"mean": theta[: self.guide.dim], "scale": theta[self.guide.dim :]}

    def _pull_back(self, point: Point, slopes: jax.Array) -> jax.Array:
        """Jᵀ slopes, the mean over the draws."""
        _, back = jax.vjp(lambda theta: self.guide.draw(theta, point.draws), point.theta)
        gradient: jax.Array = back(slopes / len(slopes))[0]
        return gradient
