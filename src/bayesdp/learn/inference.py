"""Private Bayesian inference, whichever way: a plan whose `fit` gives a posterior that may be published.

`VI` and the samplers say how a model is read (`_read`) and what posterior their training has come to (`_posterior`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from bayesdp.errors import InputError
from bayesdp.learn.plan import Plan
from bayesdp.learn.probabilistic import Data, Probabilistic
from bayesdp.learn.published import Published
from bayesdp.learn.training import Training

Result = TypeVar("Result", bound=Published)
Evaluate = Callable[[Result], dict[str, float]]
Progress = Callable[[Result], None]

MEMBERS = 2000
"""Training records drawn as witnesses when there is an audit set and nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Inference(Plan, Generic[Result]):
    """A `Plan` that is fitted to a model and data."""

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
            audit: records of the same distribution that are never trained on: outsiders (H5).
            members: how many training records are drawn before the run as witnesses; None: 2000 beside an audit set,
                else none, because every witness costs a gradient in every step.
            watch: records, members or not, whose own guarantee is wanted.
            seed: makes the run reproducible and **not private**; the noise comes from the operating system otherwise.
            evaluate: `evaluate(posterior)` → numbers to report at every look. Keep it to public data.
            progress: called with the posterior so far at every look.
            folder: keep a checkpoint there, to `resume` from. It holds the key of the noise until training is done.

        Returns a posterior: `sample`, `mean`, `cov`, `predict`, `guarantees`, `report`, `save`.
        """
        quiet = not members and all(one is None for one in (audit, watch, evaluate, progress, folder))
        if self.only_the_end and not quiet:
            raise InputError(
                "Expected audit, members, watch, evaluate, progress and folder with last_only left out, got both: "
                "they look at earlier iterates, which are to stay secret. Leave one of the two out."
            )
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
        evaluate: Evaluate[Result] | None = None,
        progress: Progress[Result] | None = None,
        finished: bool = False,
    ) -> Result:
        """Go on from the checkpoint in `folder`, with the same plan, model, data, audit and watch as before.

        `finished`: also where training has ended and the result alone is wanted. Guarantee: the result is that of an
        uninterrupted run, bit for bit on the same machine.
        """
        reading, objective, start = self._read(model, data, params)
        training = Training.resumed(self, folder, objective, start, data, audit=audit, watch=watch, finished=finished)
        return self._run(reading, objective, training, evaluate, progress, folder)

    @abstractmethod
    def _read(self, model: Any, data: Data, params: Any) -> tuple[Probabilistic, Any, Any]:
        """The model on the real line, the objective of the loop, and where to begin."""

    @abstractmethod
    def _posterior(self, reading: Probabilistic, objective: Any, training: Training) -> Result:
        """What a training has come to so far."""

    def _run(
        self,
        reading: Probabilistic,
        objective: Any,
        training: Training,
        evaluate: Evaluate[Result] | None,
        progress: Progress[Result] | None,
        folder: str | Path | None,
    ) -> Result:
        def now() -> Result:
            return self._posterior(reading, objective, training)

        training.run(
            evaluate=None if evaluate is None else lambda _: evaluate(now()),
            progress=None if progress is None else lambda _: progress(now()),
            folder=folder,
        )
        return now()
