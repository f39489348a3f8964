"""A posterior that stays secret: samples leave it, one by one and charged, and nothing else (SPEC C17; paper S1).

What may be looked at is the samples and whatever is computed from them: their mean, covariance and predictions are
post-processing and cost nothing more. The parameters are held by the function that draws: they are not in the object's
attributes, its text, its files or a pickle. (A debugger inside the process can still reach them.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.accountant import state as states
from bayesdp.accountant.coverage import Curve
from bayesdp.accountant.repeated import RepeatedRelease
from bayesdp.errors import Array, InputError
from bayesdp.guarantee import Guarantee
from bayesdp.learn import files, predictive
from bayesdp.learn.probabilistic import Data, Probabilistic, Values
from bayesdp.learn.release_account import ReleaseAccount
from bayesdp.learn.run import SEEDED, today
from bayesdp.mechanism.noise import normal

if TYPE_CHECKING:
    from bayesdp.learn.posterior_vi import PosteriorVI
    from bayesdp.report import Intervals, Report

Draw = Callable[[int], Array]


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


class SecretPosterior:
    """What `PosteriorVI.fit` returns: `sample(n)`, and what follows from the samples drawn.

    `draws`, `mean` and `cov` are on the real line, their entries named by `labels`; `samples` are in the model's own
    terms. It cannot be copied or pickled: a copy would have an account of its own.
    """

    def __init__(
        self,
        plan: PosteriorVI,
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
    def samples(self) -> Values:
        """All samples drawn so far, as `sample` gives them."""
        return self._named(self._some(1))

    @property
    def draws(self) -> Array:
        """All samples drawn so far on the real line, (drawn, d)."""
        return self._drawn.copy()

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

    def predict(self, inputs: Data) -> Any:
        """The expected outcome of each record of `inputs`, averaged over the samples drawn so far (S1: up to ten)."""
        with jax.enable_x64(True):
            answer = predictive.monte_carlo(self._model, jnp.asarray(self._some(1)), jax.tree.map(jnp.asarray, inputs))
            return jax.tree.map(np.asarray, answer)

    def log_predictive(self, data: Data) -> Array:
        """Compute log (1/S) Σ_s p(x_n | z_s) of each record n of `data` over the samples drawn so far (D12)."""
        with jax.enable_x64(True):
            return np.asarray(predictive.log_predictive(self._model, jnp.asarray(self._some(1)), data))

    # --- what it cost ---------------------------------------------------------------------------------------

    @property
    def guarantees(self) -> list[Guarantee]:
        """One per notion, for the samples drawn so far: "dp"; "bdp" and "per-instance" where there were witnesses."""
        return self._account.guarantees()

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
        metrics: dict[str, float] | None = None,
        preprocessing: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        posterior: Intervals | None = None,
    ) -> Report:
        """Everything that the report shows, as one value."""
        from bayesdp.report import CoverageCurve, RecordLosses, Report

        curve, instance = self.curve(), self.instance
        return Report(
            title=title,
            created=today(),
            settings=self.plan.settings(self.records, self._account.drawn, self._account.samples),
            delta=self.plan.delta,
            guarantees=tuple(self.guarantees),
            record=self._account.whose,
            curve=None
            if curve is None
            else CoverageCurve(
                coverage=tuple(curve.coverage), epsilon=tuple(curve.epsilon), limit=curve.limit, failure=curve.failure
            ),
            records=None if instance is None else RecordLosses(epsilon=tuple(instance.epsilon(self.plan.delta))),
            metrics=metrics or {},
            seeded=self.seeded,
            assumptions=(SEEDED,) if self.seeded else (),
            preprocessing=preprocessing,
            notes=notes,
            released="the samples",
            posterior=posterior or (self.summary() if len(self._drawn) else None),
        )

    def summary(self, probability: float = 0.9) -> Intervals:
        """From the samples, of every parameter in the model's terms: its mean, and where a further draw would lie."""
        from bayesdp.learn.summary import Summary

        return Summary(self._model).of_samples(self._some(1), probability)

    def report(self, path: str | Path, **details: Any) -> Path:
        """Write the report: one HTML page that opens offline, or JSON for a name that ends so."""
        from bayesdp.report import write

        write(self.to_report(**details), Path(path))
        return Path(path)

    def save(self, folder: str | Path, **details: Any) -> Path:
        """Write plan.json, samples.npz, accountants.json (and .npz), report.json and report.html into `folder`.

        The posterior itself is not written: what was not drawn before the process ends is gone.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        files.write_json(target / "plan.json", {"plan": self.plan.describe(), "drawn": self._account.drawn})
        files.write_arrays(target / "samples.npz", {"labels": np.array(self.labels), "draws": self._drawn})
        states.write(target / "accountants.json", self._account.state())
        for name in ("report.json", "report.html"):
            self.report(target / name, **details)
        return target

    # --- what stays ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        drawn, planned = self._account.drawn, self._account.samples
        return f"<secret posterior of {self._model.dim} parameters: {drawn} of {planned} samples drawn>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret posterior cannot be copied or pickled: a copy would have an account of its own")

    def _some(self, least: int) -> Array:
        if len(self._drawn) < least:
            raise InputError(f"Expected at least {least} sample(s) to be drawn first, got {len(self._drawn)}.")
        return self._drawn

    def _named(self, draws: Array) -> Values:
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, jax.vmap(self._model.constrain)(jnp.asarray(draws)))
