"""What every posterior that may be published has in common, however it was found: draws in, answers out.

A posterior here is post-processing of what its run released under its "dp" guarantee: samples, intervals and
predictions cost nothing more.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors, storage
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.report import Details
from bayesdp.learn.loop.run import Run
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models import predictive
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model, read_model
from bayesdp.learn.records import Data
from bayesdp.report import Intervals, Report, write
from bayesdp.storage import Arrays

FORMAT, VERSION = "bayesdp/posterior", 1

Note = Mapping[str, Any]
"""What posterior.json holds."""

Expected = Any
"""An array (records,), or (records, classes); where the model observes several sites, a dict of these by site."""

InferenceData = Any
"""ArviZ's. The library is not loaded for its name."""

METHODS = ("monte-carlo", "probit-scaled")
DRAWS = 200
"""Draws of z for a Monte Carlo prediction unless told otherwise."""


SHOWN = 1000
"""Parameters whose intervals a report has at most: nobody looks at those of a network's weights."""


class Published(ABC):
    """`model`, the `run` it came from, and `notes` for the report; z are parameters on the real line, flattened."""

    kind: ClassVar[str]
    """What posterior.json calls it."""

    model: Probabilistic
    run: Run
    notes: tuple[str, ...]

    if TYPE_CHECKING:  # fields of one kind of posterior, computed by another

        @property
        def mean(self) -> Array:
            """(d,), in the order of `labels`."""

        @property
        def cov(self) -> Array:
            """(d, d)."""

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
    def to_arviz(self) -> InferenceData:
        """Samples as ArviZ InferenceData."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """What posterior.npz holds."""

    @classmethod
    @abstractmethod
    def _restored(cls, model: Probabilistic, run: Run, folder: RunFolder, arrays: Arrays, note: Note) -> Self:
        """The inverse of `arrays` and `_note`."""

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

    def named(self, draws: jax.Array) -> Values:
        """Draws of z (n, d) as the model names the parameters, the draws along the first axis."""
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(self.model.constrain))(draws))

    def predict(
        self,
        inputs: Data,
        *,
        method: Literal["monte-carlo", "probit-scaled"] = "monte-carlo",
        draws: int = DRAWS,
        seed: int | None = None,
    ) -> Expected:
        """The expected outcome of each record of `inputs`: a probability for yes/no, class probabilities, or a mean.

        `inputs` is what the model is called with when nothing is observed: `x`, `(x,)` or `{"x": x}`.
        "monte-carlo" averages over `draws` of the parameters; "probit-scaled" (MacKay, D11) is for yes/no outcomes.
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

    def to_report(self, **details: Unpack[Details]) -> Report:
        """Everything that the report shows, as one value; `details` as for `Run.to_report`."""
        told: Details = {"title": "Private posterior", "released": "the posterior", **details}
        told["notes"] = (*self.notes, *details.get("notes", ()))
        if "posterior" not in told and len(self.labels) <= SHOWN:
            told["posterior"] = self.summary()
        return self.run.to_report(**told)

    def report(self, path: str | Path, **details: Unpack[Details]) -> Path:
        """Write the report: one HTML page that opens offline, or JSON for a name that ends so."""
        return write(self.to_report(**details), path)

    def save(self, folder: str | Path, **details: Unpack[Details]) -> Path:
        """Write what a run writes, posterior.npz (labels, mean, what the posterior is made of) and posterior.json."""
        return self.write(RunFolder.make(folder), self.to_report(**details))

    def write(self, folder: RunFolder, report: Report) -> Path:
        """Save with a report that was made of this posterior before."""
        storage.write_arrays(folder.posterior, {"labels": np.array(self.labels), **self.arrays()})
        note = {"kind": self.kind, "notes": list(self.notes), **self._note()}
        storage.write_tagged(folder.posterior_note, FORMAT, VERSION, note)
        return self.run.write(folder, report)

    def _note(self) -> dict[str, float]:
        """Numbers to be kept that are no arrays."""
        return {}

    @classmethod
    def load(
        cls,
        folder: str | Path,
        model: Model | Network | Probabilistic | None = None,
        data: Data = None,
        *,
        params: Values = None,
    ) -> Self:
        """The posterior that `save` wrote: it answers as the saved one did.

        `model`, `data` and `params` are what it was fitted to, as for `fit`; of `data` only the form matters. Without
        them the posterior has its numbers, and says so where it is asked for more: `sample`, `predict`, `summary`.

        Bad input: a folder without such a posterior, or with a damaged file, gets `InputError`.
        """
        place = RunFolder.open(folder)
        arrays = storage.read_arrays(place.need(place.posterior))
        note = storage.read_tagged(place.need(place.posterior_note), FORMAT, VERSION)
        if kind_of(place) != cls.kind:
            raise errors.refuse(
                "folder", str(folder), f"to hold {cls.kind}", f"It holds {kind_of(place)}: use bd.load."
            )
        known, run = read_for(labels_of(arrays, place.posterior), model, data, params), Run.load(folder)
        with storage.reading(place.posterior):
            return cls._restored(known, run, place, arrays, note)


def labels_of(arrays: Arrays, path: Path) -> tuple[str, ...]:
    """The names of the parameters in a file of a posterior. Bad input: a file without them."""
    with storage.reading(path):
        return tuple(map(str, arrays["labels"]))


def read_for(
    labels: tuple[str, ...], model: Model | Network | Probabilistic | None, data: Data, params: Values
) -> Probabilistic:
    """The model of a saved posterior whose parameters have these names. Bad input: one that has others."""
    known = Probabilistic.unread(labels) if model is None else read_model(model, data, params)
    if known.labels != labels:
        got = f"{len(known.labels)}: {', '.join(known.labels[:3])} …"
        raise errors.refuse("model", model, f"to have the {len(labels)} parameters of the saved posterior", got=got)
    return known


def kind_of(folder: RunFolder) -> str:
    """Which kind of posterior a folder holds."""
    return str(storage.read_tagged(folder.need(folder.posterior_note), FORMAT, VERSION).get("kind"))


def arviz() -> ModuleType:
    """The library. Bad input: it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version at import
        try:
            import arviz
        except ImportError:
            raise errors.InputError('Expected ArviZ to be installed. Run pip install "bayesdp[arviz]".') from None
    return arviz


def inference_data(values: Values) -> InferenceData:
    """Parameters with leading axes (chains, draws) as ArviZ InferenceData."""
    named = {
        jax.tree_util.keystr(place, simple=True, separator=".") or "parameters": np.asarray(leaf)
        for place, leaf in jax.tree_util.tree_leaves_with_path(values)
    }
    return arviz().from_dict(posterior=named)
