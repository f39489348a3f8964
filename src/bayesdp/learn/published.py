"""What every posterior that may be published has in common, however it was found: draws in, answers out.

A posterior here is post-processing of what its run released under its "dp" guarantee: samples, intervals and
predictions cost nothing more.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
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

if TYPE_CHECKING:
    from bayesdp.report import Intervals

METHODS = ("monte-carlo", "probit-scaled")
DRAWS = 200
"""Draws of z for a Monte Carlo prediction unless told otherwise."""


SHOWN = 1000
"""Parameters whose intervals a report has at most: nobody looks at those of a network's weights."""


class Published(ABC):
    """`model`, the `run` it came from, and `notes` for the report; z are parameters on the real line, flattened."""

    model: Probabilistic
    run: Run
    notes: tuple[str, ...]
    mean: Any
    cov: Any

    @abstractmethod
    def draw(self, n: int, seed: int | None = None) -> jax.Array:
        """`n` draws of z, (n, d)."""

    @abstractmethod
    def interval(self, probability: float = 0.9) -> Array:
        """Central credible intervals on the real line, (d, 2), in the order of `labels`."""

    @abstractmethod
    def summary(self, probability: float = 0.9) -> Intervals:
        """Mean and central credible interval of every parameter in the model's own terms."""

    @abstractmethod
    def to_arviz(self) -> Any:
        """Samples as ArviZ InferenceData."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """What posterior.npz holds."""

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each entry of z, such as `w[3]`."""
        return self.model.labels

    @property
    def std(self) -> Array:
        """Standard deviations, in the order of `labels`."""
        return np.asarray(np.sqrt(np.diagonal(self.cov)))

    @cached_property
    def factor(self) -> Array:
        """Lower triangular with factor factorᵀ = cov."""
        return np.asarray(np.linalg.cholesky(self.cov), np.float64)

    @cached_property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" and "per-instance" where there were witnesses."""
        return self.run.guarantees

    def sample(self, n: int, seed: int | None = None) -> Values:
        """`n` draws of the parameters as the model names them, the draws along the first axis."""
        return self.named(self.draw(n, seed))

    def named(self, draws: Any) -> Values:
        """Draws of z (n, d) as the model names the parameters, the draws along the first axis."""
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(self.model.constrain))(draws))

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

    def report(self, path: str | Path, **details: Any) -> Path:
        """Write the run's report; `details` as for `Run.report`."""
        return self.run.report(path, **self._details(details))

    def save(self, folder: str | Path, **details: Any) -> Path:
        """Write what a run writes, and posterior.npz: labels, mean and what the posterior is made of."""
        target = self.run.save(folder, **self._details(details))
        files.write_arrays(target / "posterior.npz", {"labels": np.array(self.labels), **self.arrays()})
        return target

    def _details(self, details: dict[str, Any]) -> dict[str, Any]:
        notes: Sequence[str] = details.get("notes", ())
        known = {"title": "Private posterior", "released": "the posterior", **details, "notes": (*self.notes, *notes)}
        if "posterior" in known or len(self.labels) > SHOWN:
            return known
        return {**known, "posterior": self.summary()}


def arviz() -> Any:
    """The library. Bad input: it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version at import
        try:
            import arviz
        except ImportError:
            raise errors.InputError('Expected ArviZ to be installed. Run pip install "bayesdp[arviz]".') from None
    return arviz


def inference_data(values: Values) -> Any:
    """Parameters with leading axes (chains, draws) as ArviZ InferenceData."""
    named = {
        jax.tree_util.keystr(place, simple=True, separator=".") or "parameters": np.asarray(leaf)
        for place, leaf in jax.tree_util.tree_leaves_with_path(values)
    }
    return arviz().from_dict(posterior=named)
