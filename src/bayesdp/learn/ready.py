"""A job with its records at hand, and the folder that it is to fill: what every kind of job shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp.data import Dataset
from bayesdp.errors import refuse, whole
from bayesdp.learn import checkpoint, files
from bayesdp.learn.assignment import NAME, Assignment
from bayesdp.learn.everyone import EVERYONE
from bayesdp.rounding import down

DATA = "data.json"
"""What tells the records of a run from others."""

LAST = "report.html"
"""The file that is written last."""

Records = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Ready:
    """A settled `job`, the records to train on and to test on (`data`), outsiders (`audit`), and watched records.

    `watch` is a pair like `audit`, "everyone", or None.
    """

    job: Any
    data: Dataset
    audit: Records | None
    watch: Any

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The numbers of the training records in their source, from 1."""
        held = len(self.data.x)
        return 1 + (np.arange(held) if self.data.places is None else self.data.places[:held])

    @property
    def watched(self) -> npt.NDArray[np.int64]:
        """The numbers of the watched records, in the order of their accountant."""
        return self.numbers if self.job.watch == EVERYONE else np.array(self.job.watch, np.int64)

    @property
    def tests(self) -> int:
        """How many records there are to test on."""
        return len(self.data.x_test)

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

    def notes(self, measured: str) -> list[str]:
        """What the report of any run says; `measured`: what was measured on the test records."""
        notes = [
            "Everything that was not given was chosen from public quantities: the number, shape and kind of records."
        ]
        if self.tests:
            notes.append(
                f"{measured} measured on {self.tests:,} records that were not trained on, without noise: "
                "the guarantees do not speak for these records."
            )
        if self.audit is not None:
            notes.append(f"{len(self.audit[1]):,} records were held out of the training data to speak for outsiders.")
        if self.too_few:
            notes.append(self.too_few)
        return notes

    def claim(self, target: Path) -> None:
        """Make the folder and leave the job in it."""
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise refuse("out", str(target), "to be a folder that can be made", str(problem)) from None
        self.job.write(target)
        # Lets anybody who knows all records but one test a guess at that one: for the owner's eyes.
        files.write_json(target / DATA, self._digests(), private=True)

    def check_same(self, target: Path) -> None:
        """Refuse records that are not those of the run in `target`: a number would be told to the wrong person."""
        if not (target / DATA).is_file():
            raise refuse("run", str(target), f"to have a {DATA}, which says what it was trained on")
        if files.read_json(target / DATA) != self._digests():
            raise refuse(
                "run",
                str(target),
                f"to have been trained on the records that {self.data.name} holds now",
                "They have changed since: bring back the file as it was.",
            )

    def _digests(self) -> dict[str, str | None]:
        return {"data": checkpoint.digest((self.data.x, self.data.y)), "audit": checkpoint.digest(self.audit)}


def gather(wanted: Assignment) -> dict[str, Any]:
    """The parts of a `Ready`: the records of a job, the outsiders set apart, and the job with nothing left open.

    Bad input: see `data.load` and the job's `settled`; a watched record that is not there.
    """
    data = wanted.load()
    settled = wanted.settled(data)
    watch = _watched(data, settled.watch)
    audit = None
    if settled.audit:
        # Another stream than that which draws the members.
        data, audit = data.split(settled.audit, np.random.default_rng([settled.draw or 0, 1]))
    return {"job": settled, "data": data, "audit": audit, "watch": watch}


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything, another run above all: nothing is ever overwritten."""
    if folder.exists() and not folder.is_dir():
        raise refuse("out", str(folder), "to be a folder", "There is a file of that name.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / NAME).exists():
        raise refuse("out", str(folder), "to be new or empty", "It holds other files. Choose another folder.")
    hint = "It holds another run." if finished(folder) else "It holds an unfinished run: go on with it by resume, or"
    raise refuse("out", str(folder), "to be new or empty", f"{hint} Choose another folder.".replace("or C", "or c"))


def finished(folder: Path) -> bool:
    """Whether the run in `folder` has come to its end and everything is written."""
    return (folder / LAST).exists() and not (folder / checkpoint.NAME).exists()


def check_unfinished(folder: Path) -> None:
    """Refuse a folder whose run has come to its end."""
    if finished(folder):
        raise refuse("run", str(folder), "to hold an unfinished run", "This one has finished: see its report.html.")


def forget_checkpoint(folder: Path) -> None:
    """Take the checkpoint away, as the last thing: whoever is interrupted before can still come back for the result."""
    for name in (checkpoint.NAME, checkpoint.PLAN):
        (folder / name).unlink()


def _watched(data: Dataset, numbers: tuple[int, ...] | str) -> Records | str | None:
    """The records of these numbers, counted from 1 in the order of their source; "everyone" as it is."""
    if isinstance(numbers, str):
        return numbers
    if not numbers:
        return None
    x, y = np.concatenate([data.x, data.x_test]), np.concatenate([data.y, data.y_test])
    for number in numbers:
        whole("watch", number, least=1, most=len(y), hint=f"There are {len(y):,} records, counted from 1.")
    places = np.arange(len(y)) if data.places is None else np.argsort(data.places)
    rows = places[np.array(numbers) - 1]
    return x[rows], y[rows]
