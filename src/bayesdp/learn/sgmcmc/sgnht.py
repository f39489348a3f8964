"""Stochastic-gradient Nosé-Hoover thermostat (Ding et al. 2014; paper S4; F11).

    v ← v − h ∇U~(θ) − h ξ v + N(0, 2TAh I),    θ ← θ + h v,    ξ ← ξ + h (k − T),    z = (q/L) sqrt(2TA/h)

The friction ξ grows while the momentum is too hot and shrinks while it is too cold. So it takes out noise of any
origin: that of batches, and what is added for a promised ε, which leaves the temperature where it was. Ding et al. take
k = |v|²/d; here k = (1 − hξ/2) |v|²/d, which is right to one order more: with U = λθ²/2 stationarity of θ² gives
E[θv] = h E[v²]/2 after a step and −h E[v²]/2 with the v of the next, whence λ E[θ²] = (1 − hξ/2) E[v²].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array
from bayesdp.learn.loop.objective import Position
from bayesdp.learn.sgmcmc.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sgmcmc.momentum import MomentumSampler, pushed


class Inner(NamedTuple):
    """v and ξ."""

    momentum: Theta
    friction: jax.Array


@dataclass(frozen=True)
class Thermostat(Kernel):
    """Momentum v, at rest at first, and friction ξ, which starts at `friction`."""

    friction: float

    def begin(self, theta: Theta) -> Position:
        """At θ, at rest."""
        return Position(theta, Inner(jax.tree.map(jnp.zeros_like, theta), jnp.float32(self.friction)))

    def move(self, point: Theta, inner: Inner, force: Theta, now: Pace) -> Position:
        """One step."""
        theta, momentum = pushed(point, inner.momentum, force, now.size, inner.friction)
        leaves = jax.tree.leaves(momentum)
        heat = sum(jnp.sum(leaf**2) for leaf in leaves) / sum(leaf.size for leaf in leaves)
        heat = (1 - now.size * inner.friction / 2) * heat
        friction = inner.friction + now.size * (heat - now.temperature)
        return Position(theta, Inner(momentum, friction))


@dataclass(frozen=True, kw_only=True)
class SGNHT(MomentumSampler):
    """Thermostatted dynamics: a `Sampler`, and

    Args:
        friction: A > 0 of the sampler's own noise, with h A <= 1. The thermostat starts there, or at the friction that
            takes out the noise where more was added: found by itself it would take longer than a run.

    Bad input gets `InputError` naming the field.

    Examples:
        >>> walk = bd.SGNHT(sampling_rate=0.1, steps=200, step_size=1e-3, friction=10.0, engine="rdp")
        >>> walk = walk.calibrate_step(epsilon=2.0)
        >>> walk.epsilon() <= 2.0
        True
    """

    kind: ClassVar[str] = "private Nosé-Hoover thermostat"

    @property
    def temperatures(self) -> Array:
        """That of the thermostat, whatever the noise."""
        return np.full(self.steps, self.temperature)

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""
        return Thermostat(target, records, samples, self.matched)

    @property
    def matched(self) -> float:
        """The friction that takes out the noise of the first step, A (z/z_own)², at most 1/h."""
        first = self.friction
        if self.temperature:
            first *= float((self.noise[0] / self.own_noise[0]) ** 2)
        return min(first, 1 / float(self.sizes[0]))
