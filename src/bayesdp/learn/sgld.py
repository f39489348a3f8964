"""Stochastic-gradient Langevin dynamics (Welling and Teh 2011; paper S4; SPEC F2, F3, L7).

    θ ← θ + h (∇log p(θ) + (1/q) Σ_{i in batch} clip(∇log p(x_i|θ); L)) + N(0, 2Th I),    z = (q/L) sqrt(2T/h)

S4's Algorithm 1 descends the likelihood and has half of that noise variance (ERR 24, 25). If the posterior is strongly
log-concave and only the last iterate is released, the cost does not grow with the number of steps (`last_only`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from bayesdp import errors
from bayesdp.accountant.calibrate import Accountant
from bayesdp.accountant.last_iterate import Curvature, LastIterate
from bayesdp.accountant.worst_case import Engine
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.learn import convexity
from bayesdp.learn.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.probabilistic import Data, Probabilistic
from bayesdp.learn.sampler import Sampler
from bayesdp.learn.samples import SampledPosterior
from bayesdp.learn.training import Training
from bayesdp.rounding import down

LAST = (
    "Only the last iterate of each of {chains} chain(s) was released: as many samples, and a spread or an interval "
    "says no more than they do."
)


class Langevin(Kernel):
    """θ ← θ + h force: the noise is in the force."""

    def move(self, point: Theta, inner: Any, force: Theta, now: Pace) -> tuple[Theta, Any]:
        """One step."""
        return jax.tree.map(lambda theta, f: theta + now.size * f, point, force), inner


@dataclass(frozen=True, kw_only=True)
class SGLD(Sampler):
    """Langevin dynamics: a `Sampler` without momentum. Noise that is added raises the temperature.

    Args:
        last_only: a `Curvature`: the last iterate of each chain is released and no other (`burn_in` is without effect),
            at the least of what it costs alone (L7) and of what all together cost. `fit` tries the curvature on made-up
            records, and refuses data that it does not allow for; a step that is too long for it is refused at once.
    """

    kind: ClassVar[str] = "private Langevin dynamics"

    last_only: Curvature | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last_only is None:
            return
        if not isinstance(self.last_only, Curvature):
            raise errors.refuse("last_only", self.last_only, "to be a Curvature or None", "See bd.Curvature.logistic.")
        if not isinstance(self.clip_norm, int | float):
            hint = "Other rules do not keep the curvature."
            raise errors.refuse("clip_norm", self.clip_norm, "to be a number with last_only", hint)
        for name in ("thin", "interval", "epsilon_budget"):
            if getattr(self, name) not in (None, self.steps if name == "interval" else None):
                raise errors.refuse(name, getattr(self, name), "to be left out with last_only")
        longest = self.last_only.longest(self.rates, self.delta, self.chains)
        if (self.sizes > longest).any():
            most = float(self.step_size * np.min(longest / self.sizes))
            raise errors.refuse(
                "step_size",
                self.step_size,
                f"to be at most {down(most)}, so that steps contract under last_only",
                "A larger sampling_rate or shorter features allow for longer ones.",
            )

    @property
    def only_the_end(self) -> bool:
        """Whether nothing may be shown before the last step."""
        return self.last_only is not None

    @property
    def facts(self) -> dict[str, str | float | bool]:
        """For the report."""
        return super().facts | ({"released": "the last iterate of each chain"} if self.only_the_end else {})

    def promised(self, dp: Guarantee) -> Guarantee:
        """The DP guarantee of what is released, given that of all steps."""
        account = self._account(self.noise, self.engine) if self.only_the_end and (self.noise > 0).all() else None
        return account.guarantee(self.delta) if isinstance(account, LastIterate) else dp

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""
        return Langevin(target, records, samples)

    def _account(self, noise: Array, engine: Engine, longer: float = 1.0) -> Accountant:
        everything = self._all_iterates(noise, engine)
        if self.last_only is None:
            return everything
        steps = {"sizes": longer * self.sizes, "noise": noise, "rates": self.rates, "bounds": self._bounds}
        return LastIterate(everything, self.last_only, **steps, chains=self.chains)

    def _posterior(self, reading: Probabilistic, kernel: Kernel, training: Training) -> SampledPosterior:
        found = super()._posterior(reading, kernel, training)
        if not self.only_the_end:
            return found
        return dataclasses.replace(found, notes=(LAST.format(chains=self.chains), *found.notes))

    def _read(self, model: Any, data: Data, params: Any) -> tuple[Probabilistic, Kernel, Any]:
        found = super()._read(model, data, params)
        if self.last_only is not None:
            convexity.check(self.last_only, model, found[0], data, float(self._bounds.min()))
        return found
