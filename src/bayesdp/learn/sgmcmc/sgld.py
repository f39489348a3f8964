"""Stochastic-gradient Langevin dynamics (Welling and Teh 2011; paper S4; F2, F3).

    θ ← θ + h (∇log p(θ) + (1/q) Σ_{i in batch} clip(∇log p(x_i|θ); L)) + N(0, 2Th I),    z = (q/L) sqrt(2T/h)

S4's Algorithm 1 descends the likelihood and has half of that noise variance (ERR 24, 25). If the posterior is strongly
log-concave and only the last iterate is released, the cost does not grow with the number of steps (`last_only`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import jax
import numpy as np

from bayesdp import errors
from bayesdp.accountant.calibrate import Accountant
from bayesdp.accountant.langevin.last_iterate import Curvature, LastIterate
from bayesdp.accountant.worst_case import Engine
from bayesdp.errors import Array, unmet
from bayesdp.learn.loop.objective import Params, Position, State
from bayesdp.learn.loop.plan import Facts
from bayesdp.learn.loop.training import Outcome
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model
from bayesdp.learn.posterior.inference import Reading
from bayesdp.learn.posterior.samples import SampledPosterior
from bayesdp.learn.records import Data, Rows
from bayesdp.learn.sgmcmc import convexity
from bayesdp.learn.sgmcmc.kernel import Kernel, Pace, Target, Theta
from bayesdp.learn.sgmcmc.sampler import Sampler
from bayesdp.rounding import down

LAST = (
    "Only the last iterate of each of {chains} chain(s) was released: as many samples, and a spread or an interval "
    "says no more than they do."
)


class Langevin(Kernel):
    """θ ← θ + h force: the noise is in the force."""

    def move(self, point: Theta, inner: State, force: Theta, now: Pace) -> Position:
        """One step."""
        return Position(jax.tree.map(lambda theta, f: theta + now.size * f, point, force), inner)


@dataclass(frozen=True, kw_only=True)
class SGLD(Sampler):
    """Langevin dynamics: a `Sampler` without momentum. Noise that is added raises the temperature.

    Args:
        last_only: a `Curvature`: the last iterate of each chain is released and no other (`num_warmup` has no
            effect), at the least of what it costs alone (L7) and of what all together cost. `fit` tries the curvature
            on made-up records, and refuses data that it does not allow for, and at once a step that is too long for it.

    Examples:
        >>> walk = bd.SGLD(sampling_rate=0.1, steps=200, step_size=1e-3, engine="rdp").calibrate_step(epsilon=2.0)
        >>> walk.epsilon() <= 2.0
        True
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
        for name in ("thin", "report_every", "epsilon_budget"):
            if getattr(self, name) not in (None, self.steps if name == "report_every" else None):
                raise errors.refuse(name, getattr(self, name), "to be left out with last_only")
        longest = self.last_only.longest(self.rates, self.delta, self.num_chains)
        if (self.sizes > longest).any():
            most = float(self.step_size * np.min(longest / self.sizes))
            raise errors.refuse(
                "step_size",
                self.step_size,
                f"to be at most {down(most)}, so that steps contract under last_only",
                "A larger sampling_rate or shorter features allow for longer ones.",
            )

    @property
    def facts(self) -> Facts:
        """For the report."""
        return super().facts | ({"released": "the last iterate of each chain"} if self.last_only else {})

    def kernel(self, target: Target, records: int, samples: int) -> Kernel:
        """The sampler's step."""
        return Langevin(target, records, samples)

    def _account(self, noise: Array, engine: Engine, longer: float = 1.0) -> Accountant:
        everything = self._all_iterates(noise, engine)
        if self.last_only is None:
            return everything
        steps = {"sizes": longer * self.sizes, "noise": noise, "rates": self.rates, "bounds": self._bounds}
        return LastIterate(everything, self.last_only, **steps, chains=self.num_chains)

    @cached_property
    def _kept(self) -> Rows:
        return super()._kept if self.last_only is None else np.array([self.steps - 1])

    def _as_run(self, *, quiet: bool) -> Self:
        if self.last_only is not None and not quiet:
            raise unmet(
                "last_only",
                self.last_only,
                "holdout, members, watch, evaluate, progress and folder with last_only left out",
                "both: they look at earlier iterates, which are to stay secret",
                "Leave one of the two out.",
            )
        return super()._as_run(quiet=quiet)

    def _posterior(self, reading: Reading, outcome: Outcome) -> SampledPosterior:
        if self.last_only is None:
            return super()._posterior(reading, outcome)
        if (self.noise > 0).all():
            account = self._account(self.noise, self.engine)
            assert isinstance(account, LastIterate)
            run = dataclasses.replace(outcome.run, released=account.guarantee(self.delta))
            outcome = outcome._replace(run=run)
        found = super()._posterior(reading, outcome)
        return dataclasses.replace(found, notes=(LAST.format(chains=self.num_chains), *found.notes))

    def _read(self, model: Model | Network, data: Data, params: Params) -> Reading:
        found = super()._read(model, data, params)
        if self.last_only is not None:
            convexity.check(self.last_only, model, found.model, data, float(self._bounds.min()))
        return found
