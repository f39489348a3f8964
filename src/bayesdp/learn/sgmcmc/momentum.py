"""What samplers with momentum share: a friction B that takes out what the noise puts in (F10, F11).

v ← (1 − hB) v + h force,    θ ← θ + h v,    h B <= 1
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.learn.loop.objective import Numbers, Position
from bayesdp.learn.sgmcmc.kernel import Theta
from bayesdp.learn.sgmcmc.sampler import Sampler


@dataclass(frozen=True, kw_only=True)
class MomentumSampler(Sampler):
    """A `Sampler` with a `friction` above 0 whose step size is a length of time."""

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


def pushed(theta: Theta, momentum: Theta, force: Theta, size: Numbers | float, friction: Numbers | float) -> Position:
    """θ and v after v ← (1 − hB) v + h force, θ ← θ + h v."""
    slower = 1 - size * friction
    momentum = jax.tree.map(lambda v, f: slower * v + size * f, momentum, force)
    return Position(jax.tree.map(lambda at, v: at + size * v, theta, momentum), momentum)
