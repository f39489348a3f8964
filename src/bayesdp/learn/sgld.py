"""Stochastic-gradient Langevin dynamics (Welling and Teh 2011; paper S4; SPEC F2, F3).

    θ ← θ + h (∇log p(θ) + (1/q) Σ_{i in batch} clip(∇log p(x_i|θ); L)) + N(0, 2Th I),    z = (q/L) sqrt(2T/h)

S4's Algorithm 1 descends the likelihood and has half of that noise variance (ERR 24, 25).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from bayesdp.learn.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sampler import Sampler


class Langevin(Kernel):
    """θ ← θ + h force: the noise is in the force."""

    def move(self, point: Theta, inner: Any, force: Theta, now: Pace) -> tuple[Theta, Any]:
        """One step."""
        return jax.tree.map(lambda theta, f: theta + now.size * f, point, force), inner


@dataclass(frozen=True, kw_only=True)
class SGLD(Sampler):
    """Langevin dynamics: a `Sampler` without momentum. Noise that is added raises the temperature."""

    kind: ClassVar[str] = "private Langevin dynamics"

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""
        return Langevin(target, records, samples)
