"""Private variational inference: a frozen description → calibrate → fit → Posterior (paper S2; SPEC Part D, L6).

    max_θ ELBO(θ) = Σ_i E_q[log p(x_i|z)] + E_q[log p(z)] + H(q),    q = N(μ, FFᵀ) on the real line

by stochastic gradients: Poisson batches, one public draw of z per step, each record's likelihood gradient clipped and
noised, the rest exact (`elbo`). Accounting, witnesses and checkpoints are those of every `Plan`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import optax

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.learn.elbo import VARIANTS, Elbo, Variant
from bayesdp.learn.guide import KINDS, Guide, Kind
from bayesdp.learn.inference import Inference
from bayesdp.learn.noise_aware import NOISE_AWARE, spread_of_mean
from bayesdp.learn.posterior import Posterior
from bayesdp.learn.probabilistic import Data, Probabilistic, probabilistic, records_of
from bayesdp.learn.repeats import TOGETHER, run_together
from bayesdp.learn.schedule import factors
from bayesdp.learn.suggest import STEPS, longest_step, pace, rate_for_steps, slopes_for
from bayesdp.learn.training import Training
from bayesdp.mechanism.clip_rule import clip_rule

PAPER = "Prior and entropy were clipped and noised with every record, as in paper S2: sound, but noisier than need be."


@lru_cache
def default_optimizer(*, mean: float = 1.0) -> optax.GradientTransformation:
    """SGD for the mean, whose noise the average of the iterates takes away again; Adam for the scale.

    The gradient of the scale is of the order of 1/N and mostly noise: Adam makes its steps as long as told.
    """
    return _apart(mean)


@lru_cache
def paced_optimizer(
    curvature: float, steps: int, averaged: float, most: float = math.inf
) -> optax.GradientTransformation:
    """The same for a model of known curvature: steps of the mean as `suggest.pace` has them."""
    return _apart(pace(curvature, steps, averaged, most))


def _apart(mean: Any) -> optax.GradientTransformation:
    parts = {"mean": optax.sgd(mean), "scale": optax.adam(0.02)}
    return optax.multi_transform(parts, {name: name for name in parts})


@dataclass(frozen=True, kw_only=True)
class VI(Inference[Posterior]):
    """What will be done, all of it public: a `Plan`, and

    Args:
        optimizer: any optax optimiser of {"mean": …, "scale": …}; None: `default_optimizer`.
        guide: "mean-field" or "full-rank" Gaussian.
        variant: what of a record is clipped and noised (`elbo`): "aligned", "plain", "natural", or "paper" for S2's own
            order with prior and entropy inside of the clipping.
        draws: how many z a step averages over.
        initial_scale: standard deviation of the guide at the start; None: 1/√N, which a posterior's is of the order of.
        average: share of the last iterates whose mean is the result; 0 for the last one alone.
        noise_aware: widen the posterior by what the noise did to its mean (`noise_aware`), so that intervals cover.

    The optimiser sees the gradient of -ELBO/N ("natural": the natural gradient of -ELBO). S2's σ is half of
    `noise_multiplier`: its noise is 2cσ. Bad input gets `InputError` naming the field.
    """

    kind: ClassVar[str] = "private variational inference"

    optimizer: optax.GradientTransformation = None
    guide: Kind = "mean-field"
    variant: Variant = "aligned"
    draws: int = 1
    initial_scale: float | None = None
    average: float = 0.5
    noise_aware: bool = False

    def __post_init__(self) -> None:
        if self.optimizer is None:
            object.__setattr__(self, "optimizer", default_optimizer(mean=0.1 if self.variant == "natural" else 1.0))
        super().__post_init__()
        errors.one_of("guide", self.guide, KINDS)
        errors.one_of("variant", self.variant, VARIANTS)
        errors.whole("draws", self.draws, least=1)
        if self.initial_scale is not None:
            errors.number("initial_scale", self.initial_scale, above=0)
        errors.number("average", self.average, least=0, below=1)
        errors.one_of("noise_aware", self.noise_aware, [False, True])

    @classmethod
    def suggest(
        cls,
        model: Any,
        data: Data,
        *,
        epsilon: float,
        delta: float = 1e-5,
        steps: int = STEPS,
        params: Any = None,
        public: Data = None,
        **fields: Any,
    ) -> Self:
        """A calibrated plan whose clip norm, sampling and learning rates come from public quantities (`suggest`, D9).

        Of `data` only the number and the shape of the records is used; they are taken to be standardised, unless
        `public` records of the same form are given. `fields` are further fields of the plan, which go before.
        """
        reading, records = probabilistic(model, data, params), records_of("data", data)
        adjacency = fields.get("adjacency", "add-remove")
        chosen: dict[str, Any] = {"steps": steps, "delta": delta, **fields}
        if "clip_norm" not in chosen or "optimizer" not in chosen:
            slopes = slopes_for(reading, data, public)
            norm = slopes.hardly_clipped if fields.get("noise_aware") else slopes.clip_norm
            chosen.setdefault("clip_norm", norm)
        if "sampling_rate" not in chosen:
            chosen["sampling_rate"] = rate_for_steps(steps, records, reading.dim, epsilon, delta, adjacency)
        plan = cls(**chosen).calibrate(epsilon)
        if "optimizer" in fields or plan.variant == "natural":
            return plan
        most = longest_step(slopes.curvature, plan._noise_of_mean(records))
        paced = paced_optimizer(slopes.curvature, steps, plan.average, most)
        return dataclasses.replace(plan, optimizer=paced if plan.noise_aware else default_optimizer(mean=most))

    def _noise_of_mean(self, records: int) -> Array:
        """The standard deviation of the noise on the mean gradient at every step."""
        norms = clip_rule(self.clip_norm).sensitivity * factors("clip_schedule", self.clip_schedule, self.steps)
        return np.asarray(self.noise * norms / (self.rates * records), np.float64)

    def fit_many(
        self,
        repeats: int,
        model: Any,
        data: Data,
        *,
        params: Any = None,
        audit: Data = None,
        members: int = 0,
        watch: Data = None,
        seed: int | None = None,
    ) -> list[Posterior]:
        """`repeats` independent runs on the same data in one compiled program; arguments as for `fit`.

        With a seed, run i has seed + i. The guarantee of each speaks for that run alone: publishing several costs more.
        """
        count = errors.whole("repeats", repeats, least=1)
        plan = self.one_interval() if self.interval is None else self
        reading, objective, start = plan._read(model, data, params)
        given = {"audit": audit, "members": members, "watch": watch, "seed": seed}
        first = Training(plan, objective, start, data, **given)
        seeds = [None if seed is None else seed + i for i in range(1, count)]
        trainings = [first, *(first.again(one) for one in seeds)]
        run_together(trainings)
        note = (TOGETHER.format(count=count),) if count > 1 else ()
        return [plan._posterior(reading, objective, training, note) for training in trainings]

    def _read(self, model: Any, data: Data, params: Any) -> tuple[Probabilistic, Elbo, Any]:
        reading = probabilistic(model, data, params)
        guide = Guide(self.guide, reading.dim)
        objective = Elbo(
            model=reading,
            guide=guide,
            records=records_of("data", data),
            steps=self.steps,
            draws=self.draws,
            variant=self.variant,
            averaged_from=min(self.steps - 1, round(self.steps * (1 - self.average))),
            noise_aware=self.noise_aware,
        )
        scale = self.initial_scale if self.initial_scale is not None else objective.records**-0.5
        return reading, objective, guide.start(reading.start, scale)

    def _posterior(
        self, reading: Probabilistic, objective: Elbo, training: Training, notes: tuple[str, ...] = ()
    ) -> Posterior:
        mean, spread = objective.guide.moments(np.asarray(training.state.average))
        cov, run = np.diag(spread) if spread.ndim == 1 else spread, training.result()
        if self.variant == "paper":
            notes = (*notes, PAPER)
        guide = Posterior(reading, mean, cov, run, notes)
        if not self.noise_aware or training.done < training.stop_at:  # how the iterates wander shows at the end
            return guide
        wider = cov + spread_of_mean(training.state.walk)
        return Posterior(reading, mean, wider, run, (*notes, NOISE_AWARE), guide)
