"""Private variational inference: a frozen description → calibrate → fit → Posterior (paper S2, improved: L6).

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
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.schedule import factors
from bayesdp.learn.loop.training import Outcome, Training
from bayesdp.learn.models.reader import Model, probabilistic
from bayesdp.learn.posterior.gaussian import Posterior
from bayesdp.learn.posterior.inference import Inference, Reading
from bayesdp.learn.record_count import count_of
from bayesdp.learn.records import Data
from bayesdp.learn.vi.elbo import VARIANTS, Elbo, Variant
from bayesdp.learn.vi.guide import KINDS, Guide, Kind
from bayesdp.learn.vi.noise_aware import NOISE_AWARE, spread_of_mean
from bayesdp.learn.vi.suggest import STEPS, gradient_sizes, longest_step, pace, rate_for_steps
from bayesdp.mechanism.clipping import clip_rule

TOGETHER = "{count} runs were made on the same data. This promise is for one of them; publishing more costs more."
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


def _apart(mean: float | optax.Schedule) -> optax.GradientTransformation:
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
        num_particles: how many z a step averages over.
        initial_scale: standard deviation of the guide at the start; None: 1/√N, which a posterior's is of the order of.
        averaged_fraction: share of the last iterates whose mean is the result; 0 for the last one alone.
        noise_aware: widen the posterior by what the noise did to its mean (`noise_aware`), so that intervals cover.

    The optimiser sees the gradient of -ELBO/N ("natural": the natural gradient of -ELBO). S2's σ is half of
    `noise_multiplier`: its noise is 2cσ. Bad input gets `InputError` naming the field.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(1.0, 1.0, 400).astype(np.float32)
        >>> model = bd.NormalPrior(np.zeros(1), 4.0), lambda mean, record: -((record - mean[0]) ** 2) / 2
        >>> posterior = bd.VI(sampling_rate=0.5, steps=30, delta=1e-4).calibrate(epsilon=2.0).fit(model, x)
        >>> posterior.mean.shape, posterior.guarantees[0].epsilon <= 2.0
        ((1,), True)
    """

    kind: ClassVar[str] = "private variational inference"

    optimizer: optax.GradientTransformation = None
    guide: Kind = "mean-field"
    variant: Variant = "aligned"
    num_particles: int = 1
    initial_scale: float | None = None
    averaged_fraction: float = 0.5
    noise_aware: bool = False

    def __post_init__(self) -> None:
        if self.optimizer is None:
            object.__setattr__(self, "optimizer", default_optimizer(mean=0.1 if self.variant == "natural" else 1.0))
        super().__post_init__()
        errors.one_of("guide", self.guide, KINDS)
        errors.one_of("variant", self.variant, VARIANTS)
        errors.whole("num_particles", self.num_particles, least=1)
        if self.initial_scale is not None:
            errors.number("initial_scale", self.initial_scale, above=0)
        errors.number("averaged_fraction", self.averaged_fraction, least=0, below=1)
        errors.one_of("noise_aware", self.noise_aware, [False, True])

    @classmethod
    def suggest(
        cls,
        model: Model,
        data: Data,
        *,
        epsilon: float,
        delta: float = 1e-5,
        steps: int = STEPS,
        params: Params = None,
        public: Data = None,
        **fields: Any,
    ) -> Self:
        """A calibrated plan whose clip norm, sampling and learning rates come from public quantities (D9, `suggest`).

        Of `data` only the shape of the records is used, and their number where `num_records` is not given; they are
        taken to be standardised, unless `public` records of the same form are given. `fields` are further fields of the
        plan, which go before.
        """
        reading, records = probabilistic(model, data, params), count_of(fields.get("num_records"), data)
        adjacency = fields.get("adjacency", "add-remove")
        chosen: dict[str, Any] = {"steps": steps, "delta": delta, **fields}
        if "clip_norm" not in chosen or "optimizer" not in chosen:
            sizes = gradient_sizes(reading, data, public)
            norm = sizes.hardly_clipped if fields.get("noise_aware") else sizes.clip_norm
            chosen.setdefault("clip_norm", norm)
        if "sampling_rate" not in chosen:
            chosen["sampling_rate"] = rate_for_steps(steps, records, reading.dim, epsilon, delta, adjacency)
        plan = cls(**chosen).calibrate(epsilon)
        if "optimizer" in fields or plan.variant == "natural":
            return plan
        most = longest_step(sizes.curvature, plan._noise_of_mean(records))
        paced = paced_optimizer(sizes.curvature, steps, plan.averaged_fraction, most)
        return dataclasses.replace(plan, optimizer=paced if plan.noise_aware else default_optimizer(mean=most))

    def _noise_of_mean(self, records: int) -> Array:
        """The standard deviation of the noise on the mean gradient at every step."""
        norms = clip_rule(self.clip_norm).sensitivity * factors("clip_schedule", self.clip_schedule, self.steps)
        return np.asarray(self.noise * norms / (self.rates * records), np.float64)

    def fit_many(
        self,
        repeats: int,
        model: Model,
        data: Data,
        *,
        params: Params = None,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
    ) -> list[Posterior]:
        """`repeats` independent runs on the same data in one compiled program; arguments as for `fit`.

        With a seed, run i has seed + i. The guarantee of each speaks for that run alone: publishing several costs more.
        """
        count = errors.whole("repeats", repeats, least=1)
        plan = self.one_interval()
        reading = plan.about(data)._read(model, data, params)
        training = Training.begin(
            reading.course, data, holdout=holdout, members=members, watch=watch, seed=seed, repeats=count
        )
        training.run()
        note = (TOGETHER.format(count=count),) if count > 1 else ()
        return [plan._posterior(reading, training.outcome(i), note) for i in range(count)]

    def _read(self, model: Model, data: Data, params: Params) -> Reading:
        known, records = probabilistic(model, data, params), count_of(self.num_records, data)
        guide = Guide(self.guide, known.dim)
        objective = Elbo(
            model=known,
            guide=guide,
            optimizer=self.optimizer,
            records=records,
            steps=self.steps,
            num_particles=self.num_particles,
            variant=self.variant,
            averaged_from=min(self.steps - 1, round(self.steps * (1 - self.averaged_fraction))),
            noise_aware=self.noise_aware,
        )
        scale = self.initial_scale if self.initial_scale is not None else records**-0.5
        return Reading(known, Course(self, objective, guide.start(known.start, scale)))

    def _posterior(self, reading: Reading, outcome: Outcome, notes: tuple[str, ...] = ()) -> Posterior:
        model, state, run = reading.model, outcome.state, outcome.run
        mean, spread = Guide(self.guide, model.dim).moments(np.asarray(state.average))
        cov = np.diag(spread) if spread.ndim == 1 else spread
        if self.variant == "paper":
            notes = (*notes, PAPER)
        guide = Posterior(model, mean, cov, run, notes)
        if not self.noise_aware or not outcome.ended:  # how the iterates wander shows at the end
            return guide
        wider = cov + spread_of_mean(state.walk)
        return Posterior(model, mean, wider, run, (*notes, NOISE_AWARE), guide)
