"""A job for a private posterior with its records at hand, and the folder that it fills.

by "vi":            job.json, model.json            at once
                    checkpoint.npz, fingerprint.json   while it trains, the key of the noise included
                    what a `Posterior` saves        at the end
by "posterior-vi":  job.json, model.json, and what a `SecretPosterior` saves, all at the end: samples and their account

model.py is a copy of the user's own model, where there is one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import optax

from bayesdp.errors import Array, refuse
from bayesdp.learn import checkpoint, defaults
from bayesdp.learn.fit_job import FitJob
from bayesdp.learn.model_file import is_file, keep
from bayesdp.learn.posterior import Posterior
from bayesdp.learn.posterior_model import PosteriorModel, gaussian_draws
from bayesdp.learn.posterior_vi import PosteriorVI
from bayesdp.learn.ready import Ready, Records, check_free, check_unfinished, forget_checkpoint, gather
from bayesdp.learn.secret_posterior import SecretPosterior
from bayesdp.learn.sgd import Progress
from bayesdp.learn.summary import Summary
from bayesdp.learn.vi import VI
from bayesdp.report import Intervals

_NON_PRIVATE = (
    "Shown as well, because it was asked for, is the posterior without clipping and noise. It is NOT PRIVATE."
)
_NARROW = "Intervals do not include what the noise for privacy did to the means: they are too narrow by that."


@dataclass(frozen=True, eq=False)
class Fitted(Ready):
    """What both methods share."""

    job: FitJob

    @cached_property
    def model(self) -> PosteriorModel:
        """The model."""
        return self.job.described(self.data)

    @property
    def parameters(self) -> int:
        """How many numbers the posterior is about."""
        return self.model.reading.dim

    @property
    def name(self) -> str:
        """The model's name, without the way to its file."""
        return Path(self.job.model).name

    @cached_property
    def summary(self) -> Summary:
        """How the posterior is told to people."""
        return Summary(self.model.reading, self.model.family.shown, self.model.family.label)

    def arguments(self, records: Records | None) -> Any:
        """What the model is called with."""
        return None if records is None else self.model.family.arguments(*records)

    @cached_property
    def training_data(self) -> Any:
        """The records to train on, as the model is called with them."""
        return self.arguments((self.data.x, self.data.y))

    def leave(self, target: Path) -> None:
        """Job and model in the folder."""
        self.claim(target)
        if is_file(self.job.model):
            keep(self.job.model, target)
        self.model.write(target)

    def metrics(self, draws: Array) -> dict[str, float]:
        """How well the posterior does on the test records, and what a constant answer would."""
        if not self.tests:
            return {}
        x, y = self.data.x_test, self.data.y_test
        found = self.model.measure(draws, x, y)
        found["test log predictive density"] = float(self.model.log_predictive(draws, x, y).mean())
        return {**found, **(self.model.without_model(y) if self.data.task != "density" else {})}

    def told(self, draws: Array, posterior: Intervals, *notes: str) -> dict[str, Any]:
        """What the report says beside what the run knows."""
        silent = self.model.cannot_predict if self.data.task != "density" else ""
        return {
            "title": f"Private posterior of a {self.name} model on {self.data.name}",
            "metrics": self.metrics(draws),
            "preprocessing": self.data.public,
            "posterior": posterior,
            "notes": (*self.notes("How good the model is was"), *notes, *([silent] if silent else [])),
        }


_WITH_INTERCEPT = ("logistic", "linear", "poisson", "negative-binomial")


@dataclass(frozen=True, eq=False)
class Fitting(Fitted):
    """A job by "vi": noisy steps, which can be interrupted and taken up again."""

    @cached_property
    def plan(self) -> VI:
        """The plan."""
        return self.job.plan()

    @property
    def confounded(self) -> str:
        """Words for categories beside an intercept, which are the same direction; else none."""
        if self.job.model not in _WITH_INTERCEPT or not any("=" in name for name in self.data.feature_names):
            return ""
        return (
            "The weights of a text column's categories and the intercept are told apart by the prior alone, and noise "
            "wanders along that direction: read differences of categories; intervals of single ones are too narrow."
        )

    @property
    def drowned(self) -> str:
        """Words for noise that outweighs the data; else none. Both are public quantities."""
        wander = self.job.wander(len(self.data.x))
        if not self.job.epsilon or not wander or defaults.step_of_means(wander, self.job.paced) is None:
            return ""
        return (
            "For so few records and this ε the noise outweighs what the data say of single parameters: predictions may "
            "be good, but intervals can be far too narrow."
        )

    def begun(self, folder: str | Path) -> Callable[..., Posterior]:
        """The run before its first step, its folder claimed. Bad input: a folder that is not free."""
        check_free(Path(folder))
        return self._claimed(Path(folder))

    def resumed(self, folder: str | Path) -> Callable[..., Posterior]:
        """The run at its last checkpoint, or before its first step. Bad input: a run that has finished."""
        target = Path(folder)
        check_unfinished(target)
        if not (target / checkpoint.NAME).exists():
            (target / checkpoint.PLAN).unlink(missing_ok=True)
            return self._claimed(target)
        witnesses = {"audit": self.arguments(self.audit), "watch": self.arguments(self.watch)}
        return partial(
            self.plan.resume, target, self.model.family.model, self.training_data, **witnesses, finished=True
        )

    def run(self, start: Callable[..., Posterior], folder: str | Path, progress: Progress | None = None) -> Posterior:
        """Train to the end and write everything; then the checkpoint is not needed any more."""
        posterior = start(
            evaluate=self._evaluate if self.tests and not self.model.cannot_predict else None,
            progress=None if progress is None else lambda so_far: progress(so_far.run),
        )
        posterior.save(folder, **self.details(posterior))
        forget_checkpoint(Path(folder))
        return posterior

    def fit(self, folder: str | Path, progress: Progress | None = None) -> Posterior:
        """Fit, and leave everything in `folder`, which must be new or empty: see `check_free`."""
        return self.run(self.begun(folder), folder, progress)

    def details(self, posterior: Posterior) -> dict[str, Any]:
        """What the report says beside what the run knows."""
        intervals = self.summary.of_gaussian(posterior.mean, posterior.cov)
        if self.job.non_private_too:
            plain = self.non_private
            beside = self.summary.of_gaussian(plain.mean, plain.cov)
            intervals = dataclasses.replace(intervals, non_private=beside)
        draws = gaussian_draws(posterior.mean, posterior.cov)
        how = (
            f"The posterior is a {self.job.guide} Gaussian on the real line, by the variant {self.job.variant!r}. Its "
            "intervals know nothing of what clipping did to it: scales, as of noise or a variance, may be too small."
        )
        asked = (_NON_PRIVATE,) if self.job.non_private_too else ()
        narrow = () if self.job.noise_aware else (_NARROW,)
        careful = [words for words in (self.confounded, self.drowned) if words]
        return {
            **self.told(draws, intervals, how, *narrow, *careful, *asked),
            "correct": self._correct(posterior, draws),
            "optimizer": f"SGD for means, {self.job.step_in_words}; Adam for scales; the mean of the last half",
            "evaluated_on": f"the {self.tests:,} test records" if self.tests else "",
        }

    @cached_property
    def non_private(self) -> Posterior:
        """The posterior without clipping and noise: **not private**."""
        plan = dataclasses.replace(
            self.plan, clip_norm=None, noise_multiplier=0.0, noise_aware=False, optimizer=optax.adam(0.02)
        )
        return plan.fit(self.model.family.model, self.training_data, seed=0)

    def _claimed(self, target: Path) -> Callable[..., Posterior]:
        self.leave(target)
        return partial(
            self.plan.fit,
            self.model.family.model,
            self.training_data,
            audit=self.arguments(self.audit),
            members=self.job.members,
            watch=self.arguments(self.watch),
            seed=self.job.seed,
            folder=target,
        )

    def _evaluate(self, posterior: Posterior) -> dict[str, float]:
        draws = gaussian_draws(posterior.mean, posterior.cov)
        return self.model.measure(draws, self.data.x_test, self.data.y_test)

    def _correct(self, posterior: Posterior, draws: Array) -> Any:
        members = posterior.run.members
        parts = [self.audit, (self.data.x[members], self.data.y[members]), self.watch]
        known = [part for part in parts if part is not None and len(part[1])]
        if not known or not self.data.classes or self.model.cannot_predict:
            return None
        x, y = (np.concatenate(both) for both in zip(*known, strict=True))
        return self.model.expected(draws, x).argmax(1) == y


@dataclass(frozen=True, eq=False)
class Sampling(Fitted):
    """A job by "posterior-vi": all at once, and nothing is written before its end."""

    @cached_property
    def plan(self) -> PosteriorVI:
        """The plan."""
        return self.job.secret_plan()

    def begun(self, folder: str | Path) -> Callable[[], SecretPosterior]:
        """The run before its first step. Bad input: a folder that is not free."""
        check_free(Path(folder))
        return partial(
            self.plan.fit,
            self.model.family.model,
            self.training_data,
            audit=self.arguments(self.audit),
            members=self.job.members or 0,
            watch=self.arguments(self.watch),
            seed=self.job.seed,
        )

    def resumed(self, folder: str | Path) -> Callable[[], SecretPosterior]:
        """Refused: samples may have left, and others would come on top of them."""
        hint = "Fit again into another folder; samples that were read come on top of the new ones."
        raise refuse("run", str(folder), "to hold a run by vi: one by posterior-vi is not taken up again", hint)

    def run(
        self, start: Callable[[], SecretPosterior], folder: str | Path, progress: Progress | None = None
    ) -> SecretPosterior:
        """Train, draw all samples that the account allows, and write them."""
        del progress
        secret = start()
        secret.sample()
        self.leave(Path(folder))
        secret.save(folder, **self.details(secret))
        return secret

    def fit(self, folder: str | Path) -> SecretPosterior:
        """Fit, and leave everything in `folder`, which must be new or empty: see `check_free`."""
        return self.run(self.begun(folder), folder)

    def details(self, secret: SecretPosterior) -> dict[str, Any]:
        """What the report says beside what the run knows: computed from the samples alone."""
        draws = secret.draws
        how = f"The posterior is a {self.job.guide} Gaussian on the real line; it was not written anywhere."
        return self.told(draws, self.summary.of_samples(draws), how)


def prepare_fit(wanted: FitJob) -> Fitting | Sampling:
    """Load the records of a job, set the outsiders apart and settle what was left open. Bad input: see `gather`."""
    parts = gather(wanted)
    return Fitting(**parts) if wanted.method == "vi" else Sampling(**parts)
