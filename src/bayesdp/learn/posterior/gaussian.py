"""A posterior that may be published under its run's "dp" guarantee: z ~ N(μ, Σ) on the real line, mapped to the model.

Everything here is computed from μ and Σ, which are released: samples, intervals and predictions cost nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors, storage
from bayesdp.errors import Array
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.posterior.base import InferenceData, Note, Published, inference_data
from bayesdp.learn.posterior.summary import Summary
from bayesdp.mechanism.key import fresh_key, seeded_key
from bayesdp.report import Intervals, Report
from bayesdp.storage import Arrays


@dataclass(frozen=True, eq=False)
class Posterior(Published):
    """N(mean, cov) over the parameters on the real line, and the run that it came from.

    `labels` names the entries of `mean`; for parameters that are real numbers these are the parameters themselves.

    Args:
        model: what was fitted.
        mean: of the Gaussian.
        cov: its covariance.
        run: the training, with its guarantees.
        notes: what a reader should know of the result.
        variational: the guide's own posterior where this one was corrected for the noise.
        doubts: for each entry why its interval is not to be believed, in words; empty where nothing speaks against it,
            or nothing was checked.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(1.0, 1.0, 400).astype(np.float32)
        >>> model = bd.NormalPrior(np.zeros(1), 4.0), lambda mean, record: -((record - mean[0]) ** 2) / 2
        >>> posterior = bd.VI(sampling_rate=0.5, steps=30, delta=1e-4).calibrate(epsilon=2.0).fit(model, x)
        >>> posterior.summary(0.9).names, posterior.draw(5).shape
        (('parameters[0]',), (5, 1))
    """

    kind: ClassVar[str] = "a Gaussian"

    model: Probabilistic
    mean: Array
    cov: Array
    run: Run
    notes: tuple[str, ...] = ()
    variational: Posterior | None = None
    doubts: tuple[str, ...] = ()

    def draw(self, n: int, seed: int | None = None) -> jax.Array:
        """`n` draws of z, (n, d)."""
        n = errors.whole("n", n, least=1)
        key = fresh_key() if seed is None else seeded_key(seed)
        normals = jax.random.normal(key, (n, len(self.mean)))
        return jnp.asarray(self.mean, jnp.float32) + normals @ jnp.asarray(self.factor, jnp.float32).T

    def interval(self, probability: float = 0.9) -> Array:
        """Central credible intervals on the real line, (d, 2), in the order of `labels`."""
        from scipy.stats import norm

        half = norm.ppf(0.5 + errors.probability("probability", probability) / 2) * self.std
        return np.stack([self.mean - half, self.mean + half], axis=1)

    def to_arviz(self, draws: int = 1000, seed: int | None = None) -> InferenceData:
        """`draws` samples as ArviZ InferenceData with one chain."""
        return inference_data(jax.tree.map(lambda leaf: leaf[None], self.sample(draws, seed)))

    def arrays(self) -> Arrays:
        """Mean, covariance and doubts."""
        doubts = {"doubts": np.array(self.doubts, dtype=str)} if self.doubts else {}
        return {"mean": self.mean, "cov": self.cov, **doubts}

    def write(self, folder: RunFolder, report: Report) -> Path:
        """Save with a report that was made of this posterior before; the guide's own goes to guide.npz."""
        if self.variational is not None:
            notes = np.array(self.variational.notes, dtype=str)
            storage.write_arrays(folder.guide, {"notes": notes, **self.variational.arrays()})
        return super().write(folder, report)

    @classmethod
    def _restored(cls, model: Probabilistic, run: Run, folder: RunFolder, arrays: Arrays, note: Note) -> Posterior:
        doubts = tuple(map(str, arrays["doubts"])) if "doubts" in arrays else ()
        found = cls(model, arrays["mean"], arrays["cov"], run, tuple(note["notes"]), doubts=doubts)
        if not folder.guide.exists():
            return found
        own = storage.read_arrays(folder.need(folder.guide))
        guide = cls(model, own["mean"], own["cov"], run, tuple(map(str, own["notes"])))
        return replace(found, variational=guide)

    def summary(self, probability: float = 0.9) -> Intervals:
        """Mean and central credible interval of every parameter in the model's own terms."""
        return Summary(self.model).of_gaussian(self.mean, self.cov, probability, self.doubts)
