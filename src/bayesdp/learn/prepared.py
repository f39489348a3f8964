"""A job with its records at hand, and the folder that it fills.

job.json, data.json, model.json    at once
checkpoint.npz, fingerprint.json   while it trains: enough to go on, the key of the noise included
plan.json, params.npz, accountants.json and .npz, report.json, report.html   at the end (`Run.save`)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bayesdp.learn import checkpoint
from bayesdp.learn.everyone import EVERYONE
from bayesdp.learn.job import Job
from bayesdp.learn.predictor import Predictor
from bayesdp.learn.ready import Ready, check_free, check_unfinished, finished, forget_checkpoint, gather
from bayesdp.learn.run import Run
from bayesdp.learn.sgd import SGD, Progress
from bayesdp.learn.training import Training

__all__ = ["Prepared", "check_free", "finished", "prepare"]


@dataclass(frozen=True, eq=False)
class Prepared(Ready):
    """A job of private SGD that is `Ready`."""

    job: Job

    @cached_property
    def predictor(self) -> Predictor:
        """The model."""
        return Predictor.of(str(self.job.model), self.data)

    @cached_property
    def plan(self) -> SGD:
        """The plan."""
        return self.job.plan()

    @cached_property
    def params(self) -> Any:
        """Where the model starts. Bad input: a model that does not fit the records gets `InputError`."""
        # Another stream than that of the noise, which a seed begins with.
        return self.predictor.init(jax.random.fold_in(jax.random.key((self.job.draw or 0) % 2**32), 1))

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.params))

    def fit(self, folder: str | Path, progress: Progress | None = None) -> Run:
        """Train, and leave everything in `folder`, which must be new or empty: see `check_free`."""
        return self.run(self.begun(folder), folder, progress)

    def resume(self, folder: str | Path, progress: Progress | None = None) -> Run:
        """Go on with the run in `folder`, wherever it was interrupted, to the result that it would have had."""
        return self.run(self.resumed(folder), folder, progress)

    def begun(self, folder: str | Path) -> Training:
        """The training before its first step, its folder claimed. Bad input: a folder that is not free."""
        check_free(Path(folder))
        return self._claimed(Path(folder))

    def resumed(self, folder: str | Path) -> Training:
        """The training at its last checkpoint, or before its first step: without a checkpoint nothing has come out yet.

        Bad input: a run that has finished, or other data than it began with: `InputError`.
        """
        target = Path(folder)
        check_unfinished(target)
        if not (target / checkpoint.NAME).exists():
            (target / checkpoint.PLAN).unlink(missing_ok=True)
            return self._claimed(target)
        return Training.resumed(
            self.plan,
            target,
            self.predictor.loss(),
            self.params,
            (self.data.x, self.data.y),
            audit=self.audit,
            watch=self.watch,
            finished=True,
        )

    def run(self, training: Training, folder: str | Path, progress: Progress | None = None) -> Run:
        """Train to the end and write everything; then the checkpoint is not needed any more."""
        target = Path(folder)
        run = training.run(
            evaluate=self._evaluate if self.tests else None,
            progress=progress,
            folder=target,
            keep_iterates=self.job.keep_iterates,
        )
        run.save(target, **self.details(run))
        forget_checkpoint(target)
        return run

    def _claimed(self, target: Path) -> Training:
        # Made first: what cannot be trained is refused before anything is written.
        training = Training(
            self.plan,
            self.predictor.loss(),
            self.params,
            (self.data.x, self.data.y),
            audit=self.audit,
            members=self.job.members or 0,
            watch=self.watch,
            seed=self.job.seed,
        )
        self.claim(target)
        self.predictor.write(target)
        return training

    def _evaluate(self, params: Any) -> dict[str, float]:
        return self.predictor.measure(params, self.data.x_test, self.data.y_test)

    def details(self, run: Run) -> dict[str, Any]:
        """What the report says beside what the run knows."""
        metrics = {**self._evaluate(run.params), **self.predictor.without_model(self.data.y_test)} if self.tests else {}
        return {
            "title": f"Private training of a {self.job.model} model on {self.data.name}",
            "metrics": metrics,
            "correct": self._correct(run),
            "optimizer": self.job.optimizer_in_words,
            "evaluated_on": f"the {self.tests:,} test records" if self.tests else "",
            "preprocessing": self.data.public,
            "notes": self.notes("Accuracy and loss were"),
        }

    def _correct(self, run: Run) -> Any:
        if not self.data.classes or not run.losses().size:
            return None
        members = (self.data.x[run.members], self.data.y[run.members])
        watch = (self.data.x, self.data.y) if self.watch == EVERYONE else self.watch
        known = [part for part in (self.audit, members, watch) if part is not None and len(part[1])]
        return np.concatenate([self.predictor.right(run.params, *part) for part in known])


def prepare(wanted: Job) -> Prepared:
    """Load the records of a job, set the outsiders apart and settle what was left open. Bad input: see `gather`."""
    return Prepared(**gather(wanted))
