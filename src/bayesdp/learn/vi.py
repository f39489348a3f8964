"""Private variational inference: a frozen description → calibrate → fit → Posterior (paper S2; SPEC Part D, L6).

    max_θ ELBO(θ) = Σ_i E_q[log p(x_i|z)] + E_q[log p(z)] + H(q),    q = N(μ, FFᵀ) on the real line

by stochastic gradients: Poisson batches, one public draw of z per step, each record's likelihood gradient clipped and
noised, the rest exact (`elbo`). Accounting, witnesses and checkpoints are those of every `Plan`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import optax

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.learn.elbo import VARIANTS, Elbo, Variant
from bayesdp.learn.guide import KINDS, Guide, Kind
from bayesdp.learn.noise_aware import NOISE_AWARE, spread_of_mean
from bayesdp.learn.plan import Plan
from bayesdp.learn.posterior import Posterior
from bayesdp.learn.probabilistic import Data, Probabilistic, probabilistic, records_of
from bayesdp.learn.repeats import TOGETHER, run_together
from bayesdp.learn.schedule import factors
from bayesdp.learn.suggest import STEPS, longest_step, pace, rate_for_steps, slopes_for
from bayesdp.learn.training import Training
from bayesdp.mechanism.clip_rule import clip_rule

Evaluate = Callable[[Posterior], dict[str, float]]
Progress = Callable[[Posterior], None]

MEMBERS = 2000
"""Training records drawn as witnesses when there is an audit set and nothing else is said."""


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
class VI(Plan):
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

    def fit(
        self,
        model: Any,
        data: Data,
        *,
        params: Any = None,
        audit: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
        folder: str | Path | None = None,
    ) -> Posterior:
        """The private posterior of `model` given `data`, and what it cost.

        Args:
            model: a NumPyro model with a data plate, or `(log_prior(params), log_likelihood(params, record))`.
            data: arrays with the records along the first axis, given to the model as `*data` (a tuple), `**data` (a
                dict) or `data` (an array).
            params: for a pair of functions, the form of the parameters; else optional starting values by site.
            audit: records of the same distribution that are never trained on: outsiders (H5).
            members: how many training records are drawn before the run as witnesses; None: 2000 beside an audit set,
                else none, because every witness costs a gradient in every step.
            watch: records, members or not, whose own guarantee is wanted.
            seed: makes the run reproducible and **not private**; the noise comes from the operating system otherwise.
            evaluate: `evaluate(posterior)` → numbers to report at every look. Keep it to public data.
            progress: called with the posterior so far at every look.
            folder: keep a checkpoint there, to `resume` from. It holds the key of the noise until training is done.

        Returns a `Posterior`: `sample`, `mean`, `cov`, `predict`, `guarantees`, `report`, `save`.
        """
        quiet = not members and all(one is None for one in (audit, watch, evaluate, progress, folder))
        plan = self.one_interval() if quiet else self
        reading, objective, start = plan._read(model, data, params)
        count = members if members is not None else 0 if audit is None else MEMBERS
        training = Training(plan, objective, start, data, audit=audit, members=count, watch=watch, seed=seed)
        return plan._run(reading, objective, training, evaluate, progress, folder)

    def resume(
        self,
        folder: str | Path,
        model: Any,
        data: Data,
        *,
        params: Any = None,
        audit: Data = None,
        watch: Data = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
        finished: bool = False,
    ) -> Posterior:
        """Go on from the checkpoint in `folder`, with the same plan, model, data, audit and watch as before.

        `finished`: also where training has ended and the result alone is wanted. Guarantee: the result is that of an
        uninterrupted run, bit for bit on the same machine.
        """
        reading, objective, start = self._read(model, data, params)
        training = Training.resumed(self, folder, objective, start, data, audit=audit, watch=watch, finished=finished)
        return self._run(reading, objective, training, evaluate, progress, folder)

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

    def _run(
        self,
        reading: Probabilistic,
        objective: Elbo,
        training: Training,
        evaluate: Evaluate | None,
        progress: Progress | None,
        folder: str | Path | None,
    ) -> Posterior:
        def now() -> Posterior:
            return self._posterior(reading, objective, training)

        training.run(
            evaluate=None if evaluate is None else lambda _: evaluate(now()),
            progress=None if progress is None else lambda _: progress(now()),
            folder=folder,
        )
        return now()

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
