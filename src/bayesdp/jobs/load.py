"""Whatever a run's folder holds, as the learner gave it: `bd.load("run")`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jax

from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder

if TYPE_CHECKING:
    from bayesdp.learn.posterior.base import Published
    from bayesdp.learn.posterior_sampling.released_samples import SavedSamples


def load(path: str | Path, *, trust_code: bool = False) -> Run | Published | SavedSamples:
    """The run or the posterior that lies in `path`: what `save`, `bayesdp train` or `bayesdp fit` left there.

    A posterior of `bayesdp fit` has its model back. One that was saved in Python has numbers, but no model to predict
    with: `Posterior.load` and `SampledPosterior.load` take it.

    Args:
        path: the folder.
        trust_code: the model may be a file in the folder, which is then run as a program.

    Returns:
        A `Run`, a `Posterior`, a `SampledPosterior`, or the samples of a secret posterior.

    Bad input: a folder without a finished run, or with a damaged file, gets `InputError`.

    Examples:
        >>> import jax.numpy as jnp, numpy as np, optax, tempfile
        >>> plan = bd.SGD(sampling_rate=0.5, steps=4, optimizer=optax.sgd(0.1), noise_multiplier=2.0)
        >>> run = plan.fit(lambda w, record: (record - w) ** 2, jnp.zeros(()), np.ones(50, np.float32))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = run.save(folder)
        ...     bd.load(folder).guarantees == run.guarantees
        True
    """
    folder = RunFolder.open(path)
    if not (folder.posterior.exists() or folder.samples.exists()):
        return Run.load(path)
    # Only posteriors need what follows, which takes long to load.
    from bayesdp.jobs.saved.posterior import SavedPosterior
    from bayesdp.learn.posterior.base import kind_of
    from bayesdp.learn.posterior.gaussian import Posterior
    from bayesdp.learn.posterior.samples import SampledPosterior
    from bayesdp.learn.posterior_sampling.released_samples import SavedSamples

    secret = folder.samples.exists()
    with jax.enable_x64(secret):  # in which samples of a secret posterior are computed with
        model = SavedPosterior.read(folder, trust_code=trust_code).reading if folder.model.exists() else None
    if secret:
        return SavedSamples.load(path, model)
    sampled = kind_of(folder) == SampledPosterior.kind
    return SampledPosterior.load(path, model) if sampled else Posterior.load(path, model)
