"""Samples of a secret posterior that have left it: what follows from them is post-processing and costs nothing more.

`SecretPosterior` releases them; a folder keeps them, and `SavedSamples.load` reads them back. The posterior itself is
in no file: what was not drawn before the process ended is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import storage
from bayesdp.accountant.coverage import Curve
from bayesdp.errors import Array, unmet
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models import predictive
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model
from bayesdp.learn.posterior.base import Expected, labels_of, read_for
from bayesdp.learn.posterior.summary import Summary
from bayesdp.learn.records import Data
from bayesdp.report import Intervals, Report, read


class ReleasedSamples(ABC):
    """`draws`, `mean` and `cov` are on the real line, named by `labels`; `samples` are in the model's own terms."""

    _model: Probabilistic

    @property
    @abstractmethod
    def draws(self) -> Array:
        """All samples drawn so far on the real line, (drawn, d)."""

    @property
    @abstractmethod
    def guarantees(self) -> list[Guarantee]:
        """One per notion, for the samples drawn so far: "dp"; "bdp" and "per-instance" where there were witnesses."""

    @abstractmethod
    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without witnesses."""

    @property
    def samples(self) -> Values:
        """All samples drawn so far as the model names the parameters, along the first axis."""
        return self._named(self._some(1))

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each column of `draws`, such as `w[3]`."""
        return self._model.labels

    @property
    def mean(self) -> Array:
        """The mean of `draws`."""
        return np.asarray(self._some(1).mean(axis=0))

    @property
    def cov(self) -> Array:
        """The covariance of `draws`; at least two are needed."""
        return np.atleast_2d(np.cov(self._some(2), rowvar=False))

    def predict(self, inputs: Data) -> Expected:
        """The expected outcome of each record of `inputs`, averaged over the samples drawn so far (S1: up to ten)."""
        with jax.enable_x64(True):
            answer = predictive.monte_carlo(self._model, jnp.asarray(self._some(1)), jax.tree.map(jnp.asarray, inputs))
            return jax.tree.map(np.asarray, answer)

    def log_predictive(self, data: Data) -> Array:
        """Compute log (1/S) Σ_s p(x_n | z_s) of each record n of `data` over the samples drawn so far (D12)."""
        with jax.enable_x64(True):
            return np.asarray(predictive.log_predictive(self._model, jnp.asarray(self._some(1)), data))

    def summary(self, probability: float = 0.9) -> Intervals:
        """From the samples, of every parameter in the model's terms: its mean, and where a further draw would lie."""
        return Summary(self._model).of_samples(self._some(1), probability)

    def _some(self, least: int) -> Array:
        drawn = self.draws
        if len(drawn) < least:
            raise unmet("n", len(drawn), f"at least {least} sample(s) to be drawn first", f"{len(drawn)}")
        return drawn

    def _named(self, draws: Array) -> Values:
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, jax.vmap(self._model.constrain)(jnp.asarray(draws)))


@dataclass(frozen=True, eq=False)
class SavedSamples(ReleasedSamples):
    """Samples that a folder kept, and the report that they came with."""

    _model: Probabilistic
    released: Array
    report: Report

    @property
    def draws(self) -> Array:
        """All samples on the real line, (drawn, d)."""
        return self.released.copy()

    @property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" and "per-instance" where there were witnesses."""
        return list(self.report.guarantees)

    @cached_property
    def losses(self) -> Array:
        """Per-instance ε at the report's δ of the records that were watched, or of the member witnesses. Sensitive."""
        return np.array(() if self.report.records is None else self.report.records.epsilon)

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without witnesses."""
        found = self.report.curve
        if found is None:
            return None
        return Curve(
            coverage=np.array(found.coverage),
            epsilon=np.array(found.epsilon),
            delta=self.report.delta,
            failure=found.failure,
            limit=found.limit,
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        model: Model | Network | Probabilistic | None = None,
        data: Data = None,
        *,
        params: Values = None,
    ) -> SavedSamples:
        """The samples that `SecretPosterior.save` wrote; `model`, `data` and `params` as for `Posterior.load`.

        Bad input: a folder without such samples, or with a damaged file, gets `InputError`.
        """
        place = RunFolder.open(folder)
        arrays = storage.read_arrays(place.need(place.samples))
        with jax.enable_x64(True):
            known = read_for(labels_of(arrays, place.samples), model, data, params)
        with storage.reading(place.samples):
            return cls(known, np.asarray(arrays["draws"], np.float64), read(place.need(place.report)))
