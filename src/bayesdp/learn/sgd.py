"""Private SGD: a frozen description → calibrate → fit → Run (DP-SGD: clipping B13, update rules E2).

    θ ← optimiser(θ, g̃),    g̃ = (Σ_{x in batch} clip(g_x; C_t) + N(0, s_t² I)) / (q N),    batch ~ Poisson(q)

While it trains, three tallies are kept: what the run costs everybody (DP), people like those in the data (from
witnesses outside and inside of the data), and each watched record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import jax
import optax

from bayesdp import errors
from bayesdp.learn import goals
from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.filter import Filter
from bayesdp.learn.loop.iterates import Iterates
from bayesdp.learn.loop.objective import ClipNorm, Objective, Params, Position, Signal, State, StepSettings
from bayesdp.learn.loop.plan import Facts, Plan
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.snapshot import Evaluate
from bayesdp.learn.loop.training import Progress, Training
from bayesdp.learn.records import Data, Record
from bayesdp.mechanism.clipping import Norms, clip_rule
from bayesdp.mechanism.people import People, PeopleLoss
from bayesdp.mechanism.people_books import explain, gradients_of
from bayesdp.mechanism.per_example import Gradients
from bayesdp.mechanism.tapping import Explained
from bayesdp.mechanism.update_rule import Sum

Loss = Callable[[Params, Record], jax.Array]
"""The loss of one record."""


@dataclass(frozen=True)
class Descent(Objective):
    """A loss whose noisy mean gradient goes to an optimiser."""

    gradients: Gradients
    optimizer: optax.GradientTransformation

    def start(self, params: Params) -> State:
        """The optimiser's."""
        return self.optimizer.init(params)

    def advance(self, now: StepSettings, point: Params, state: State, released: Signal) -> Position:
        """By the optimiser's update."""
        del now
        updates, state = self.optimizer.update(released, state, point)
        return Position(optax.apply_updates(point, updates), state)

    def clip_sum(
        self,
        params: Params,
        examples: Data,
        mask: jax.Array,
        clip_norm: ClipNorm,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Signal, Norms]:
        """Σ_x m_x clip(M ∘ g_x) and the norms."""
        return self.gradients.clip_sum(params, examples, mask, clip_norm, subset, per_unit)

    def norms(
        self, params: Params, examples: Data, mask: jax.Array, clip_norm: ClipNorm, subset: Params | None = None
    ) -> Norms:
        """The norms alone."""
        return self.gradients.norms(params, examples, mask, clip_norm, subset)


@dataclass(frozen=True, kw_only=True)
class SGD(Plan):
    """What will be done, all of it public: a `Plan`, and

    Args:
        optimizer: any optax optimiser, with any learning-rate schedule.
        subset_fraction: share of the weights that a step may move, drawn anew each time (paper S1).
        measure_every: steps from one measurement of all records to the next; in between each is clipped at what was
            measured (`loop.measurement`). None measures nobody, unless a filter or
            `watch="everyone"` asks for it: then 1.
        filter: a `Filter`, a budget that every record has of its own: the DP entry is then at most its ε (H4).

    Bad input gets `InputError` naming the field.

    Examples:
        >>> import jax.numpy as jnp, numpy as np, optax
        >>> x = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
        >>> y = np.sign(x[:, 0]).astype(np.float32)
        >>> plan = bd.SGD(sampling_rate=0.5, steps=8, optimizer=optax.sgd(1.0), delta=1e-4).calibrate(epsilon=3.0)
        >>> run = plan.fit(lambda w, record: jnp.logaddexp(0.0, -record[1] * (record[0] @ w)), jnp.zeros(2), (x, y))
        >>> run.guarantees[0].epsilon <= 3.0
        True
    """

    kind: ClassVar[str] = "private SGD"

    optimizer: optax.GradientTransformation
    subset_fraction: float | None = None
    measure_every: int | None = None
    filter: Filter | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subset_fraction is not None:
            errors.number("subset_fraction", self.subset_fraction, above=0, most=1)
        if self.measure_every is not None:
            errors.whole("measure_every", self.measure_every, least=1)
        if self.filter is not None:
            self.filter.check(self)
            if self.epsilon_budget is not None:
                raise errors.refuse("epsilon_budget", self.epsilon_budget, "to be left out with a filter")
        if (self.measure_every is not None or self.filter is not None) and not isinstance(self.update, Sum):
            raise errors.refuse("update", self.update, "to be Sum() where records have limits of their own")

    @classmethod
    def suggest(
        cls,
        *,
        num_records: int,
        features: int,
        classes: int,
        epsilon: float,
        delta: float = 1e-5,
        goal: str = "balanced",
        norm: float | None = None,
        **fields: Any,
    ) -> Self:
        """A calibrated plan for a linear model on so many records, features and classes (0: a number) (`learn.goals`).

        `goal`: "accuracy", "typical" (what it costs typical people) or "balanced". `norm`: the length of a record's
        features where it is public, such as 3 for scattering ones; None: that of standardised columns. Let the weights
        begin at 0. `fields` are further fields of the plan, which go before. All of it is public: nothing is looked at.
        """
        shape = goals.Shape(num_records, features, classes, norm)
        chosen = goals.steps_of(shape)
        errors.one_of("goal", goal, goals.GOALS)
        named = ("sampling_rate", "steps", "noise_schedule")
        given = {**{name: getattr(chosen, name) for name in named}, "delta": delta, **fields}
        # The noise multiplier does not depend on the clip norm.
        plan = cls(**{"optimizer": optax.identity(), "clip_norm": 1.0, **given}).calibrate(epsilon)
        sizes = goals.sizes(
            goal,
            shape,
            noise=plan.noise,
            pace=goals.paces(plan.noise_schedule, chosen.falling, plan.steps),
            sampling_rate=plan.sampling_rate,
            momentum=chosen.momentum,
            clip_norm=float(clip_rule(plan.clip_norm).sensitivity) if "clip_norm" in fields else None,
        )
        step = goals.optimizer(
            "sgd", sizes.learning_rate, chosen.momentum, plan.noise_schedule, chosen.falling, plan.steps
        )
        return dataclasses.replace(plan, **{"clip_norm": sizes.clip_norm, "optimizer": step, **fields})

    @property
    def facts(self) -> Facts:
        """What else a report should say of the plan."""
        found: Facts = {}
        if self.filter is not None:
            found["filter"] = (
                f"a record leaves once its own steps add up to DP ε {self.filter.largest:g}"
                f"{', or to less where its owner chose so' if isinstance(self.filter.epsilon, tuple) else ''}; at the "
                f"clip norm after "
                f"{self.filter.paid(self):.0f} steps"
            )
        if self.measure_every is not None:
            found["records measured every"] = f"{self.measure_every} steps, and clipped at what was measured in between"
        return super().facts | found

    def fit(
        self,
        loss: Loss | Objective,
        params: Params,
        data: Data,
        *,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
        folder: str | Path | None = None,
        keep_iterates: int | None = None,
    ) -> Run:
        """Train `params` on `data` and tally what that costs.

        Args:
            loss: `loss(params, example)` of **one** record, however it is written: `explain` says how it is taken.
                Of `People` it is that of one row: a person's is the sum over their rows, which are clipped together.
                An `Objective` is taken as it is, with an optimiser of its own.
            params: a tree of float arrays.
            data: a tree of arrays with the records along the first axis, such as `(x, y)`.
            holdout: records of the same distribution that are never trained on: outsiders (order statistics, H5).
            members: how many training records are drawn before the run as witnesses; None: 2000 beside a holdout, else
                none, because every witness costs a gradient in every step.
            watch: records, members or not, whose own guarantee is wanted; "everyone" for all of `data`.
            seed: makes the run reproducible and **not private**; the noise comes from the operating system otherwise.
            evaluate: `evaluate(params)` → numbers to report with every snapshot. Keep it to public data.
            progress: called with the run so far at every snapshot.
            folder: keep a checkpoint there, to `resume` from. It holds the key of the noise until training is done.
            keep_iterates: keep the parameters before every so-many-th step in `folder`, so that any record's own
                guarantee can be asked for later.

        Returns a `Run`: `params`, `guarantees`, `report`, `save`.
        """
        training = self.begin(loss, params, data, holdout=holdout, members=members, watch=watch, seed=seed)
        return training.run(evaluate=evaluate, progress=progress, folder=folder, keep_iterates=keep_iterates)

    def resume(
        self,
        folder: str | Path,
        loss: Loss | Objective,
        params: Params,
        data: Data,
        *,
        holdout: Data = None,
        watch: Data = None,
        evaluate: Evaluate | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Go on from the checkpoint in `folder`, with everything as it was before: see `loop.fingerprint`.

        Guarantee: the result is the one that an uninterrupted run gives, bit for bit on the same machine: parameters,
        optimiser, key and tallies come from one file. A checkpoint of another plan, loss, optimiser, start or data is
        refused.
        """
        training = Training.resumed(self._course(loss, params, data), folder, data, holdout=holdout, watch=watch)
        kept = Iterates.of(folder)
        every = None if kept is None else kept.every
        return training.run(evaluate=evaluate, progress=progress, folder=folder, keep_iterates=every)

    def explain(self, loss: Loss, params: Params, data: Data) -> tuple[Explained, ...]:
        """How the clipped sum of each parameter is computed, and why: one line each; of `data` only the shapes count.

        The loss is read as JAX traces it, and one backward pass of a batch does for all parameters whose part in it is
        known. Others are written out for each record; the lines say which.
        """
        of_people = isinstance(data, People) and not isinstance(loss, PeopleLoss)
        return explain(PeopleLoss(loss) if of_people else loss, params, data)

    def begin(
        self,
        loss: Loss | Objective,
        params: Params,
        data: Data,
        *,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
    ) -> Training:
        """The training before its first step; arguments as for `fit`."""
        course = self._course(loss, params, data)
        return Training.begin(course, data, holdout=holdout, members=members, watch=watch, seed=seed)

    def _course(self, loss: Loss | Objective, params: Params, data: Data) -> Course:
        """The course for these data: by person, where a person has several rows."""
        if isinstance(data, People) and not isinstance(loss, Objective | PeopleLoss):
            loss = PeopleLoss(loss)
        return self.about(data).course(loss, params)

    def course(self, loss: Loss | Objective, params: Params) -> Course:
        """What the loop is asked to do."""
        return Course(
            self,
            loss if isinstance(loss, Objective) else Descent(gradients_of(loss), self.optimizer),
            params,
            subset_fraction=self.subset_fraction,
            measure_every=self.measure_every,
            filter=self.filter,
        )
