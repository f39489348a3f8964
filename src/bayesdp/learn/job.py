"""A training job: everything that private SGD needs to know, as plain values that a folder can keep (job.json).

    data + model + plan + optimiser + witnesses + seeds   →   prepare   →   fit, or resume what was interrupted

What is left out is chosen in `defaults` from public quantities: how many records there are, and of which shape.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import optax

from bayesdp import errors
from bayesdp.data import Dataset
from bayesdp.errors import InputError
from bayesdp.learn import defaults
from bayesdp.learn.assignment import FAILURE, NAME, Assignment
from bayesdp.learn.filter import Filter
from bayesdp.learn.models import MODELS
from bayesdp.learn.sgd import SGD
from bayesdp.learn.source import Source

OPTIMIZERS = ("adam", "sgd")
SCHEDULES = ("constant", "typical")

__all__ = ["NAME", "OPTIMIZERS", "SCHEDULES", "Job", "Source"]


@dataclass(frozen=True, kw_only=True)
class Job(Assignment):
    """What shall be done: an `Assignment`, and

    Args:
        model: a name of `models.MODELS`.
        noise_std, epsilon_budget: see `SGD`.
        clip_norm: a number, or "none" as in S1, with `noise_std`.
        noise_schedule: "constant" or "typical" (H13).
        optimizer, learning_rate, momentum: "adam" or "sgd", as in optax.
        filter_epsilon: the DP ε that every record's own steps may add up to (`Filter`).
        refresh: see `SGD`.
        keep_iterates: keep the parameters before every so-many-th step in the folder.

    Bad input gets `InputError` naming the field.
    """

    FORMAT: ClassVar[str] = "bayesdp/job"

    model: str | None = None
    noise_std: float | None = None
    clip_norm: float | Literal["none"] | None = None
    noise_schedule: str = "constant"
    optimizer: str = "adam"
    learning_rate: float | None = None
    momentum: float | None = None
    epsilon_budget: float | None = None
    filter_epsilon: float | None = None
    refresh: int | None = None
    keep_iterates: int | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            errors.one_of("model", self.model, MODELS)
        errors.one_of("optimizer", self.optimizer, OPTIMIZERS)
        errors.one_of("noise_schedule", self.noise_schedule, SCHEDULES)
        if self.momentum is not None:
            errors.number("momentum", self.momentum, least=0, below=1)
            if self.optimizer != "sgd":
                raise errors.refuse("momentum", self.momentum, "to be left out for optimizer='adam'")
        for name in ("refresh", "keep_iterates"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, errors.whole(name, getattr(self, name), least=1))
        if self.refresh is not None and self.keep_iterates is not None and self.keep_iterates % self.refresh:
            raise errors.refuse("keep_iterates", self.keep_iterates, f"to be a multiple of refresh={self.refresh}")
        if self.learning_rate is not None:
            errors.number("learning_rate", self.learning_rate, above=0)
        super().__post_init__()
        self._check_noise()

    def _check_noise(self) -> None:
        if self.clip_norm == "none":
            if self.noise_std is None:
                raise InputError("Expected noise_std to be given with clip_norm='none', got None.")
            for name in ("epsilon", "noise_multiplier"):
                if getattr(self, name) is not None:
                    raise errors.refuse(
                        name,
                        getattr(self, name),
                        "to be left out with clip_norm='none'",
                        "Where nothing is clipped no noise gives a DP ε.",
                    )
            return
        if self.noise_std is not None:
            raise errors.refuse("noise_std", self.noise_std, "to be left out with a clip norm", "Use noise_multiplier.")
        if self.epsilon is None and self.noise_multiplier is None:
            raise InputError("Expected epsilon (to calibrate the noise) or noise_multiplier, got neither.")

    def settled(self, data: Dataset) -> Self:
        """The job with everything chosen that was left open; `data` is public in its sizes only.

        Bad input: more records asked for than there are, a δ that is not below 1/N, an ε that no noise reaches.
        """
        audit, records = self.held_out(data, defaults.audit(len(data.x)))
        rate = self.pace(records)
        rate = defaults.sampling_rate(records) if rate is None else rate
        model = self.model or defaults.model(data.x.shape[1:], self.data.features)
        chosen = dataclasses.replace(
            self,
            model=model,
            audit=audit,
            members=defaults.members(records) if self.members is None else self.members,
            sampling_rate=rate,
            batch_size=None,
            steps=self.length(rate, defaults.steps(records, model)),
            epochs=None,
            clip_norm=defaults.clip_norm(records, self.data.features) if self.clip_norm is None else self.clip_norm,
            learning_rate=self.learning_rate or defaults.learning_rate(model, self.optimizer, data.x[0].size),
            momentum=defaults.MOMENTUM if self.momentum is None and self.optimizer == "sgd" else self.momentum,
            delta=self.checked_delta(records),
        )
        if chosen.clip_norm == "none":
            chosen.check_share("Use more of them, or a clip norm: then the DP value speaks for the rest.")
        if chosen.noise_multiplier is None and chosen.epsilon is not None:
            return dataclasses.replace(
                chosen, noise_multiplier=chosen.plan().calibrate(chosen.epsilon).noise_multiplier
            )
        return chosen

    def plan(self) -> SGD:
        """The plan of a settled job."""
        settled: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "sampling_rate",
                "steps",
                "noise_multiplier",
                "noise_std",
                "delta",
                "coverage",
                "adjacency",
                "engine",
                "epsilon_budget",
                "refresh",
            )
        }
        return SGD(
            clip_norm=None if self.clip_norm == "none" else self.clip_norm,
            failure=FAILURE,
            filter=None if self.filter_epsilon is None else Filter(self.filter_epsilon),
            noise_schedule=1.0 if self.noise_schedule == "constant" else self.noise_schedule,
            optimizer=optax.adam(self.learning_rate)
            if self.optimizer == "adam"
            else optax.sgd(self.learning_rate, self.momentum),
            **settled,
        )

    @property
    def optimizer_in_words(self) -> str:
        """For the report."""
        rate = f"learning rate {self.learning_rate:g}"
        return f"Adam, {rate}" if self.optimizer == "adam" else f"SGD, momentum {self.momentum:g}, {rate}"
