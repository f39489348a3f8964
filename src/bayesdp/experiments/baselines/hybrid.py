"""Hybrid posterior sampling (Wang, Fienberg and Smola 2015; S4's baseline): one posterior sample, then short steps.

    θ₀ ~ OPS with `share` of ε,    then SGLD with Wang's step h = 1/K, whose own noise is what their formula asks (F7)

The two add up: (ε₁ + ε₂, δ). The formula's ε₂ is what the step was chosen by; what the chain really costs is accounted
for (`wang_sgld`) and much smaller.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.experiments.baselines.base import Baseline
from bayesdp.experiments.baselines.one_posterior_sample import OnePosteriorSample
from bayesdp.experiments.baselines.wang_sgld import WangSGLD
from bayesdp.guarantee import Adjacency, Guarantee
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.records import Data, records_of
from bayesdp.mechanism.key import seeded_key
from bayesdp.report import Settings
from bayesdp.standing import worst_standing


@dataclass(frozen=True, eq=False, kw_only=True)
class HybridChain(Baseline):
    """The draw that the chain began at, and all of its iterates on the real line, (steps, d)."""

    model: Probabilistic
    start: Array
    draws: Array


@dataclass(frozen=True, kw_only=True)
class Hybrid:
    """What will be done, all of it public.

    `epsilon`, `delta` to keep by the papers' formulas, a `share` of ε for the first draw; `likelihood_range`: see
    `OnePosteriorSample`; `sampling_rate`, `passes`, `bound`: see `WangSGLD`. Bad input gets `InputError`.
    """

    epsilon: float
    likelihood_range: float
    sampling_rate: float
    passes: float
    bound: float
    share: float = 0.5
    delta: float = 1e-5
    adjacency: Adjacency = "add-remove"
    burn_in: int = 1000

    def __post_init__(self) -> None:
        errors.number("epsilon", self.epsilon, above=0)
        errors.probability("share", self.share)
        self.first  # noqa: B018  # both check themselves
        self.chain  # noqa: B018

    @property
    def first(self) -> OnePosteriorSample:
        """Where the chain begins."""
        return OnePosteriorSample(
            epsilon=self.share * self.epsilon,
            likelihood_range=self.likelihood_range,
            adjacency=self.adjacency,
            chain=self.burn_in,
            delta=self.delta,
        )

    @property
    def chain(self) -> WangSGLD:
        """What it does then: the longest step that needs no other noise than its own."""
        plan = WangSGLD(
            epsilon=(1 - self.share) * self.epsilon,
            sampling_rate=self.sampling_rate,
            passes=self.passes,
            bound=self.bound,
            delta=self.delta,
            adjacency=self.adjacency,
        )
        return dataclasses.replace(plan, step_size=1 / plan.constant)

    def guarantee(self) -> Guarantee:
        """The first draw and all iterates: ε₁ + ε₂ at δ, the chain by what it really costs."""
        draw, chain = self.first.guarantee(), self.chain.guarantee()
        return dataclasses.replace(
            chain,
            epsilon=draw.epsilon + chain.epsilon,
            assumptions=(*draw.assumptions, *chain.assumptions),
            caveats=(*draw.caveats, *chain.caveats),
            standing=worst_standing(draw.standing, chain.standing),
        )

    def fit(self, model: Any, data: Data, *, params: Any = None, seed: int | None = None) -> HybridChain:
        """Draw, then run the chain. `model`, `params`: see `probabilistic`; with a `seed` it is **not private**."""
        if seed is not None:
            seeded_key(seed)  # checks it
        draw = self.first.fit(model, data, params=params, seed=seed)
        chain = self.chain.fit(model, data, params=draw.values, seed=None if seed is None else seed + 2**32)
        return HybridChain(
            settings=self._settings(records_of("data", data)),
            guarantees=[self.guarantee()],
            delta=self.delta,
            seeded=seed is not None,
            model=chain.model,
            start=draw.draw,
            draws=chain.draws,
        )

    def _settings(self, records: int) -> Settings:
        z = self.chain.noise_multipliers()
        return Settings(
            kind="hybrid posterior sampling",
            noise_multiplier=(float(np.min(z)), float(np.max(z))),
            clip_norm=self.bound,
            sampling_rate=self.sampling_rate,
            steps=self.chain.steps,
            records=records,
            conversion="exponential mechanism, then privacy loss distribution",
            other={
                "step": 1 / self.chain.constant,
                "share of ε for the first draw": self.share,
                "ε by the papers' formulas": self.epsilon,
            },
        )
