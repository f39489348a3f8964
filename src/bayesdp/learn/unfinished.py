"""A run that was interrupted, whatever kind of job it is, ready to go on."""

from __future__ import annotations

from pathlib import Path

from bayesdp.learn import files
from bayesdp.learn.assignment import path_of
from bayesdp.learn.fit_job import FitJob
from bayesdp.learn.fitting import Fitting, Sampling, prepare_fit
from bayesdp.learn.job import Job
from bayesdp.learn.prepared import Prepared, prepare


def job_of(folder: Path) -> Job | FitJob:
    """The job of a run's folder. Bad input: a folder without one, or a damaged file: `InputError`."""
    found = files.read_json(path_of(folder))
    fits = isinstance(found, dict) and found.get("format") == FitJob.FORMAT
    return FitJob.read(folder) if fits else Job.read(folder)


def prepare_any(wanted: Job | FitJob) -> Prepared | Fitting | Sampling:
    """A job of either kind with its records at hand. Bad input: see `ready.gather`."""
    return prepare(wanted) if isinstance(wanted, Job) else prepare_fit(wanted)
