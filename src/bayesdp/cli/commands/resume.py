"""`bayesdp resume`: going on with a run that was interrupted."""

from __future__ import annotations

from bayesdp.cli import options, shared_options, terminal
from bayesdp.cli.learning import carry_out, start_jax


def resume(
    run: shared_options.RunFolder,
    moved: shared_options.Moved = False,
    trust_code: shared_options.TrustCode = False,
    json: options.Json = False,
) -> None:
    """
    Go on with a run of train or fit that was interrupted.

    The result is the one that the run would have had: parameters, optimiser, noise and tallies go on from the last
    checkpoint. DATA must be where it was, and as it was.

    For example:
      bayesdp resume run
    """
    start_jax()

    from bayesdp.jobs.resume import prepare, read_job
    from bayesdp.learn.loop import checkpoint
    from bayesdp.learn.loop.run_folder import RunFolder

    folder = RunFolder(run)
    job = read_job(folder, trust_code=trust_code)
    folder.check_resumable()
    if moved:
        checkpoint.moved(run)
    with terminal.waiting("Loading the records"):
        prepared = prepare(job)
    carry_out(prepared, run, json=json, resumed=True)
