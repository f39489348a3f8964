"""A job of private SGD with its records at hand, and the folder that it fills.

job.json, model.json               at once
checkpoint.npz, fingerprint.json, noise.key   while it trains: enough to go on
ledger.jsonl                       what it may cost, before its first step
data.json, and what `Run.save` writes   at the end
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.jobs import defaults, people
from bayesdp.jobs.people import Records
from bayesdp.jobs.prepared import Finished, PreparedJob, Progress, UnderWay, gather
from bayesdp.jobs.saved.network import SavedNetwork
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.report import Details
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.training import Training
from bayesdp.learn.loop.tree_file import Tree
from bayesdp.learn.models.class_weights import class_weights
from bayesdp.learn.models.model_names import network_in_words
from bayesdp.learn.models.paid_metrics import keep, kept, released
from bayesdp.learn.sgd import SGD, Loss
from bayesdp.mechanism.people import PeopleLoss
from bayesdp.report.paid import PaidMetrics
from bayesdp.report.quality import Confusion

NOTHING = (
    "Nothing was learned: on the test records the model does no better than a constant answer. More records, fewer "
    "columns or a larger ε would help; `bayesdp plan` tells before training what can be expected."
)


@dataclass(frozen=True, eq=False)
class PreparedSGD(PreparedJob[SGDJob, Run]):
    """A `PreparedJob` whose result is a `Run`."""

    @cached_property
    def model(self) -> SavedNetwork:
        """The model, without its weights."""
        weights = class_weights(self.job.class_weights, self.data.classes)
        return SavedNetwork.of(str(self.job.model), self.data, class_weights=weights)

    @cached_property
    def plan(self) -> SGD:
        """The plan."""
        return self.job.plan(self.job.budgets(self.data))

    @cached_property
    def params(self) -> Tree:
        """Where the model starts. Bad input: a model that does not fit the records gets `InputError`."""
        # Another stream than that of the noise, which a seed begins with.
        start = self.model.init(jax.random.fold_in(jax.random.key((self.job.draw or 0) % 2**32), 1))
        # Random weights would make a linear model begin worse than the constant answer, and gain it nothing.
        return jax.tree.map(jnp.zeros_like, start) if self.job.of_goal else start

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.params))

    @property
    def _metrics_in_words(self) -> list[str]:
        epsilon = self.job.metrics_epsilon
        if epsilon is None:
            return []
        more = " of it" if self.job.adjacency == "replace-one" else " of the people tested on"
        return [f"Counts over the test records will be released with noise, for DP ε = {epsilon:g}{more}."]

    @property
    def name(self) -> str:
        """The model in words."""
        return network_in_words(str(self.job.model), len(self.data.classes))

    @property
    def trained_on(self) -> Records:
        """The records to train on."""
        return people.trained_on(self.data)

    @property
    def loss(self) -> Loss:
        """The loss of a record: of a person, the sum of that of their rows."""
        loss = self.model.loss()
        return loss if self.data.people is None else PeopleLoss(loss)

    @property
    def held_out(self) -> Records | None:
        """The outsiders."""
        return self.holdout

    @property
    def plan_in_words(self) -> list[str]:
        """Model, plan and what else a report says of it: a sentence each."""
        job, budget = self.job, self.plan.epsilon_budget
        called = "" if self.data.classes else f" ({self.name})"
        stop = [] if budget is None else [f"Training stops before DP ε passes {budget:g}."]
        return [
            f"Model {job.model}{called}, {self.parameters:,} parameters; {job.optimizer_in_words}.",
            f"{job.pace_in_words}; {job.noise_in_words}{job.aim_in_words}.",
            *([] if job.class_weights is None else [f"Class weights, which are public: {job.class_weights}."]),
            *self._metrics_in_words,
            *([job.goal_in_words] if job.goal_in_words else []),
            *stop,
            *self.few_in_words,
            *(f"{name[0].upper()}{name[1:]}: {words}." for name, words in self.plan.facts.items()),
        ]

    @property
    def few_in_words(self) -> list[str]:
        """What is done without where there are few records; nothing where there are enough."""
        if self.public_records >= defaults.FEW:
            return []
        alone = [] if self.holdout is not None or not self.job.members else [defaults.MEMBERS_ALONE]
        return [*alone, *([] if self.tests else [defaults.UNTESTED])]

    def resume(self, folder: str | Path) -> UnderWay[Run]:
        """See `PreparedJob.resume`."""
        return self._taken_up(folder, self._reopened)

    def _reopened(self, folder: RunFolder) -> UnderWay[Run]:
        training = Training.resumed(
            self.plan.course(self.loss, self.params),
            folder.path,
            self.trained_on,
            holdout=self.holdout,
            watch=self.watch,
            finished=True,
        )
        return partial(self._run, training, folder)

    def _begun(self, folder: RunFolder) -> UnderWay[Run]:
        training = self.plan.begin(
            self.loss,
            self.params,
            self.trained_on,
            holdout=self.holdout,
            members=self.job.members or 0,
            watch=self.watch,
            seed=self.job.seed,
        )
        return partial(self._run, training, self._claim(folder, self.model.write))

    def _run(self, training: Training, folder: RunFolder, progress: Progress | None = None) -> Finished[Run]:
        """Train to the end and write everything."""
        with folder.locked():
            return self._run_alone(training, folder, progress)

    def _run_alone(self, training: Training, folder: RunFolder, progress: Progress | None) -> Finished[Run]:
        run = training.run(
            evaluate=self._evaluate if self.tests else None,
            progress=progress,
            folder=folder.path,
            keep_iterates=self.job.keep_iterates,
        )
        paid = self._paid(run, folder)
        details = self.details(run)
        details["paid"] = paid
        report = run.to_report(**details)
        run.write(folder, report)
        self._close(folder)
        return Finished(run, details["metrics"], report, run, tuple(nothing_learned(details["metrics"])))

    def _evaluate(self, params: Tree) -> dict[str, float]:
        return self.model.measure(params, self.data.x_test, self.data.y_test)

    def details(self, run: Run) -> Details:
        """What the report says beside what the run knows; the last snapshot is that of the finished model."""
        achieved: dict[str, float] = {}
        confusion = None
        if self.tests:
            answers, truth = self.model.answers(run.params, self.data.x_test), self.data.y_test
            achieved = {**run.snapshots[-1].metrics, **self.model.quality(answers, truth)}
            achieved |= self.model.without_model(truth)
            if self.data.classes:
                confusion = Confusion.of(self.data.classes, truth, answers.argmax(1))
        return {
            "title": f"Private training of a {self.name} on {self.data.name}",
            "metrics": achieved,
            "confusion": confusion,
            "watched": self.watched_names,
            "correct": self._correct(run),
            "groups": self.groups_of(run.members),
            "optimizer": self.job.optimizer_in_words,
            "evaluated_on": f"the {self.tests:,} test records" if self.tests else "",
            "preprocessing": self.public,
            "notes": [*self.notes("Accuracy and loss were"), *self.few_in_words, *nothing_learned(achieved)],
        }

    def _paid(self, run: Run, folder: RunFolder) -> PaidMetrics | None:
        """The counts over test records that were paid for, drawn once and kept in the folder."""
        epsilon = self.job.metrics_epsilon
        if epsilon is None:
            return None
        drawn = kept(folder.metrics)
        if drawn is None:
            answers = self.model.answers(run.params, self.data.x_test)
            drawn = released(
                self.data.y_test,
                answers.argmax(1) if self.data.classes else answers,
                epsilon=epsilon,
                adjacency=self.job.adjacency,
                classes=self.data.classes,
                scale=self.data.y_scale,
                seed=self.job.seed,
            )
            keep(folder.metrics, drawn)
        return drawn

    def _correct(self, run: Run) -> npt.NDArray[np.bool_] | None:
        """Whether the model is right about each witness, in the order of `Run.losses`."""
        known = self.witnesses(run.members)
        if not self.data.classes or not known or not sum(run.tallies.counts):
            return None
        return np.concatenate([self.model.right(run.params, part) for part in known])


def nothing_learned(metrics: Mapping[str, float]) -> list[str]:
    """A sentence where a model does no better on the test records than a constant answer."""
    pairs = (("test accuracy", "accuracy of a constant answer", 1), ("test RMSE", "RMSE of a constant answer", -1))
    worse = any(
        sign * metrics[own] <= sign * metrics[other]
        for own, other, sign in pairs
        if own in metrics and other in metrics
    )
    return [NOTHING] if worse else []


def prepare(wanted: SGDJob) -> PreparedSGD:
    """Load the records of a job, set the outsiders apart and settle what was left open. Bad input: see `gather`."""
    return PreparedSGD(*gather(wanted))
