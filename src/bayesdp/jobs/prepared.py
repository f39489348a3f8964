"""A job with its records at hand, and the way from there to a finished folder: what every kind of job shares.

    prepared.begin(folder)   →  a run whose folder is claimed   →  run(progress)  →  Finished: result, report, costs
    prepared.resume(folder)  →  the same run where it was interrupted

Everything is refused before the folder is claimed: a refused job leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bayesdp import storage
from bayesdp.accountant import Curve
from bayesdp.data import Dataset
from bayesdp.errors import Array, refuse
from bayesdp.guarantee import Guarantee
from bayesdp.jobs import people
from bayesdp.jobs.base import Job
from bayesdp.jobs.data_source import Labelled
from bayesdp.jobs.people import Records, Whom
from bayesdp.jobs.table_column import table_with
from bayesdp.learn.loop.fingerprint import digest
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.witnesses import EVERYONE
from bayesdp.learn.records import Data
from bayesdp.report import Report
from bayesdp.rounding import down

Progress = Callable[[Run], None]
"""Told of a run so far."""


class Losses(Protocol):
    """An accountant of single records."""

    def exposure(self, delta: float) -> Array: ...


class Account(Protocol):
    """What was promised and to whom: a `Run`, or a `SecretPosterior`."""

    @property
    def guarantees(self) -> list[Guarantee]: ...
    @property
    def instance(self) -> Losses | None: ...
    def curve(self) -> Curve | None: ...


JobT = TypeVar("JobT", bound=Job)
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Finished(Generic[Result]):
    """A job that was done: what came out, how well it does on the test records, its report, what it cost, and what
    should be said of how well it does.
    """

    result: Result
    metrics: Mapping[str, float]
    report: Report
    account: Account
    remarks: tuple[str, ...] = ()


UnderWay = Callable[[Progress | None], Finished[Result]]
"""A run that is taken to its end when called."""


class Gathered(NamedTuple, Generic[JobT]):
    """A job with nothing left open, and its records: to train and test on, held out, and watched.

    `groups`: of the outsiders and then of the training records, where a column of them is named.
    """

    job: JobT
    data: Dataset
    holdout: Records | None
    watch: Records | Literal["everyone"] | None
    groups: list[str] | None


@dataclass(frozen=True, eq=False)
class PreparedJob(ABC, Generic[JobT, Result]):
    """A settled `job`, the records to train on and to test on (`data`), outsiders (`holdout`), and watched records."""

    shows_progress: ClassVar[bool] = True
    """Whether there is anything to be seen before the end."""

    job: JobT
    data: Dataset
    holdout: Records | None
    watch: Records | Literal["everyone"] | None
    groups: list[str] | None = None

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers the model has."""

    @property
    @abstractmethod
    def plan(self) -> object:
        """The learner's plan."""

    @property
    @abstractmethod
    def plan_in_words(self) -> list[str]:
        """What will be done, all of it public: a sentence each."""

    @property
    @abstractmethod
    def trained_on(self) -> Data:
        """The records to train on, as the learner gets them."""

    @property
    @abstractmethod
    def held_out(self) -> Data:
        """The outsiders, as the learner gets them."""

    def begin(self, folder: str | Path) -> UnderWay[Result]:
        """The run before its first step, its folder claimed. Bad input: a folder that is not free, no such plan."""
        place = RunFolder(Path(folder))
        place.check_free()
        return self._begun(place)

    @abstractmethod
    def _begun(self, folder: RunFolder) -> UnderWay[Result]:
        """The run before its first step: what cannot be learned is refused here, before anything is written."""

    @abstractmethod
    def resume(self, folder: str | Path) -> UnderWay[Result]:
        """The run at its last checkpoint, or before its first step: without a checkpoint nothing has come out yet.

        Bad input: a run that has finished, or other data than it began with: `InputError`.
        """

    def _taken_up(self, folder: str | Path, reopened: Callable[[RunFolder], UnderWay[Result]]) -> UnderWay[Result]:
        """`resume` for a job that keeps checkpoints; `reopened` reads the one in a folder."""
        place = RunFolder.open(folder)
        place.check_resumable()
        if place.checkpoint.exists():
            return reopened(place)
        with place.locked():
            place.fingerprint.unlink(missing_ok=True)  # no step was taken yet
        return self._begun(place)

    def fit(self, folder: str | Path, progress: Progress | None = None) -> Result:
        """Learn, and leave everything in `folder`, which must be new or empty: see `RunFolder.check_free`."""
        return self.begin(folder)(progress).result

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The numbers of the training records in their source, from 1."""
        return people.numbers(self.data)

    @property
    def watched(self) -> npt.NDArray[np.int64]:
        """The numbers of the watched records, in the order of their accountant."""
        return self.numbers if self.job.watch == EVERYONE else np.array(self.job.watch, np.int64)

    @property
    def watched_names(self) -> tuple[str, ...]:
        """What the report calls each of the watched: a record by its number in the source, a person by name."""
        unit = "record" if self.data.people is None else "person"
        return tuple(f"{unit} {one}" for one in self.whom)

    @property
    def whom(self) -> list[Whom]:
        """What the watched are called: numbers of records, or names of people."""
        return people.called(self.data, self.watched.tolist())

    @property
    def watched_records(self) -> Records | None:
        """The records of these numbers; None where nobody is watched."""
        return people.trained_on(self.data) if isinstance(self.watch, str) else self.watch

    def witnesses(self, members: npt.NDArray[np.int64]) -> list[Labelled]:
        """Outsiders, `members` and watched records, those that there are: the order of `Run.losses`. None of people."""
        if self.data.people is not None:
            return []  # a model is right or wrong about rows
        parts = (self.holdout, Labelled(self.data.x[members], self.data.y[members]), self.watched_records)
        return [part for part in parts if isinstance(part, Labelled) and len(part.y)]

    def groups_of(self, members: npt.NDArray[np.int64]) -> list[str] | None:
        """The group, or else class, of each outsider and of `members`, in this order; None for none or nobody."""
        held = people.count(self.holdout)
        if self.groups is not None:
            own = self.groups[held:]
            return [*self.groups[:held], *(own[member] for member in members)] or None
        if self.data.people is not None:
            return None  # the rows of a person may be of several classes
        outsiders = [*self.holdout.y] if isinstance(self.holdout, Labelled) else []
        answers, names = [*outsiders, *self.data.y[members]], self.data.classes
        return [str(names[int(one)]) for one in answers] if names and answers else None

    @property
    def tests(self) -> int:
        """How many records there are to test on."""
        return len(self.data.x_test)

    @property
    def public_records(self) -> int:
        """N: from the declared number of records, else how many are trained on."""
        declared = self.job.expected_records
        return self.data.size if declared is None else declared

    @property
    def public(self) -> tuple[str, ...]:
        """What was taken from the data and is public, a sentence each."""
        return self.data.public if self.job.num_records is None else self.data.public_beside_size

    @property
    def too_few(self) -> str:
        """Words for witnesses who cannot speak for the share that is asked for; else none."""
        share = self.job.supported_by(people.count(self.holdout))
        if share is None or share >= self.job.coverage:
            return ""
        return (
            f"So few witnesses can speak for at most {down(100 * share, 3)} % of people. The Bayesian ε for "
            f"{100 * self.job.coverage:g} % is therefore that of everybody."
        )

    def notes(self, measured: str) -> list[str]:
        """What the report of any run says; `measured`: what was measured on the test records."""
        notes = [
            "Everything that was not given was chosen from public quantities: the number, shape and kind of records."
        ]
        rows = "records" if self.data.people is None else "rows"
        if self.tests:
            notes.append(
                f"{measured} measured on {self.tests:,} {rows} that were not trained on, without noise: "
                f"the guarantees do not speak for these {rows}."
            )
        if self.holdout is not None:
            notes.append(
                f"{people.count(self.holdout):,} records were held out of the training data to speak for outsiders."
            )
        if self.too_few:
            notes.append(self.too_few)
        return notes

    def check_same(self, folder: RunFolder) -> None:
        """Refuse records that are not those of the run in `folder`: a number would be told to the wrong person."""
        if not folder.data.is_file():
            raise refuse("run", str(folder.path), f"to have a {folder.data.name}, which says what it was trained on")
        if storage.read_json(folder.need(folder.data)) != self._digests():
            raise refuse(
                "run",
                str(folder.path),
                f"to have been trained on the records that {self.data.name} holds now",
                "They have changed since: bring back the file as it was.",
            )

    def _digests(self) -> dict[str, str | None]:
        """What tells these records from others."""
        return {"data": digest(self.trained_on), "holdout": digest(self.held_out)}

    def _keep_digests(self, folder: RunFolder, digests: dict[str, str | None]) -> None:
        # They let anybody who knows all records but one test a guess at that one: for the owner's eyes.
        storage.write_json(folder.data, {name: digests[name] for name in ("data", "holdout")})
        folder.seal(folder.data, folder.job, *folder.unlisted)

    def _claim(self, folder: RunFolder, write: Callable[[RunFolder], None]) -> RunFolder:
        """The folder, made where it is not there: what the model is, which `write` leaves there, and then the job.

        Bad input: a folder that another process works on, or that another job has claimed meanwhile.
        """
        place = RunFolder.make(folder.path, "out")
        with place.locked():
            if not place.begun:
                write(place)
                place.seal(place.model, place.model_code)
                self.job.write(place)
            elif type(self.job).read(place) != self.job:
                raise refuse("out", str(folder.path), "to be new or empty", "Another run has just begun there.")
        return place

    def _close(self, folder: RunFolder) -> None:
        """Everything is written: the checkpoint is not needed any more, but what the run was trained on."""
        self._keep_digests(folder, storage.read_json(folder.fingerprint))
        folder.forget_checkpoint()


def gather(wanted: JobT) -> Gathered[JobT]:
    """The records of a job, the outsiders set apart, and the job with nothing left open.

    Bad input: see `data.load` and the job's `settled`; a watched record that is not there.
    """
    with people.speaking_of(wanted.unit):
        data = every = wanted.load()
        if not isinstance(wanted.watch, str):
            wanted = dataclasses.replace(wanted, watch=people.numbered(data, wanted.watch))
        settled = wanted.settled(data)
        watch = _watched(data, settled.watch)
        holdout = None
        if settled.holdout:
            # Those who are held out had no part in a private preparation: the coins are the same (H5, H22).
            share = settled.holdout / settled.pool(data) if data.paid is None else data.paid.held_out
            data, outsiders = data.set_apart(share, draw=settled.draw)
            holdout = people.held_out(every, data, Labelled(*outsiders))
            settled.check_share(people.count(holdout))
        return Gathered(settled, data, holdout, watch, _groups(settled, every, data))


def _groups(job: Job, every: Dataset, data: Dataset) -> list[str] | None:
    """The groups of those of `every` who are not in `data`, then of those who are: training records only."""
    if job.groups is None:
        return None
    texts = table_with("groups", job.groups, job.data).texts(job.groups)
    if every.people is not None:
        return people.groups(every, data, job.groups, texts)
    places, trained = (
        (np.arange(len(texts)) if one.places is None else one.places)[: len(one.x)] for one in (every, data)
    )
    return [texts[place] for place in [*places[~np.isin(places, trained)], *trained]]


def _watched(data: Dataset, numbers: tuple[Whom, ...] | Literal["everyone"]) -> Records | Literal["everyone"] | None:
    """The records of these numbers, counted from 1 in the order of their source; "everyone" as it is."""
    if isinstance(numbers, str):
        return numbers
    if not numbers:
        return None
    return people.watched(data, [int(one) for one in numbers])
