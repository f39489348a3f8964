"""Stochastic-gradient Hamiltonian Monte Carlo (Chen et al. 2014; paper S4; SPEC F10).

    v ← (1 − hB) v − h ∇U~(θ) + N(0, 2TBh I),    θ ← θ + h v,    z = (q/L) sqrt(2TB/h)

The friction B takes out what the noise puts in. So noise that is added for a promised ε is met by more friction, up to
hB = 1, where momentum is forgotten at every step and SGHMC is SGLD with steps of h²: only beyond that does it raise the
temperature. h is a length of time: h² compares with the step of SGLD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.learn.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sampler import Sampler


class Hamiltonian(Kernel):
    """Momentum v, at rest at first."""

    def begin(self, theta: Theta) -> tuple[Theta, Theta]:
        """At θ, at rest."""
        return theta, jax.tree.map(jnp.zeros_like, theta)

    def move(self, point: Theta, inner: Any, force: Theta, now: Pace) -> tuple[Theta, Any]:
        """One step."""
        slower = 1 - now.size * now.friction
        momentum = jax.tree.map(lambda v, f: slower * v + now.size * f, inner, force)
        return jax.tree.map(lambda theta, v: theta + now.size * v, point, momentum), momentum


@dataclass(frozen=True, kw_only=True)
class SGHMC(Sampler):
    """Hamiltonian dynamics with friction: a `Sampler`, and

    Args:
        friction: B > 0, with h B <= 1.

    Bad input gets `InputError` naming the field.
    """

    kind: ClassVar[str] = "private Hamiltonian Monte Carlo"

    friction: float

    def __post_init__(self) -> None:
        errors.number("friction", self.friction, above=0)
        super().__post_init__()
        if self.friction * self.sizes.max() > 1:
            raise errors.refuse(
                "friction",
                self.friction,
                f"to be at most 1/step_size = {1 / self.sizes.max():.4g}",
                "More would turn the momentum round.",
            )

    @property
    def damping(self) -> Array:
        """B of every step."""
        return np.full(self.steps, self.friction)

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
