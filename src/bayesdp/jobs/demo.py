"""What `bayesdp demo` trains: a linear model that tells benign tumours from malignant ones, on data that is built in.

569 patients, of whom 114 are kept for testing and 150 as outsiders, who can just speak for nine people in ten (H5). The
clip norm and the number of steps are higher than the defaults for so few records, which costs little accuracy here and
leaves most people's gradients as they are, and small. The setting shows what the three notions can look like, not how
large their gap usually is. Patient 20 is an ordinary one, picked for the illustration.
"""

from __future__ import annotations

from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.sgd_job import SGDJob

EPSILON, DELTA, COVERAGE, PATIENT = 2.0, 1e-5, 0.75, 20


def job(seed: int | None = None) -> SGDJob:
    """The demo as a job: private unless there is a seed. Bad input: a seed that is not a whole number ≥ 0."""
    return SGDJob(
        data=DataSource(name="breast-cancer"),
        model="logistic",
        epsilon=EPSILON,
        delta=DELTA,
        optimizer="adam",
        clip_norm=4.0,
        steps=150,
        holdout=150,
        coverage=COVERAGE,
        watch=(PATIENT,),
        seed=seed,
    )
