"""A job for a private posterior with its records at hand: what both methods share, and which of them it is.

`PreparedVI` takes noisy steps, which can be interrupted; `PreparedPosteriorVI` releases samples, all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bayesdp.errors import Array
from bayesdp.jobs import people
from bayesdp.jobs.people import Records
from bayesdp.jobs.posterior_job import PosteriorJob
from bayesdp.jobs.prepared import PreparedJob, Result
from bayesdp.jobs.saved.posterior import SavedPosterior
from bayesdp.learn.loop.report import CommonDetails
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.model_names import family_in_words
from bayesdp.learn.models.user_file import is_file, keep
from bayesdp.learn.posterior.summary import Summary
from bayesdp.learn.records import Data
from bayesdp.report import Intervals


@dataclass(frozen=True, eq=False)
class PreparedPosterior(PreparedJob[PosteriorJob, Result]):
    """A `PreparedJob` whose result is a posterior."""

    @cached_property
    def model(self) -> SavedPosterior:
        """The model, without the numbers of its posterior."""
        return self.job.described(self.data)

    @property
    def parameters(self) -> int:
        """How many numbers the posterior is about."""
        return self.model.reading.dim

    @property
    def name(self) -> str:
        """The model's name, without the way to its file."""
        return Path(self.job.model).name

    @property
    def model_in_words(self) -> str:
        """Which model, and the shape of its posterior."""
        return f"Model {self.name}, {self.parameters:,} parameters; {self.job.guide} guide."

    @cached_property
    def summary(self) -> Summary:
        """How the posterior is told to people."""
        return Summary(self.model.reading, self.model.family.shown, self.model.family.label)

    def arguments(self, records: Records | None) -> Data:
        """What the model is called with."""
        return people.mapped(records, lambda rows: self.model.family.arguments(*rows))

    @cached_property
    def trained_on(self) -> Data:
        """The records to train on, as the model is called with them."""
        return self.arguments(people.trained_on(self.data))

    @cached_property
    def held_out(self) -> Data:
        """The outsiders, as the model is called with them."""
        return self.arguments(self.holdout)

    @property
    def watched_arguments(self) -> Data:
        """The watched records, as the model is called with them."""
        return self.arguments(self.watched_records)

    def claimed(self, folder: RunFolder) -> RunFolder:
        """The folder, made where it is not there, with job and model in it."""
        return self._claim(folder, self._write_model)

    def _write_model(self, folder: RunFolder) -> None:
        if is_file(self.job.model):
            keep(self.job.model, folder.model_code)
        self.model.write(folder)

    def metrics(self, draws: Array, measured: Callable[[], dict[str, float]]) -> dict[str, float]:
        """How well the posterior does on the test records, and what a constant answer would.

        `measured()` are the accuracy or error, {} where the model predicts no outcome.
        """
        if not self.tests:
            return {}
        x, y = self.data.x_test, self.data.y_test
        found = {**measured(), "test log predictive density": float(self.model.log_predictive(draws, x, y).mean())}
        if self.data.task != "density" and not self.model.cannot_predict:
            found |= self.model.quality(self.model.expected(draws, x), y)
        return {**found, **(self.model.without_model(y) if self.data.task != "density" else {})}

    def told(self, metrics: dict[str, float], posterior: Intervals, *notes: str) -> CommonDetails:
        """What the report says beside what the learner knows."""
        silent = self.model.cannot_predict if self.data.task != "density" else ""
        return {
            "title": f"Private posterior of a {family_in_words(self.name)} on {self.data.name}",
            "metrics": metrics,
            "preprocessing": self.public,
            "posterior": posterior,
            "notes": (*self.notes("How good the model is was"), *notes, *([silent] if silent else [])),
        }
