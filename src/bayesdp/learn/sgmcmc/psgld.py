"""Preconditioned stochastic-gradient Langevin dynamics (Li et al. 2016; paper S4; F11).

    θ ← θ + h (G ∇log p(θ) + (1/q) G^½ Σ_{i in batch} clip(G^½ ∇log p(x_i|θ); L)) + N(0, 2Th G),    z = (q/L) sqrt(2T/h)
    V ← α V + (1 − α) (ĝ² − var ĝ),    G ∝ 1 / (λ mean √V + √V), diagonal, with mean 1

A record is clipped after preconditioning, so that L bounds what it moves the noisy sum by. G is made of released
gradients ĝ alone, less the known variance of their noise, and costs nothing. It is adapted up to the first sample and
then held: a G that goes on changing with θ would sample another law unless its derivative is added to the drift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from bayesdp import errors
from bayesdp.learn.loop.objective import ClipNorm, Position
from bayesdp.learn.records import Data, Record
from bayesdp.learn.sgmcmc.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sgmcmc.sampler import Sampler
from bayesdp.mechanism.clipping import Norms
from bayesdp.mechanism.per_example import PerExample


class Scaled(NamedTuple):
    """θ and G^½."""

    theta: Theta
    root: Theta


@dataclass(frozen=True)
class Preconditioned(Kernel):
    """Carries V, the running second moment of the mean gradient."""

    memory: float
    floor: float

    def begin(self, theta: Theta) -> Position:
        """At θ, with G = 1."""
        ones = jax.tree.map(jnp.ones_like, theta)
        return Position(Scaled(theta, ones), jax.tree.map(jnp.zeros_like, theta))

    def theta(self, point: Scaled) -> Theta:
        """The iterate."""
        return point.theta

    def clip_sum(
        self,
        params: Scaled,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Theta | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Theta, Norms]:
        """Σ_x m_x clip(−G^½ ∇log p(x|θ)) and the norms."""
        return self._along(params).clip_sum(self.zero(params), examples, mask, clip_norm, subset, per_unit)

    def norms(
        self, params: Scaled, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Theta | None = None
    ) -> Norms:
        """The norms alone."""
        return self._along(params).norms(self.zero(params), examples, mask, clip_norm, subset)

    def _along(self, point: Scaled) -> PerExample:
        """Gradients in u at 0 of the loss at θ + G^½ u: those in θ times G^½."""
        gradients: Any = self.target.gradients
        method = gradients.method if isinstance(gradients, PerExample) else None

        def loss(u: Theta, record: Record) -> jax.Array:
            moved = jax.tree.map(lambda theta, root, step: theta + root * step, point.theta, point.root, u)
            value: jax.Array = gradients.loss(moved, record)
            return value

        return PerExample(loss, method)

    def force(self, point: Scaled, released: Theta) -> Theta:
        """G^½ times the noisy force: what the prior and the noisy sum give in u."""
        prior = jax.grad(self.target.model.log_prior)(point.theta)
        return jax.tree.map(lambda exact, root, noisy: root * exact - self.records * noisy, prior, point.root, released)

    def pull(self, point: Scaled, force: Theta) -> Theta:
        """The force on θ itself."""
        return jax.tree.map(jnp.divide, force, point.root)

    def move(self, point: Scaled, inner: Theta, force: Theta, now: Pace) -> Position:
        """One step, and V and G after it."""
        theta, root = point
        after = jax.tree.map(lambda at, g, f: at + now.size * g * f, theta, root, force)
        noise = now.noise / self.records

        def moment(v: jax.Array, g: jax.Array, f: jax.Array) -> jax.Array:
            seen = ((f / self.records) ** 2 - noise**2) / g**2
            return jnp.asarray(self.memory * v + (1 - self.memory) * seen)

        second = jax.tree.map(lambda v, g, f: jnp.where(now.early, moment(v, g, f), v), inner, root, force)
        roots = jax.tree.map(lambda old, new: jnp.where(now.early, new, old), root, self._root(second))
        return Position(Scaled(after, roots), second)

    def _root(self, second: Theta) -> Theta:
        sizes = jax.tree.map(lambda v: jnp.sqrt(jnp.maximum(v, 0)), second)
        mean = _mean(sizes)
        # Where nothing rises above the noise, all directions are alike.
        inverse = jax.tree.map(lambda size: 1 / (self.floor * mean + size + 1e-30), sizes)
        level = _mean(inverse)
        return jax.tree.map(lambda value: jnp.sqrt(value / level), inverse)


def _mean(tree: Theta) -> jax.Array:
    leaves = jax.tree.leaves(tree)
    return jnp.asarray(sum(jnp.sum(leaf) for leaf in leaves) / sum(leaf.size for leaf in leaves))


@dataclass(frozen=True, kw_only=True)
class PSGLD(Sampler):
    """Langevin dynamics with a step of its own for every parameter: a `Sampler`, and

    Args:
        memory: α of the running second moment.
        floor: λ, which keeps the longest steps at most about 1/λ times the mean one.

    Noise that is added raises the temperature. Bad input gets `InputError` naming the field.

    Examples:
        >>> walk = bd.PSGLD(sampling_rate=0.1, steps=200, step_size=1e-3, engine="rdp").calibrate_step(epsilon=2.0)
        >>> walk.epsilon() <= 2.0
        True
    """

    kind: ClassVar[str] = "private preconditioned Langevin dynamics"

    memory: float = 0.99
    floor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        errors.number("memory", self.memory, least=0, below=1)
        errors.number("floor", self.floor, above=0)

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""
        return Preconditioned(target, records, samples, self.memory, self.floor)
