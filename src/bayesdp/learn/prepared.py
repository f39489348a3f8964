"""A job with its records at hand, and the folder that it fills.

job.json, model.json               at once
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

from bayesdp.data import Dataset
from bayesdp.errors import refuse, whole
from bayesdp.learn import checkpoint, job
from bayesdp.learn.job import Job
from bayesdp.learn.predictor import Predictor
from bayesdp.learn.run import Run
from bayesdp.learn.sgd import SGD, Progress
from bayesdp.learn.training import Training
from bayesdp.rounding import down

LAST = "report.html"
"""The file that is written last."""

Records = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A settled `job`, the records to train on and to test on (`data`), outsiders (`audit`), and watched records."""

    job: Job
    data: Dataset
    audit: Records | None
    watch: Records | None

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
        if finished(target):
            raise refuse("run", str(folder), "to hold an unfinished run", "This one has finished.")
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
        run = training.run(evaluate=self._evaluate if self.tests else None, progress=progress, folder=target)
        run.save(target, **self.details(run))
        # Only now: whoever is interrupted before can still come back for the result.
        for name in (checkpoint.NAME, checkpoint.PLAN):
            (target / name).unlink()
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
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise refuse("out", str(target), "to be a folder that can be made", str(problem)) from None
        self.job.write(target)
        self.predictor.write(target)
        return training

    @property
    def tests(self) -> int:
        """How many records there are to test on."""
        return len(self.data.x_test)

    def _evaluate(self, params: Any) -> dict[str, float]:
        return self.predictor.measure(params, self.data.x_test, self.data.y_test)

    def details(self, run: Run) -> dict[str, Any]:
        """What the report says beside what the run knows."""
        metrics: dict[str, float] = {}
        notes = [
            "Everything that was not given was chosen from public quantities: the number, shape and kind of records."
        ]
        if self.tests:
            metrics = {**self._evaluate(run.params), **self.predictor.without_model(self.data.y_test)}
            notes.append(
                f"Accuracy and loss were measured on {self.tests:,} records that were not trained on, without noise: "
                "the guarantees do not speak for these records."
            )
        if self.audit is not None:
            notes.append(f"{len(self.audit[1]):,} records were held out of the training data to speak for outsiders.")
        if self.too_few:
            notes.append(self.too_few)
        return {
            "title": f"Private training of a {self.job.model} model on {self.data.name}",
            "metrics": metrics,
            "correct": self._correct(run),
            "optimizer": self.job.optimizer_in_words,
            "evaluated_on": f"the {self.tests:,} test records" if self.tests else "",
            "preprocessing": self.data.public,
            "notes": notes,
        }

    @property
    def too_few(self) -> str:
        """Words for witnesses who cannot speak for the share that is asked for; else none."""
        share = self.job.supported
        if share is None or share >= self.job.coverage:
            return ""
        return (
            f"So few witnesses can speak for at most {down(100 * share, 3)} % of people. The Bayesian ε for "
            f"{100 * self.job.coverage:g} % is therefore the DP ε at half of δ."
        )

    def _correct(self, run: Run) -> Any:
        if not self.data.classes or not run.losses().size:
            return None
        members = (self.data.x[run.members], self.data.y[run.members])
        known = [part for part in (self.audit, members, self.watch) if part is not None and len(part[1])]
        return np.concatenate([self.predictor.right(run.params, *part) for part in known])


def prepare(wanted: Job) -> Prepared:
    """Load the records of a job, set the outsiders apart and settle what was left open.

    Bad input: see `data.load` and `Job.settled`; a watched record that is not there.
    """
    data = wanted.data.load()
    settled = wanted.settled(data)
    watch = _watched(data, settled.watch)
    audit = None
    if settled.audit:
        # Another stream than that which draws the members.
        data, audit = data.split(settled.audit, np.random.default_rng([settled.draw or 0, 1]))
    return Prepared(settled, data, audit, watch)


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything, another run above all: nothing is ever overwritten."""
    if folder.exists() and not folder.is_dir():
        raise refuse("out", str(folder), "to be a folder", "There is a file of that name.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / job.NAME).exists():
        raise refuse("out", str(folder), "to be new or empty", "It holds other files. Choose another folder.")
    hint = "It holds another run." if finished(folder) else "It holds an unfinished run: go on with it by resume, or"
    raise refuse("out", str(folder), "to be new or empty", f"{hint} Choose another folder.".replace("or C", "or c"))


def finished(folder: Path) -> bool:
    """Whether the run in `folder` has come to its end and everything is written."""
    return (folder / LAST).exists() and not (folder / checkpoint.NAME).exists()


def _watched(data: Dataset, numbers: tuple[int, ...]) -> Records | None:
    """The records of these numbers, counted from 1 in the order of their source."""
    if not numbers:
        return None
    x, y = np.concatenate([data.x, data.x_test]), np.concatenate([data.y, data.y_test])
    for number in numbers:
        whole("watch", number, least=1, most=len(y), hint=f"There are {len(y):,} records, counted from 1.")
    places = np.arange(len(y)) if data.places is None else np.argsort(data.places)
    rows = places[np.array(numbers) - 1]
    return x[rows], y[rows]
