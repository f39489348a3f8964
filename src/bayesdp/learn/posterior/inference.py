"""Private Bayesian inference, whichever way: a plan whose `fit` gives a posterior that may be published.

`VI` and the samplers say how a model is read (`_read`) and what posterior their training has come to (`_posterior`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

from bayesdp.learn.loop.course import Course
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.plan import Plan
from bayesdp.learn.loop.training import Outcome, Training
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model
from bayesdp.learn.posterior.base import Published
from bayesdp.learn.records import Data

Result = TypeVar("Result", bound=Published)
Evaluate = Callable[[Result], dict[str, float]]
Progress = Callable[[Result], None]


class Reading(NamedTuple):
    """A model read for its data: the model on the real line, and what the loop is asked to do."""

    model: Probabilistic
    course: Course


@dataclass(frozen=True, eq=False)
class InferenceRun(Generic[Result]):
    """A fit under way: its `training`, and how a posterior is made of what that has come to."""

    made_of: Callable[[Outcome], Result]
    training: Training

    def posterior(self) -> Result:
        """What the fit has come to so far."""
        return self.made_of(self.training.outcome())

    def run(
        self,
        *,
        evaluate: Evaluate[Result] | None = None,
        progress: Progress[Result] | None = None,
        folder: str | Path | None = None,
    ) -> Result:
        """Take it to the end; arguments as for `fit`."""
        self.training.run(
            evaluate=None if evaluate is None else lambda _: evaluate(self.posterior()),
            progress=None if progress is None else lambda _: progress(self.posterior()),
            folder=folder,
        )
        return self.posterior()


@dataclass(frozen=True, kw_only=True)
class Inference(Plan, Generic[Result]):
    """A `Plan` that is fitted to a model and data."""

    def fit(
        self,
        model: Model | Network,
        data: Data,
        *,
        params: Values = None,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
        evaluate: Evaluate[Result] | None = None,
        progress: Progress[Result] | None = None,
        folder: str | Path | None = None,
    ) -> Result:
        """The private posterior of `model` given `data`, and what it cost.

        Args:
            model: a NumPyro model with a data plate, or `(log_prior(params), log_likelihood(params, record))`; for a
                sampler also a `Network`.
            data: arrays with the records along the first axis, given to the model as `*data` (a tuple), `**data` (a
                dict) or `data` (an array).
            params: for a pair of functions, the form of the parameters; else optional starting values.
            holdout: records of the same distribution that are never trained on: outsiders (order statistics, H5).
            members: how many training records are drawn before the run as witnesses; None: 2000 beside a holdout,
                else none, because every witness costs a gradient in every step.
            watch: records, members or not, whose own guarantee is wanted.
            seed: makes the run reproducible and **not private**; the noise comes from the operating system otherwise.
            evaluate: `evaluate(posterior)` → numbers to report with every snapshot. Keep it to public data.
            progress: called with the posterior so far at every snapshot.
            folder: keep a checkpoint there, to `resume` from. It holds the key of the noise until training is done.

        Returns a posterior: `sample`, `mean`, `cov`, `predict`, `guarantees`, `report`, `save`.
        """
        quiet = not members and all(one is None for one in (holdout, watch, evaluate, progress, folder))
        plan = self._as_run(quiet=quiet)
        begun = plan.begin(model, data, params=params, holdout=holdout, members=members, watch=watch, seed=seed)
        return begun.run(evaluate=evaluate, progress=progress, folder=folder)

    def resume(
        self,
        folder: str | Path,
        model: Model | Network,
        data: Data,
        *,
        params: Values = None,
        holdout: Data = None,
        watch: Data = None,
        evaluate: Evaluate[Result] | None = None,
        progress: Progress[Result] | None = None,
        finished: bool = False,
    ) -> Result:
        """Go on from the checkpoint in `folder`, with the same plan, model, data, holdout and watch as before.

        `finished`: also where training has ended and the result alone is wanted. Guarantee: the result is that of an
        uninterrupted run, bit for bit on the same machine.
        """
        again = self.reopen(folder, model, data, params=params, holdout=holdout, watch=watch, finished=finished)
        return again.run(evaluate=evaluate, progress=progress, folder=folder)

    def begin(
        self,
        model: Model | Network,
        data: Data,
        *,
        params: Values = None,
        holdout: Data = None,
        members: int | None = None,
        watch: Data = None,
        seed: int | None = None,
    ) -> InferenceRun[Result]:
        """The fit before its first step; arguments as for `fit`."""
        reading = self.about(data)._read(model, data, params)
        training = Training.begin(reading.course, data, holdout=holdout, members=members, watch=watch, seed=seed)
        return InferenceRun(partial(self._posterior, reading), training)

    def course(self, model: Model | Network, data: Data, params: Values = None) -> Course:
        """What the loop is asked to do; arguments as for `fit`."""
        return self.about(data)._read(model, data, params).course

    def reopen(
        self,
        folder: str | Path,
        model: Model | Network,
        data: Data,
        *,
        params: Values = None,
        holdout: Data = None,
        watch: Data = None,
        finished: bool = False,
    ) -> InferenceRun[Result]:
        """The fit at its last checkpoint; arguments as for `resume`."""
        reading = self.about(data)._read(model, data, params)
        training = Training.resumed(reading.course, folder, data, holdout=holdout, watch=watch, finished=finished)
        return InferenceRun(partial(self._posterior, reading), training)

    def _as_run(self, *, quiet: bool) -> Self:
        """The plan as it is run; `quiet`: nobody asks for anything before the end."""
        return self.one_interval() if quiet else self

    @abstractmethod
    def _read(self, model: Any, data: Data, params: Params) -> Reading:
        """The model, and what the loop is asked to do."""

    @abstractmethod
    def _posterior(self, reading: Reading, outcome: Outcome) -> Result:
        """What a training has come to so far."""
