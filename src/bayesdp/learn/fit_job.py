"""A job that ends in a private posterior, as plain values that a folder can keep (job.json).

    data + Bayesian model + method + plan + witnesses + seeds   →   fitting.prepare_fit   →   fit, or resume

method "vi" is `bd.VI`: noisy gradients, a Gaussian that may be published under DP. method "posterior-vi" is
`bd.PosteriorVI`: no noise, samples are released and the posterior stays secret.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from bayesdp import errors
from bayesdp.data import Dataset
from bayesdp.errors import InputError
from bayesdp.learn import defaults, files
from bayesdp.learn.assignment import FAILURE, Assignment, path_of
from bayesdp.learn.elbo import VARIANTS, Variant
from bayesdp.learn.family import TASKS, outcome_of
from bayesdp.learn.guide import KINDS, Kind
from bayesdp.learn.model_file import COPY, kept
from bayesdp.learn.noise_aware import BATCHES
from bayesdp.learn.posterior_model import PosteriorModel
from bayesdp.learn.posterior_vi import PosteriorVI
from bayesdp.learn.probabilistic import Probabilistic
from bayesdp.learn.release import Softening
from bayesdp.learn.suggest import STEPS, pace, rate_for_steps, slopes_for
from bayesdp.learn.vi import VI, default_optimizer, paced_optimizer

Method = Literal["vi", "posterior-vi"]
METHODS: tuple[Method, ...] = ("vi", "posterior-vi")

STEPS_OF_SHADOWS = 400
"""Steps of "posterior-vi": every witness is carried through all of them."""

_SHADOWS = 400
"""Witnesses of "posterior-vi" on either side: each costs about as much as a training run."""

_ENOUGH = 150
"""Outsiders who can speak for nine people in ten: there is no DP value to fall back on."""

_NOISY = (
    "variant",
    "noise_aware",
    "noise_multiplier",
    "clip_norm",
    "learning_rate",
    "non_private_too",
    "adjacency",
    "engine",
)
_SAMPLED = ("samples", "radius", "scales")


@dataclass(frozen=True, kw_only=True)
class FitJob(Assignment):
    """What shall be done: an `Assignment`, and

    Args:
        model: a name of `family.OUTCOMES`, or `file.py:function` (`model_file`).
        method, guide: see the module; "mean-field" or "full-rank".
        variant, clip_norm: see `VI`; noise_aware too: None for intervals that know of the noise where steps are enough.
        learning_rate: a constant step of the means; None: paced by `curvature` (`suggest.pace`), or by
            `defaults.step_of_means` where noise asks for less.
        samples, radius, scales: see `PosteriorVI`; widen is calibrated to `epsilon`.
        group: the column of categories that are the groups of "hierarchical". components: of "mixture".
        non_private_too: show beside it the posterior without clipping and noise, which is **not private**.

    Bad input gets `InputError` naming the field.
    """

    FORMAT: ClassVar[str] = "bayesdp/fit-job"

    model: str
    method: Method = "vi"
    guide: Kind = "mean-field"
    variant: Variant = "aligned"
    noise_aware: bool | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    curvature: float | None = None
    samples: int | None = None
    radius: float | None = None
    scales: tuple[float, float] | None = None
    widen: float = 0.0
    group: str | None = None
    components: int | None = None
    non_private_too: bool = False

    def __post_init__(self) -> None:
        outcome_of(self.model)
        errors.one_of("method", self.method, METHODS)
        errors.one_of("guide", self.guide, KINDS)
        errors.one_of("variant", self.variant, VARIANTS)
        super().__post_init__()
        if isinstance(self.watch, str):
            raise errors.refuse("watch", self.watch, "to be numbers of records for a posterior")
        for name, owner in (("group", "hierarchical"), ("components", "mixture")):
            if getattr(self, name) is not None and self.model != owner:
                raise errors.refuse(name, getattr(self, name), f"to be left out but for model={owner!r}")
        for name in ("learning_rate", "clip_norm", "sampling_rate"):
            if getattr(self, name) is not None:
                errors.number(name, getattr(self, name), above=0)
        if self.components is not None:
            object.__setattr__(self, "components", errors.whole("components", self.components, least=1))
        if self.samples is not None:
            object.__setattr__(self, "samples", errors.whole("samples", self.samples, least=1))
        Softening(radius=self.radius, scales=self.scales)  # says what is wrong with them
        self._check_method()

    def _check_method(self) -> None:
        noisy = self.method == "vi"
        unset = {field.name: field.default for field in dataclasses.fields(self)}
        for name in _SAMPLED if noisy else _NOISY:
            if getattr(self, name) != unset[name]:
                why = _SECRET if name == "non_private_too" else ""
                raise errors.refuse(name, getattr(self, name), f"to be left out with method={self.method!r}", why)
        if noisy and self.epsilon is None and self.noise_multiplier is None:
            raise InputError("Expected epsilon (to calibrate the noise) or noise_multiplier, got neither.")
        if not noisy and self.epsilon is not None and (self.radius is None or self.scales is None):
            raise errors.refuse(
                "epsilon",
                self.epsilon,
                "to come with radius and scales for method='posterior-vi'",
                "Without them one record can move the posterior by any amount, and no DP ε can be kept.",
            )

    def load(self) -> Dataset:
        """The records, the target as the model wants it. Bad input: see `data.load`."""
        outcome = outcome_of(self.model)
        if self.data.named or outcome == "any":
            return self.data.load()
        if outcome == "none":
            return dataclasses.replace(self.data, unlabelled=True).load()
        task = TASKS[outcome]
        if self.data.task not in (None, task):
            raise errors.refuse("task", self.data.task, f"to be left out or {task!r} for model={self.model!r}")
        scale = "none" if outcome == "count" else self.data.target_scale
        return dataclasses.replace(self.data, task=task, target_scale=scale).load()

    def settled(self, data: Dataset) -> Self:
        """The job with everything chosen that was left open; `data` is public in its sizes only.

        Bad input: a target or a model that does not fit, more records asked for than there are, a δ that is not below
        1/N, an ε that no noise reaches.
        """
        secret = self.method == "posterior-vi"
        held = defaults.audit(len(data.x))
        if secret:
            held = min(_SHADOWS, max(held, min(_ENOUGH, len(data.x) // 3)))
        audit, records = self.held_out(data, held)
        members = min(defaults.members(records), _SHADOWS if secret else records)
        chosen = dataclasses.replace(
            self,
            audit=audit,
            members=members if self.members is None else self.members,
            delta=self.checked_delta(records),
            sampling_rate=self.pace(records),
            batch_size=None,
        )
        described = self.described(data)
        reading = described.read_model(data.x, data.y)
        if secret:
            return chosen._settled_secret(records, reading)
        return chosen._settled_noisy(records, reading, described.family.arguments(data.x, data.y))

    def _settled_secret(self, records: int, reading: Probabilistic) -> Self:
        self.check_share("Use more of them: nothing else speaks for the rest.")
        rate = self.sampling_rate or defaults.sampling_rate(records)
        steps = self.length(rate, STEPS_OF_SHADOWS)
        chosen = dataclasses.replace(self, samples=self.samples or 10, sampling_rate=rate, steps=steps, epochs=None)
        if self.epsilon is None:
            return chosen
        return dataclasses.replace(chosen, widen=chosen.secret_plan().calibrate(self.epsilon, dim=reading.dim).widen)

    def _settled_noisy(self, records: int, reading: Probabilistic, data: Any) -> Self:
        delta, rate = float(self.delta or 0), self.sampling_rate
        if rate is None and self.epsilon is not None:
            rate = rate_for_steps(self.length(1.0, STEPS), records, reading.dim, self.epsilon, delta, self.adjacency)
        rate = rate or defaults.sampling_rate(records)
        steps = self.length(rate, STEPS)
        enough = math.ceil(2 * BATCHES / VI.average)
        if self.noise_aware and steps < enough:
            raise errors.refuse("steps", steps, f"to be at least {enough} with noise_aware=True")
        aware = steps >= enough if self.noise_aware is None else self.noise_aware
        slopes = slopes_for(reading, data)
        clip = self.clip_norm or float(f"{slopes.hardly_clipped if aware else slopes.clip_norm:.3g}")
        curvature = float(f"{slopes.curvature:.3g}")
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
        return float(pace(self.curvature or 1.0, steps, VI.average)(steps))

    def described(self, data: Dataset) -> PosteriorModel:
        """The model for these records. Bad input: a target that it is not for."""
        components = 2 if self.model == "mixture" and self.components is None else self.components
        return PosteriorModel.fitting(self.model, data, group=self.group, components=components)

    def plan(self) -> VI:
        """The plan of a settled job by "vi"."""
        names = ("steps", "sampling_rate", "clip_norm", "noise_multiplier", "delta", "coverage", "adjacency", "engine")
        given: dict[str, Any] = {name: getattr(self, name) for name in (*names, "guide", "variant")}
        if self.learning_rate is not None:
            given["optimizer"] = default_optimizer(mean=self.learning_rate)
        elif self.curvature is not None and self.variant != "natural":  # whose steps are in a unit of their own
            given["optimizer"] = paced_optimizer(self.curvature, given["steps"], VI.average)
        return VI(failure=FAILURE, noise_aware=bool(self.noise_aware), **given)

    @property
    def step_in_words(self) -> str:
        """How long the steps of the means are."""
        return "paced steps" if self.learning_rate is None else f"steps of {self.learning_rate:g}"

    def secret_plan(self) -> PosteriorVI:
        """The plan of a settled job by "posterior-vi"."""
        names = ("steps", "sampling_rate", "samples", "delta", "coverage", "guide", "radius", "scales", "widen")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        return PosteriorVI(failure=FAILURE, **given)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """The job of a run's folder, its model as the folder keeps it. Bad input: see `Assignment.read`."""
        values = files.read_tagged(path_of(folder), cls.FORMAT, cls.VERSION)
        if (Path(folder) / COPY).is_file():
            values["model"] = kept(str(values.get("model")), Path(folder))
        return cls.from_dict(values)


_SECRET = "The posterior that samples come from has no noise: it is the one that stays secret."
