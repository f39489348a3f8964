"""Stochastic-gradient Hamiltonian Monte Carlo (Chen et al. 2014; paper S4; F10).

    v ← (1 − hB) v − h ∇U~(θ) + N(0, 2TBh I),    θ ← θ + h v,    z = (q/L) sqrt(2TB/h)

The friction B takes out what the noise puts in. So noise that is added for a promised ε is met by more friction, up to
hB = 1, where momentum is forgotten at every step and SGHMC is SGLD with steps of h²: only beyond that does it raise the
temperature. h is a length of time: h² compares with the step of SGLD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array
from bayesdp.learn.loop.objective import Position
from bayesdp.learn.sgmcmc.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sgmcmc.momentum import MomentumSampler, pushed


class Hamiltonian(Kernel):
    """Momentum v, at rest at first."""

    def begin(self, theta: Theta) -> Position:
        """At θ, at rest."""
        return Position(theta, jax.tree.map(jnp.zeros_like, theta))

    def move(self, point: Theta, inner: Theta, force: Theta, now: Pace) -> Position:
        """One step."""
        return pushed(point, inner, force, now.size, now.friction)


@dataclass(frozen=True, kw_only=True)
class SGHMC(MomentumSampler):
    """Hamiltonian dynamics with friction: a `Sampler`, and

    Args:
        friction: B > 0, with h B <= 1.

    Bad input gets `InputError` naming the field.

    Examples:
        >>> walk = bd.SGHMC(sampling_rate=0.1, steps=200, step_size=1e-3, friction=10.0, engine="rdp")
        >>> walk = walk.calibrate_step(epsilon=2.0)
        >>> walk.epsilon() <= 2.0
        True
    """

    kind: ClassVar[str] = "private Hamiltonian Monte Carlo"

    @property
    def frictions(self) -> Array:
        """B, raised to h (zL/q)² / 2T where noise was added, at most 1/h."""
        if self.temperature == 0:
            return self.damping
        matching = self.damping * (self.noise / self.own_noise) ** 2
        return np.minimum(matching, 1 / self.sizes)

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""
        return Hamiltonian(target, records, samples)
