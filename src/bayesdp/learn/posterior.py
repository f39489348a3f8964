"""A posterior that may be published under its run's "dp" guarantee: z ~ N(μ, Σ) on the real line, mapped to the model.

Everything here is computed from μ and Σ, which are released: samples, intervals and predictions cost nothing more.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.learn import files, predictive
from bayesdp.learn.probabilistic import Data, Probabilistic, Values
from bayesdp.learn.run import Run
from bayesdp.mechanism.key import fresh_key, seeded_key

if TYPE_CHECKING:
    from bayesdp.report import Intervals

METHODS = ("monte-carlo", "probit-scaled")
DRAWS = 200
"""Draws of z for a Monte Carlo prediction unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """N(mean, cov) over the parameters on the real line, and the run that it came from.

    `labels` names the entries of `mean`; for parameters that are real numbers these are the parameters themselves.
    `variational` is the guide's own posterior where this one was corrected for the noise.
    """

    model: Probabilistic
    mean: Array
    cov: Array
    run: Run
    notes: tuple[str, ...] = ()
    variational: Posterior | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each entry of `mean`, such as `w[3]`."""
        return self.model.labels

    @property
    def std(self) -> Array:
        """Standard deviations, in the order of `labels`."""
        return np.sqrt(np.diagonal(self.cov))

    @cached_property
    def factor(self) -> Array:
        """Lower triangular with factor factorᵀ = cov."""
        return np.asarray(np.linalg.cholesky(self.cov), np.float64)

    @cached_property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" and "per-instance" where there were witnesses."""
        return self.run.guarantees

    def draw(self, n: int, seed: int | None = None) -> jax.Array:
        """`n` draws of z, (n, d)."""
        n = errors.whole("n", n, least=1)
        key = fresh_key() if seed is None else seeded_key(seed)
        normals = jax.random.normal(key, (n, len(self.mean)))
        return jnp.asarray(self.mean, jnp.float32) + normals @ jnp.asarray(self.factor, jnp.float32).T

    def sample(self, n: int, seed: int | None = None) -> Values:
        """`n` draws of the parameters as the model names them, the draws along the first axis."""
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(self.model.constrain))(self.draw(n, seed)))

    def predict(
        self,
        inputs: Data,
        *,
        method: Literal["monte-carlo", "probit-scaled"] = "monte-carlo",
        draws: int = DRAWS,
        seed: int | None = None,
    ) -> Any:
        """The expected outcome of each record of `inputs`: a probability for yes/no, class probabilities, or a mean.

        `inputs` is what the model is called with when nothing is observed: `x`, `(x,)` or `{"x": x}`.
        "monte-carlo" averages over `draws` of the parameters; "probit-scaled" (D11) is for yes/no outcomes.
        """
        errors.one_of("method", method, METHODS)
        inputs = jax.tree.map(jnp.asarray, inputs)
        if method == "monte-carlo":
            answer = predictive.monte_carlo(self.model, self.draw(draws, seed), inputs)
        else:
            answer = predictive.probit_scaled(self.model, jnp.asarray(self.mean), jnp.asarray(self.factor), inputs)
        return jax.tree.map(np.asarray, answer)

    def log_predictive(self, data: Data, *, draws: int = DRAWS, seed: int | None = None) -> Array:
        """For each record n of `data`, outcome included: log (1/S) Σ_s p(x_n | z_s) (D12)."""
        return np.asarray(predictive.log_predictive(self.model, self.draw(draws, seed), data))

    def interval(self, probability: float = 0.9) -> Array:
        """Central credible intervals on the real line, (d, 2), in the order of `labels`."""
        from scipy.stats import norm

        half = norm.ppf(0.5 + errors.probability("probability", probability) / 2) * self.std
        return np.stack([self.mean - half, self.mean + half], axis=1)

    def to_arviz(self, draws: int = 1000, seed: int | None = None) -> Any:
        """`draws` samples as ArviZ InferenceData with one chain."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version at import
            try:
                import arviz
            except ImportError:
                raise errors.InputError('Expected ArviZ to be installed. Run pip install "bayesdp[arviz]".') from None
        values = self.sample(draws, seed)
        named = values if isinstance(values, dict) else {"parameters": values}
        return arviz.from_dict(posterior={name: np.asarray(value)[None] for name, value in named.items()})

    def report(self, path: str | Path, **details: Any) -> Path:
        """Write the run's report; `details` as for `Run.report`."""
        return self.run.report(path, **self._details(details))

    def save(self, folder: str | Path, **details: Any) -> Path:
        """Write what a run writes, and posterior.npz: labels, mean and cov."""
        target = self.run.save(folder, **self._details(details))
        arrays = {"labels": np.array(self.labels), "mean": self.mean, "cov": self.cov}
        files.write_arrays(target / "posterior.npz", arrays)
        return target

    def _details(self, details: dict[str, Any]) -> dict[str, Any]:
        notes: Sequence[str] = details.get("notes", ())
        known = {"title": "Private posterior", "released": "the posterior", **details, "notes": (*self.notes, *notes)}
        return known if "posterior" in known else {**known, "posterior": self.summary()}

    def summary(self, probability: float = 0.9) -> Intervals:
        """Mean and central credible interval of every parameter in the model's own terms."""
        from bayesdp.learn.summary import Summary

        return Summary(self.model).of_gaussian(self.mean, self.cov, probability)
