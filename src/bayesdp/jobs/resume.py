"""Coming back to a run's folder: what is read of it, and its job with the records at hand, whatever kind it is.

job.json           what was to be done; the records are loaded anew, and outsiders set apart as before
checkpoint.npz     where it was interrupted, fingerprint.json whether it is the same job (`learn.loop.checkpoint`)

Whether a checkpoint is taken up is decided in `prepared`, what the ledger says to it in `charged`.

`resume` needs all of these, `unlearn` and `study` the job alone. Only what a kind of job needs is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayesdp import storage
from bayesdp.jobs.base import POSTERIOR_FORMAT
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn.loop.run_folder import RunFolder

if TYPE_CHECKING:
    from bayesdp.jobs.posterior_job import PosteriorJob
    from bayesdp.jobs.prepared_posterior_vi import PreparedPosteriorVI
    from bayesdp.jobs.prepared_sgd import PreparedSGD
    from bayesdp.jobs.prepared_vi import PreparedVI


def read_job(folder: RunFolder, *, trust_code: bool = False) -> SGDJob | PosteriorJob:
    """The job of a run's folder. Bad input: a folder without one, or a damaged file: `InputError`.

    `trust_code`: the model may be a file in the folder, which is then run as a program.
    """
    found = storage.read_json(folder.job_file())
    if not isinstance(found, dict) or found.get("format") != POSTERIOR_FORMAT:
        return SGDJob.read(folder)
    from bayesdp.jobs.posterior_job import PosteriorJob

    return PosteriorJob.read(folder, trust_code=trust_code)


def prepare(wanted: SGDJob | PosteriorJob) -> PreparedSGD | PreparedVI | PreparedPosteriorVI:
    """A job of either kind with its records at hand. Bad input: see `prepared.gather`."""
    if isinstance(wanted, SGDJob):
        from bayesdp.jobs.prepared_sgd import prepare as prepare_sgd

        return prepare_sgd(wanted)
    return prepare_posterior(wanted)


def prepare_posterior(wanted: PosteriorJob) -> PreparedVI | PreparedPosteriorVI:
    """A job for a posterior with its records at hand, by whichever method. Bad input: see `prepared.gather`."""
    from bayesdp.jobs.prepared import gather

    gathered = gather(wanted)
    method = gathered[0].method
    if method == "newton":
        from bayesdp.jobs.prepared_newton import PreparedNewton

        return PreparedNewton(*gathered)
    if method == "vi":
        from bayesdp.jobs.prepared_vi import PreparedVI

        return PreparedVI(*gathered)
    from bayesdp.jobs.prepared_posterior_vi import PreparedPosteriorVI

    return PreparedPosteriorVI(*gathered)
