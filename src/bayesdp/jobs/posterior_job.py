"""A job that ends in a private posterior, as plain values that a folder can keep (job.json).

    data + Bayesian model + method + plan + witnesses + seeds   →   prepared_posterior.prepare   →   fit, or resume

method "newton" is `bd.Newton`: a few noisy sums, which the posterior reads as data; "vi" is `bd.VI`: noisy gradients of
an ELBO. Both give a Gaussian that may be published under DP. "posterior-vi" is `bd.PosteriorVI`: no noise, samples are
released and the posterior stays secret.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from bayesdp import errors, storage
from bayesdp.accountant.gaussian_release import Softening
from bayesdp.data import Dataset
from bayesdp.jobs import defaults, people
from bayesdp.jobs.base import FAILURE, POSTERIOR_FORMAT, Job, check_size
from bayesdp.jobs.plans import methods
from bayesdp.jobs.plans.methods import METHODS, PACED, Method
from bayesdp.jobs.saved.posterior import SavedPosterior
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.models.people import of_people
from bayesdp.learn.models.table_models import TASKS, outcome_of
from bayesdp.learn.models.user_file import is_file, kept
from bayesdp.learn.posterior_sampling.posterior_vi import MOST_SAMPLES, PosteriorVI
from bayesdp.learn.records import Data
from bayesdp.learn.second_order.newton import Newton
from bayesdp.learn.second_order.shares import STEPS as NEWTON_STEPS
from bayesdp.learn.vi.elbo import VARIANTS, Variant
from bayesdp.learn.vi.guide import KINDS, Kind
from bayesdp.learn.vi.noise_aware import BATCHES
from bayesdp.learn.vi.suggest import STEPS, gradient_sizes, pace, rate_for_steps
from bayesdp.learn.vi.vi import VI, default_optimizer, paced_optimizer

SAMPLES = 10
"""Samples that "posterior-vi" releases where nothing is said."""

STEPS_OF_NEIGHBOURS = 400
"""Steps of "posterior-vi": every witness has a coupled neighbouring run through all of them."""

_NEIGHBOURS = 400
"""Witnesses of "posterior-vi" on either side: each costs about as much as a training run."""

_ENOUGH = 175
"""Outsiders of whom the coins leave 138, who can speak for nine people in ten: there is no DP value to fall back on."""


@dataclass(frozen=True, kw_only=True)
class PosteriorJob(Job):
    """What shall be done: a `Job`, and

    Args:
        model: a name of `family.OUTCOMES`, or `file.py:function` (`model_file`).
        method: see the module. None: "newton" for yes/no outcomes and counts with at most 150 parameters; else, or
            where steps or a guide are given, "vi".
        guide: of "vi", "mean-field" or "full-rank".
        variant, clip_norm: see `VI`; noise_aware too: None for intervals that know of the noise where steps are enough.
        learning_rate: a constant step of the means; None: paced by `curvature` (`suggest.pace`), or by
            `defaults.step_of_means` where noise asks for less.
        samples, radius, scales: see `PosteriorVI`; extra_std is calibrated to `epsilon`.
        group: the column of categories that are the groups of "hierarchical". components: of "mixture".
        non_private_too: show beside it the posterior without clipping and noise, which is **not private**.

    Bad input gets `InputError` naming the field.
    """

    FORMAT: ClassVar[str] = POSTERIOR_FORMAT

    model: str
    method: Method | None = None
    guide: Kind = "mean-field"
    variant: Variant = "aligned"
    noise_aware: bool | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    curvature: float | None = None
    samples: int | None = None
    radius: float | None = None
    scales: tuple[float, float] | None = None
    extra_std: float = 0.0
    group: str | None = None
    components: int | None = None
    non_private_too: bool = False

    def __post_init__(self) -> None:
        outcome_of(self.model)
        if self.method is not None:
            errors.one_of("method", self.method, METHODS)
        errors.one_of("guide", self.guide, KINDS)
        errors.one_of("variant", self.variant, VARIANTS)
        super().__post_init__()
        if isinstance(self.watch, str):
            raise errors.refuse("watch", self.watch, "to be numbers of records for a posterior")
        for name, owner in (("group", "hierarchical"), ("components", "mixture")):
            if getattr(self, name) is not None and self.model != owner:
                raise errors.refuse(
                    name, getattr(self, name), f"to be left out but for {errors.Argument('model', owner)}"
                )
        for name in ("learning_rate", "clip_norm", "sampling_rate"):
            if getattr(self, name) is not None:
                errors.number(name, getattr(self, name), above=0)
        check_size("clip_norm", self.clip_norm)
        if self.components is not None:
            object.__setattr__(self, "components", errors.whole("components", self.components, least=1))
        if self.samples is not None:
            samples = errors.whole("samples", self.samples, least=1, most=MOST_SAMPLES)
            object.__setattr__(self, "samples", samples)
        Softening(radius=self.radius, scales=self.scales)  # says what is wrong with them
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        methods.check(self.method, values, {field.name: field.default for field in dataclasses.fields(self)})

    def load(self) -> Dataset:
        """The records, the target as the model wants it. Bad input: see `data.load`."""
        outcome = outcome_of(self.model)
        if self.data.named or outcome == "any":
            return self.data.load(self.draw, self.payment)
        if outcome == "none":
            return dataclasses.replace(self.data, unlabelled=True).load(self.draw, self.payment)
        task = TASKS[outcome]
        if self.data.task not in (None, task):
            raise errors.refuse(
                "task", self.data.task, f"to be left out or {task!r} for {errors.Argument('model', self.model)}"
            )
        scale = "none" if outcome == "count" else self.data.target_scale
        return dataclasses.replace(self.data, task=task, target_scale=scale).load(self.draw, self.payment)

    def settled(self, data: Dataset) -> Self:
        """The job with everything chosen that was left open; `data` is public in its sizes only.

        Bad input: a target or a model that does not fit, more records asked for than there are, a δ that is not below
        1/N, an ε that no noise reaches.
        """
        secret = self.method == "posterior-vi"
        if secret and data.paid is not None:
            raise errors.unmet(
                "scale",
                self.data.scale,
                f"{errors.named('bounds')} and {errors.named('levels')} of all columns, or another "
                f"{errors.named('scale')}, for {errors.Argument('method', self.method)}",
                f"{errors.Argument('scale', self.data.scale)}",
                "Nothing pays for noisy counts where no noise is added.",
            )
        pool = self.pool(data)
        held = defaults.holdout(pool)
        if secret:
            held = min(_NEIGHBOURS, max(held, min(_ENOUGH, 2 * pool // 5)))
        holdout, records = self.held_out(data, held)
        if self.components is not None and self.components > records:
            raise errors.refuse("components", self.components, f"to be at most {records}, one for each record")
        members = min(defaults.members(records), _NEIGHBOURS if secret else records)
        chosen = dataclasses.replace(
            self,
            holdout=holdout,
            expected_records=self.expected(records),
            members=members if self.members is None else self.members,
            delta=self.checked_delta(records),
            paid=data.paid,
            sampling_rate=self.pace(records),
            batch_size=None,
        )
        described = self.described(data)
        reading = described.read_model(data.x, data.y)
        if data.people is not None:
            reading = of_people(reading)
        if secret:
            return chosen._settled_secret(records, reading)
        paced = any(
            getattr(self, field.name) != field.default for field in dataclasses.fields(self) if field.name in PACED
        )
        chosen = dataclasses.replace(chosen, method=self.method or methods.suited(self.model, reading, paced=paced))
        if chosen.method == "newton":
            return chosen._settled_newton()
        arguments = people.mapped(people.trained_on(data), lambda rows: described.family.arguments(*rows))
        return chosen._settled_noisy(records, reading, arguments)

    def _settled_newton(self) -> Self:
        chosen = dataclasses.replace(self, sampling_rate=1.0, steps=self.steps or NEWTON_STEPS)
        if self.noise_multiplier is not None or self.epsilon is None:
            return chosen
        return dataclasses.replace(chosen, noise_multiplier=chosen.plan().calibrate(self.epsilon).noise_multiplier)

    def _settled_secret(self, records: int, reading: Probabilistic) -> Self:
        self.check_share(self.holdout or 0)
        rate = self.sampling_rate or defaults.sampling_rate(records)
        steps = self.length(rate, STEPS_OF_NEIGHBOURS)
        chosen = dataclasses.replace(
            self, samples=self.samples or SAMPLES, sampling_rate=rate, steps=steps, epochs=None
        )
        if self.epsilon is None:
            return chosen
        return dataclasses.replace(
            chosen, extra_std=chosen.secret_plan().calibrate(self.epsilon, dim=reading.dim).extra_std
        )

    def _settled_noisy(self, records: int, reading: Probabilistic, data: Data) -> Self:
        delta, rate = float(self.delta or 0), self.sampling_rate
        if rate is None and self.epsilon is not None:
            rate = rate_for_steps(self.length(1.0, STEPS), records, reading.dim, self.epsilon, delta, self.adjacency)
        rate = rate or defaults.sampling_rate(records)
        steps = self.length(rate, STEPS)
        enough = math.ceil(2 * BATCHES / VI.averaged_fraction)
        if self.noise_aware and steps < enough:
            raise errors.refuse("steps", steps, f"to be at least {enough} with {errors.Argument('noise_aware', True)}")
        aware = steps >= enough if self.noise_aware is None else self.noise_aware
        sizes = gradient_sizes(reading, data)
        clip = self.clip_norm or float(f"{sizes.hardly_clipped if aware else sizes.clip_norm:.3g}")
        curvature = float(f"{sizes.curvature:.3g}")
        chosen = dataclasses.replace(
            self, sampling_rate=rate, steps=steps, epochs=None, noise_aware=aware, clip_norm=clip, curvature=curvature
        )
        multiplier = self.noise_multiplier
        if multiplier is None and self.epsilon is not None:
            multiplier = chosen.plan().calibrate(self.epsilon).noise_multiplier
        step = self.learning_rate
        if step is None and self.variant != "natural":
            noisy = dataclasses.replace(chosen, noise_multiplier=multiplier)
            step = defaults.step_of_means(noisy.wander(records), noisy.paced)
        return dataclasses.replace(chosen, noise_multiplier=multiplier, learning_rate=step)

    def wander(self, records: int) -> float:
        """How far the noise of a settled job carries a mean whose steps are 1: z C √T/(q N)."""
        noise = (self.noise_multiplier or 0.0) * (self.clip_norm or 0.0)
        return noise * math.sqrt(self.steps or 0) / ((self.sampling_rate or 1.0) * records)

    @property
    def paced(self) -> float:
        """The last of the paced steps of a settled job."""
        steps = self.steps or 1
        return float(pace(self.curvature or 1.0, steps, VI.averaged_fraction)(steps))

    def described(self, data: Dataset) -> SavedPosterior:
        """The model for these records. Bad input: a target that it is not for."""
        components = 2 if self.model == "mixture" and self.components is None else self.components
        return SavedPosterior.fitting(self.model, data, group=self.group, components=components)

    def plan(self) -> VI | Newton:
        """The plan of a settled job by "vi" or "newton"."""
        steps, rate, delta = self.chosen
        if self.method == "newton":
            return Newton(steps=steps, **self._common(delta))
        optimizer = None
        if self.learning_rate is not None:
            optimizer = default_optimizer(mean=self.learning_rate)
        elif self.curvature is not None and self.variant != "natural":  # whose steps are in a unit of their own
            optimizer = paced_optimizer(self.curvature, steps, VI.averaged_fraction)
        return VI(
            sampling_rate=rate,
            steps=steps,
            clip_norm=self.clip_norm,
            optimizer=optimizer,
            guide=self.guide,
            variant=self.variant,
            noise_aware=bool(self.noise_aware),
            **self._common(delta),
        )

    def _common(self, delta: float) -> dict[str, Any]:
        """What the plans of both noisy methods are told."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "delta": delta,
            "prelude": self.prelude[0],
            "prelude_delta": self.prelude[1],
            "noise_kind": self.noise_kind,
            "noise_delta": self.noise_delta,
            "engine": self.engine,
            "adjacency": self.adjacency,
            "coverage": self.coverage,
            "failure": FAILURE,
            "num_records": self.expected_records,
            "unit": self.unit,
        }

    @property
    def step_in_words(self) -> str:
        """How long the steps of the means are."""
        return "paced steps" if self.learning_rate is None else f"steps of {self.learning_rate:g}"

    def secret_plan(self) -> PosteriorVI:
        """The plan of a settled job by "posterior-vi"."""
        steps, rate, delta = self.chosen
        return PosteriorVI(
            sampling_rate=rate,
            steps=steps,
            samples=self.samples or SAMPLES,
            guide=self.guide,
            extra_std=self.extra_std,
            radius=self.radius,
            scales=self.scales,
            delta=delta,
            coverage=self.coverage,
            failure=FAILURE,
            num_records=self.expected_records,
            unit=self.unit,
        )

    @property
    def without_dp(self) -> str:
        """See `Job.without_dp`."""
        return "" if self.method != "posterior-vi" else "Use more of them: nothing else speaks for the rest."

    @classmethod
    def read(cls, folder: RunFolder, *, trust_code: bool = True) -> Self:
        """The job of a run's folder, its model as the folder keeps it. Bad input: see `Job.read`, `kept`.

        Reading runs nothing; whoever goes on to the model asks for `trust_code`.
        """
        values = storage.read_tagged(folder.job_file(), cls.FORMAT, cls.VERSION, checked=True)
        if is_file(str(values.get("model"))):
            values["model"] = kept(str(values["model"]), folder.model_code, trusted=trust_code)
        return cls.from_dict(values)
