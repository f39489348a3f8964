"""A training job: everything that private SGD needs to know, as plain values that a folder can keep (job.json).

    data + model + plan + optimiser + witnesses + seeds   →   prepare   →   fit, or resume what was interrupted

What is left out is chosen from public quantities, how many records there are and of which shape (`plans.default_plan`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from bayesdp import errors
from bayesdp.data import Dataset
from bayesdp.jobs import defaults
from bayesdp.jobs.base import FAILURE, SGD_FORMAT, Job, check_size
from bayesdp.jobs.plans import default_plan
from bayesdp.jobs.table_column import table_with
from bayesdp.learn import goals
from bayesdp.learn.loop.filter import Filter
from bayesdp.learn.models.networks import MODELS
from bayesdp.learn.sgd import SGD

OPTIMIZERS = ("adam", "sgd")
SCHEDULES = ("constant", "typical")


@dataclass(frozen=True, kw_only=True)
class SGDJob(Job):
    """What shall be done: a `Job`, and

    Args:
        model: a name of `models.MODELS`.
        noise_std, epsilon_budget: see `SGD`.
        clip_norm: a number, or "none" as in paper S1, with `noise_std`.
        goal: "accuracy", "typical" or "balanced" (`learn.goals`); None: "typical" with that noise schedule, else
            "balanced".
        noise_schedule: "constant" or "typical" (H13), when the learning rate has the inverse factors.
        optimizer, learning_rate, momentum: "adam" or "sgd", as in optax.
        falling: share of the last steps in which the learning rate falls to 0.
        filter_epsilon: the DP ε that every record's own steps may add up to (`Filter`).
        budget_column: the column of a table that holds each record's own DP ε, chosen by its owner, in place of
            `filter_epsilon`; it is not learned from.
        measure_every: see `SGD`.
        keep_iterates: keep the parameters before every so-many-th step in the folder.
        metrics_share: the share of ε with which counts over the test records are released (H25); None releases none.
        class_weights: what a record of each class counts, such as "yes=3,no=1": declared, public.

    Bad input gets `InputError` naming the field.
    """

    FORMAT: ClassVar[str] = SGD_FORMAT

    model: str | None = None
    noise_std: float | None = None
    clip_norm: float | Literal["none"] | None = None
    goal: str | None = None
    noise_schedule: str | None = None
    optimizer: str | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    falling: float | None = None
    epsilon_budget: float | None = None
    filter_epsilon: float | None = None
    budget_column: str | None = None
    measure_every: int | None = None
    keep_iterates: int | None = None
    metrics_share: float | None = None
    class_weights: str | None = None

    def __post_init__(self) -> None:
        if self.model is not None:
            errors.one_of("model", self.model, MODELS)
        if self.optimizer is not None:
            errors.one_of("optimizer", self.optimizer, OPTIMIZERS)
        if self.noise_schedule is not None:
            errors.one_of("noise_schedule", self.noise_schedule, SCHEDULES)
        if self.goal is None:
            object.__setattr__(self, "goal", "typical" if self.noise_schedule == "typical" else "balanced")
        errors.one_of("goal", self.goal, goals.GOALS)
        if self.falling is not None:
            errors.number("falling", self.falling, least=0, most=1)
        if self.momentum is not None:
            errors.number("momentum", self.momentum, least=0, below=1)
            if self.optimizer == "adam":
                raise errors.refuse(
                    "momentum", self.momentum, f"to be left out for {errors.Argument('optimizer', 'adam')}"
                )
            object.__setattr__(self, "optimizer", "sgd")
        for name in ("measure_every", "keep_iterates"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, errors.whole(name, getattr(self, name), least=1))
        if self.learning_rate is not None:
            errors.number("learning_rate", self.learning_rate, above=0)
        super().__post_init__()
        if self.budget_column is not None and self.filter_epsilon is not None:
            raise errors.refuse(
                "filter_epsilon",
                self.filter_epsilon,
                f"to be left out beside {errors.Argument('budget_column', self.budget_column)}",
            )
        if self.metrics_share is not None:
            errors.number("metrics_share", self.metrics_share, above=0, most=0.5)
            if self.data.person is not None:
                # A record more would be one row of somebody who may be on both sides (H25).
                raise errors.refuse(
                    "metrics_share", self.metrics_share, f"to be left out beside {errors.named('person')}"
                )
            if self.epsilon is None:
                raise errors.refuse(
                    "metrics_share", self.metrics_share, f"to be a share of {errors.named('epsilon')}", "Give that too."
                )
        if self.budget_column is not None and self.data.person is not None:
            raise errors.refuse("budget_column", self.budget_column, f"to be left out beside {errors.named('person')}")
        self._check_iterates()
        self._check_noise()

    def _check_noise(self) -> None:
        if self.clip_norm == "none":
            if self.noise_std is None:
                raise errors.refuse(
                    "noise_std", None, f"to be given with {errors.Argument('clip_norm', 'none')}", got="None"
                )
            for name in ("epsilon", "noise_multiplier"):
                if getattr(self, name) is not None:
                    raise errors.refuse(
                        name,
                        getattr(self, name),
                        f"to be left out with {errors.Argument('clip_norm', 'none')}",
                        "Where nothing is clipped no noise gives a DP ε.",
                    )
            return
        check_size("clip_norm", self.clip_norm)
        if self.noise_std is not None:
            raise errors.refuse("noise_std", self.noise_std, "to be left out with a clip norm", "Use noise_multiplier.")
        if self.epsilon is None and self.noise_multiplier is None:
            raise errors.unmet(
                "epsilon",
                None,
                f"{errors.named('epsilon')} (to calibrate the noise) or {errors.named('noise_multiplier')}",
                "neither",
            )

    def settled(self, data: Dataset) -> Self:
        """The job with everything chosen that was left open; `data` is public in its sizes only.

        Bad input: more records asked for than there are, a δ that is not below 1/N, an ε that no noise reaches.
        """
        holdout, records = self.held_out(data, self.usual_holdout(self.pool(data)))
        model = self.model or defaults.model(data.x.shape[1:], self.data.features)
        shape, goal = default_plan.shape_of(data, records), default_plan.goal_for(str(self.goal), data)
        optimizer, left_open = default_plan.steps_of(model, self.optimizer, self.clip_norm, goal, shape)
        rate = self.pace(records) or left_open.sampling_rate
        momentum = left_open.momentum if self.momentum is None and optimizer == "sgd" else self.momentum
        chosen = dataclasses.replace(
            self,
            model=model,
            goal=goal,
            holdout=holdout,
            expected_records=self.expected(records),
            members=self._usual_members(records) if self.members is None else self.members,
            sampling_rate=rate,
            batch_size=None,
            steps=self.length(rate, left_open.steps),
            epochs=None,
            # The noise does not depend on the clip norm, which is chosen by the noise.
            clip_norm=1.0 if self.clip_norm is None else self.clip_norm,
            optimizer=optimizer,
            momentum=momentum,
            noise_schedule=self.noise_schedule or left_open.noise_schedule,
            falling=left_open.falling if self.falling is None else self.falling,
            delta=self.checked_delta(records),
            paid=data.paid,
        )
        chosen.check_share(holdout)
        if self.metrics_share is not None and not len(data.x_test):
            raise errors.refuse(
                "metrics_share", self.metrics_share, "to be left out where no records are kept for testing"
            )
        if chosen.noise_multiplier is None and chosen.epsilon is not None:
            level = chosen.plan().calibrate(chosen.training_epsilon).noise_multiplier
            chosen = dataclasses.replace(chosen, noise_multiplier=level)
        if self.clip_norm is not None and self.learning_rate is not None:
            return chosen
        clip = self.clip_norm if isinstance(self.clip_norm, float | int) else None
        sizes = default_plan.sizes(
            model,
            optimizer,
            goal,
            shape,
            chosen.plan(),
            images=self.data.features,
            momentum=momentum,
            falling=chosen.falling or 0.0,
            clip_norm=clip,
        )
        return dataclasses.replace(
            chosen,
            clip_norm=sizes.clip_norm if self.clip_norm is None else self.clip_norm,
            learning_rate=self.learning_rate or sizes.learning_rate,
        )

    def usual_holdout(self, pool: int) -> int:
        """See `Job.usual_holdout`."""
        return defaults.holdout_of_features(pool) if self._for_typical_people else defaults.holdout_of_training(pool)

    def _usual_members(self, records: int) -> int:
        return defaults.members_of_features(records) if self._for_typical_people else defaults.members(records)

    @property
    def _for_typical_people(self) -> bool:
        """Whether witnesses are cheap, and what they say is what the goal is about."""
        linear = self.model in (None, default_plan.LINEAR)  # which is what features get where nothing was said
        return self.data.features is not None and linear and self.goal != "accuracy"

    @property
    def training_epsilon(self) -> float | None:
        """The part of ε that the noisy steps may spend (H25): all of it where a record is trained on or tested on, and
        what the metrics leave where an exchange may touch both sides.
        """
        if self.epsilon is None or self.metrics_share is None or self.adjacency == "add-remove":
            return self.epsilon
        return self.epsilon * (1 - self.metrics_share)

    @property
    def metrics_epsilon(self) -> float | None:
        """What the released counts over test records cost; None where none are released."""
        if self.epsilon is None or self.metrics_share is None:
            return None
        return self.epsilon * self.metrics_share

    def _check_iterates(self) -> None:
        """Refuse iterates between two measurements, which are no farther apart than there are steps."""
        if self.keep_iterates is None or self.measure_every is None:
            return
        block = min(self.measure_every, self.steps or self.measure_every)
        if self.keep_iterates % block:
            few = f"There are {self.steps} steps." if block < self.measure_every else ""
            multiple = f"to be a multiple of {errors.Argument('measure_every', block)}"
            raise errors.refuse("keep_iterates", self.keep_iterates, multiple, few)

    def load(self) -> Dataset:
        """The records, without the column of their budgets. Bad input: see `data.load`."""
        few = defaults.few(self.num_records)
        if self.budget_column is None:
            return self.data.load(self.draw, self.payment, few)
        without = dataclasses.replace(self.data, drop=(*self.data.drop, self.budget_column))
        return without.load(self.draw, self.payment, few)

    def budgets(self, data: Dataset) -> tuple[float, ...] | None:
        """The ε that the owner of each training record of `data` chose; None without a column of them.

        Bad input: data that are no table of one's own, a column that is not there, or a cell that is no number >= 0.
        """
        if self.budget_column is None:
            return None
        cells = table_with("budget_column", self.budget_column, self.data).numbers(self.budget_column)
        rows = np.arange(len(cells)) if data.places is None else data.places
        chosen = errors.array("budget_column", cells[rows[: len(data.x)]], least=0, ndim=1)
        return tuple(chosen.tolist())

    def plan(self, budgets: tuple[float, ...] | None = None) -> SGD:
        """The plan of a settled job; `budgets` are those of the records, where they have their own."""
        wanted = self.filter_epsilon if budgets is None else budgets
        steps, rate, delta = self.chosen
        return SGD(
            sampling_rate=rate,
            steps=steps,
            clip_norm=None if self.clip_norm == "none" else self.clip_norm,
            noise_multiplier=self.noise_multiplier,
            noise_std=self.noise_std,
            noise_schedule="typical" if self.noise_schedule == "typical" else 1.0,
            delta=delta,
            engine=self.engine,
            adjacency=self.adjacency,
            coverage=self.coverage,
            failure=FAILURE,
            epsilon_budget=self.epsilon_budget,
            num_records=self.expected_records,
            prelude=self.prelude[0],
            prelude_delta=self.prelude[1],
            noise_kind=self.noise_kind,
            noise_delta=self.noise_delta,
            unit=self.unit,
            optimizer=goals.optimizer(
                self.optimizer or "adam",
                self.learning_rate or 0.0,
                self.momentum,
                "typical" if self.noise_schedule == "typical" else 1.0,
                self.falling or 0.0,
                steps,
            ),
            measure_every=self.measure_every,
            filter=None if wanted is None else Filter(wanted),
        )

    @property
    def without_dp(self) -> str:
        """See `Job.without_dp`."""
        words = "Use more of them, or a clip norm: then the DP value speaks for the rest."
        return words if self.clip_norm == "none" else ""

    @property
    def noise_in_words(self) -> str:
        """What is clipped and noised."""
        if self.clip_norm == "none":
            return f"no clipping, noise of standard deviation {self.noise_std:g}: nothing is promised to everybody"
        shape = ", more noise in the first steps" if self.noise_schedule == "typical" else ""
        return f"clip norm {self.clip_norm:g}, noise multiplier {self.noise_multiplier:.4g}{shape}"

    @property
    def of_goal(self) -> bool:
        """Whether a settled job has the plan of its goal, that of a linear model."""
        return default_plan.of_goal(self.model, self.optimizer, self.clip_norm)

    @property
    def goal_in_words(self) -> str:
        """Why the plan is as it is, for the report; empty where the goal decides nothing."""
        return f"Goal {self.goal}: {goals.WHY[str(self.goal)]}." if self.of_goal else ""

    @property
    def optimizer_in_words(self) -> str:
        """For the report."""
        rate = f"learning rate {self.learning_rate:g}"
        if self.noise_schedule == "typical":
            rate += ", less where there is more noise"
        if self.falling:
            rate += f", falling to 0 over the last {100 * self.falling:g} % of the steps"
        return f"Adam, {rate}" if self.optimizer == "adam" else f"SGD, momentum {self.momentum:g}, {rate}"
