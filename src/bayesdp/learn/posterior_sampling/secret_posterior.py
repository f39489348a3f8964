"""A posterior that stays secret: samples leave it, one by one and charged, and nothing else (paper S1, C17).

What may be looked at is the samples and whatever is computed from them: their mean, covariance and predictions are
post-processing and cost nothing more. The parameters are held by the function that draws: they are not in the object's
attributes, its text, its files or a pickle. (A debugger inside the process can still reach them.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, Protocol, Unpack

import jax
import numpy as np

from bayesdp import storage
from bayesdp.accountant import state as states
from bayesdp.accountant.coverage import Curve
from bayesdp.accountant.release_account import ReleaseAccount
from bayesdp.accountant.repeated import RepeatedRelease
from bayesdp.errors import Array
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.report import SEEDED, CommonDetails, today
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models.density import Probabilistic, Values
from bayesdp.learn.noise_kind import SAMPLES, labelled
from bayesdp.learn.posterior_sampling.released_samples import ReleasedSamples
from bayesdp.learn.record_count import with_count
from bayesdp.mechanism.noise import normal
from bayesdp.report import Intervals, RecordLosses, Report, Settings, write
from bayesdp.report.of_accountants import coverage_curve
from bayesdp.report.people import in_words
from bayesdp.unit import Unit

FORMAT, VERSION = "bayesdp/samples", 1

Draw = Callable[[int], Array]


class ReleasePlan(Protocol):
    """What a secret posterior asks of the plan that it came from: see `PosteriorVI`."""

    @property
    def delta(self) -> float: ...
    @property
    def num_records(self) -> int | None: ...
    @property
    def unit(self) -> Unit: ...
    def settings(self, records: int, drawn: int, allowed: int) -> Settings: ...
    def describe(self) -> dict[str, Any]: ...


def sampler(mean: Array, spread: Array, key: jax.Array) -> Draw:
    """`draw(n)` → n fresh draws of N(mean, spread), (n, d) in float64; the arguments live in the function only.

    A draw is rounded to float32. The noise is float32 and the mean is not: unrounded, the last digits would say which
    mean it was.
    """
    factor = np.linalg.cholesky(spread) if spread.ndim == 2 else np.diag(np.sqrt(spread))
    calls = 0

    def draw(n: int) -> Array:
        nonlocal calls
        noise = np.asarray(normal(jax.random.fold_in(key, calls), (n, len(mean))), np.float64)
        calls += 1
        return np.asarray(mean + noise @ factor.T, np.float32).astype(np.float64)

    return draw


class SecretPosterior(ReleasedSamples):
    """What `PosteriorVI.fit` returns: `sample(n)`, and what follows from the samples drawn.

    `draws`, `mean` and `cov` are on the real line, their entries named by `labels`; `samples` are in the model's own
    terms. It cannot be copied or pickled: a copy would have an account of its own.

    Examples:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(1.0, 1.0, 100).astype(np.float32)
        >>> model = bd.NormalPrior(np.zeros(1), 4.0), lambda mean, record: -((record - mean[0]) ** 2) / 2
        >>> secret = bd.PosteriorVI(sampling_rate=1.0, steps=20, samples=2).fit(model, x)
        >>> secret.sample(1).shape, secret.remaining
        ((1, 1), 1)
    """

    def __init__(
        self,
        plan: ReleasePlan,
        model: Probabilistic,
        draw: Draw,
        account: ReleaseAccount,
        *,
        records: int,
        seeded: bool,
    ) -> None:
        self.plan, self.records, self.seeded = plan, records, seeded
        self._model, self._draw, self._account = model, draw, account
        self._drawn = np.zeros((0, model.dim))
        self._lock = threading.Lock()

    def sample(self, n: int | None = None) -> Values:
        """`n` new samples of the parameters as the model names them, along the first axis; all that remain by default.

        They are charged before they are drawn. Bad input: more than remain, or n < 1, gets `InputError` and draws and
        charges nothing.
        """
        with self._lock:
            count = max(self._account.remaining, 1) if n is None else n
            self._account.charge(count)
            fresh = self._draw(int(count))
            self._drawn = np.concatenate([self._drawn, fresh])
        return self._named(fresh)

    @property
    def remaining(self) -> int:
        """How many samples may still be drawn."""
        return self._account.remaining

    @property
    def draws(self) -> Array:
        """All samples drawn so far on the real line, (drawn, d)."""
        return self._drawn.copy()

    # --- what it cost ---------------------------------------------------------------------------------------

    @property
    def guarantees(self) -> list[Guarantee]:
        """One per notion, for the samples drawn so far: "dp"; "bdp" and "per-instance" where there were witnesses."""
        counted = [with_count(one, self.plan.num_records, self.records) for one in self._account.guarantees()]
        return [labelled(one, SAMPLES).speaking_of(self.plan.unit) for one in counted]

    @property
    def instance(self) -> RepeatedRelease | None:
        """The accountant of the watched records (of the member witnesses where none are watched)."""
        return self._account.instance

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε; None without witnesses."""
        return self._account.curve()

    def to_report(
        self,
        *,
        title: str = "Samples of a secret posterior",
        metrics: Mapping[str, float] = MappingProxyType({}),
        preprocessing: Sequence[str] = (),
        notes: Sequence[str] = (),
        posterior: Intervals | None = None,
    ) -> Report:
        """Everything that the report shows, as one value."""
        instance = self.instance
        report = Report(
            title=title,
            created=today(),
            settings=self.plan.settings(self.records, self._account.drawn, self._account.samples),
            delta=self.plan.delta,
            guarantees=tuple(self.guarantees),
            record=self._account.whose,
            curve=coverage_curve(self.curve()),
            records=None if instance is None else RecordLosses(epsilon=tuple(instance.epsilon(self.plan.delta))),
            metrics=dict(metrics),
            seeded=self.seeded,
            assumptions=(SEEDED,) if self.seeded else (),
            preprocessing=tuple(preprocessing),
            notes=tuple(notes),
            released="the samples",
            posterior=posterior or (self.summary() if len(self._drawn) else None),
        )
        return in_words(report)

    def report(self, path: str | Path, **details: Unpack[CommonDetails]) -> Path:
        """Write the report: one HTML page that opens offline, or JSON for a name that ends so."""
        return write(self.to_report(**details), path)

    def save(self, folder: str | Path, **details: Unpack[CommonDetails]) -> Path:
        """Write plan.json, samples.npz, accountants.json (and .npz), report.json and report.html into `folder`.

        The posterior itself is not written: what was not drawn before the process ends is gone. `SavedSamples.load`
        reads the samples back.
        """
        return self.write(RunFolder.make(folder), self.to_report(**details))

    def write(self, folder: RunFolder, report: Report) -> Path:
        """Save with a report that was made of these samples before."""
        note = {"plan": self.plan.describe(), "drawn": self._account.drawn}
        storage.write_tagged(folder.plan, FORMAT, VERSION, note)
        storage.write_arrays(folder.samples, {"labels": np.array(self.labels), "draws": self._drawn})
        states.write(folder.accountants, self._account.state())
        for file in (folder.report, folder.page):
            write(report, file)
        folder.seal(*folder.saved)
        return folder.path

    # --- what stays ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        drawn, planned = self._account.drawn, self._account.samples
        return f"<secret posterior of {self._model.dim} parameters: {drawn} of {planned} samples drawn>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret posterior cannot be copied or pickled: a copy would have an account of its own")
