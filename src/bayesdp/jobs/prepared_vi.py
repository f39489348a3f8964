"""A job for a private posterior by "vi": noisy steps, which can be interrupted and taken up again.

job.json, model.json, model.py (the user's own)   at once
checkpoint.npz, fingerprint.json                  while it trains, the key of the noise included
data.json, and what `Posterior.save` writes       at the end
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.jobs import defaults
from bayesdp.jobs.prepared import Finished, Progress, UnderWay
from bayesdp.jobs.prepared_posterior import PreparedPosterior
from bayesdp.jobs.saved.posterior import gaussian_draws
from bayesdp.learn.loop.report import Details
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.posterior.gaussian import Posterior
from bayesdp.learn.posterior.inference import InferenceRun
from bayesdp.learn.second_order.exact import MOST, Laplace, laplace
from bayesdp.learn.second_order.newton import Newton
from bayesdp.learn.vi.vi import VI
from bayesdp.report.quality import Confusion

_NON_PRIVATE = (
    "Shown as well, because it was asked for, is the posterior without clipping and noise. It is NOT PRIVATE."
)
_NARROW = "Intervals do not include what the noise for privacy did to the means: they are too narrow by that."
_WITH_INTERCEPT = ("logistic", "linear", "poisson", "negative-binomial")


@dataclass(frozen=True, eq=False)
class PreparedVI(PreparedPosterior[Posterior]):
    """A `PreparedJob` whose result is a `Posterior`, which may be published."""

    @cached_property
    def plan(self) -> VI | Newton:
        """The plan."""
        return self.job.plan()

    @property
    def plan_in_words(self) -> list[str]:
        """Model, plan and what to be careful with: a sentence each."""
        job = self.job
        aware = ", intervals widened by the noise" if job.noise_aware else ", intervals that leave the noise out"
        noise = f"clip norm {job.clip_norm:g}, noise multiplier {job.noise_multiplier:.4g}"
        lines = [
            self.model_in_words,
            f"{job.pace_in_words}; {noise}, {job.step_in_words}, variant {job.variant}{aware}{job.aim_in_words}.",
            *self.careful,
        ]
        if job.non_private_too:
            lines.append("The report will also hold the posterior without clipping and noise, which is NOT PRIVATE.")
        return lines

    @property
    def careful(self) -> list[str]:
        """What a reader of the intervals should know beforehand."""
        return [words for words in (self.confounded, self.drowned) if words]

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
        wander = self.job.wander(self.public_records)
        if not self.job.epsilon or not wander or defaults.step_of_means(wander, self.job.paced) is None:
            return ""
        return (
            "For so few records and this ε the noise outweighs what the data say of single parameters: predictions may "
            "be good, but intervals can be far too narrow."
        )

    def resume(self, folder: str | Path) -> UnderWay[Posterior]:
        """See `PreparedJob.resume`."""
        return self._taken_up(folder, self._reopened)

    def _reopened(self, folder: RunFolder) -> UnderWay[Posterior]:
        under_way = self.plan.reopen(
            folder.path,
            self.model.family.model,
            self.trained_on,
            holdout=self.held_out,
            watch=self.watched_arguments,
            finished=True,
        )
        return partial(self._run, under_way, folder)

    def _begun(self, folder: RunFolder) -> UnderWay[Posterior]:
        under_way = self.plan.begin(
            self.model.family.model,
            self.trained_on,
            holdout=self.held_out,
            members=self.job.members,
            watch=self.watched_arguments,
            seed=self.job.seed,
        )
        return partial(self._run, under_way, self.claimed(folder))

    def _run(
        self, under_way: InferenceRun[Posterior], folder: RunFolder, progress: Progress | None = None
    ) -> Finished[Posterior]:
        """Train to the end and write everything."""
        with folder.locked():
            return self._run_alone(under_way, folder, progress)

    def _run_alone(
        self, under_way: InferenceRun[Posterior], folder: RunFolder, progress: Progress | None
    ) -> Finished[Posterior]:
        posterior = under_way.run(
            evaluate=self._evaluate if self._evaluates else None,
            progress=None if progress is None else lambda so_far: progress(so_far.run),
            folder=folder.path,
        )
        details = self.details(posterior)
        report = posterior.to_report(**details)
        posterior.write(folder, report)
        self._close(folder)
        return Finished(posterior, details["metrics"], report, posterior.run)

    @property
    def _evaluates(self) -> bool:
        return bool(self.tests) and not self.model.cannot_predict

    def _evaluate(self, posterior: Posterior) -> dict[str, float]:
        draws = gaussian_draws(posterior.mean, posterior.cov)
        return self.model.measure(draws, self.data.x_test, self.data.y_test)

    def details(self, posterior: Posterior) -> Details:
        """What the report says beside what the run knows; the last snapshot is that of the finished posterior."""
        intervals = self.summary.of_gaussian(posterior.mean, posterior.cov, doubts=posterior.doubts)
        if self.job.non_private_too:
            plain = self.non_private
            beside = self.summary.of_gaussian(plain.mean, plain.cov)
            intervals = dataclasses.replace(intervals, non_private=beside)
        draws = gaussian_draws(posterior.mean, posterior.cov)
        asked = (_NON_PRIVATE,) if self.job.non_private_too else ()
        metrics = self.metrics(draws, lambda: posterior.run.snapshots[-1].metrics if self._evaluates else {})
        return {
            **self.told(metrics, intervals, *self.how, *self.careful, *asked),
            "correct": self._correct(posterior, draws),
            "watched": self.watched_names,
            "confusion": self._confusion(draws),
            "paid": None,
            "groups": self.groups_of(posterior.run.members),
            "optimizer": self.optimizer_in_words,
            "evaluated_on": f"the {self.tests:,} test records" if self.tests else "",
            "released": "the posterior",
        }

    @property
    def how(self) -> tuple[str, ...]:
        """What the posterior is, and what its intervals know."""
        shape = (
            f"The posterior is a {self.job.guide} Gaussian on the real line, by the variant {self.job.variant!r}. Its "
            "intervals know nothing of what clipping did to it: scales, as of noise or a variance, may be too small."
        )
        return (shape,) if self.job.noise_aware else (shape, _NARROW)

    @property
    def optimizer_in_words(self) -> str:
        """What was made of the noisy sums."""
        return f"SGD for means, {self.job.step_in_words}; Adam for scales; the mean of the last half"

    def _confusion(self, draws: Array) -> Confusion | None:
        """Which classes of test records the posterior takes for which."""
        if not self._evaluates or not self.data.classes:
            return None
        taken = self.model.expected(draws, self.data.x_test).argmax(1)
        return Confusion.of(self.data.classes, self.data.y_test, taken)

    @cached_property
    def non_private(self) -> Laplace:
        """The posterior of the records as they are, about its mode: **not private**. Bad input: see `laplace`."""
        errors.whole("parameters", self.parameters, least=1, most=MOST)
        return laplace(self.model.read_model(self.data.x, self.data.y), self.trained_on)

    def _correct(self, posterior: Posterior, draws: Array) -> npt.NDArray[np.bool_] | None:
        """Whether the posterior is right about each witness, in the order of `Run.losses`."""
        known = self.witnesses(posterior.run.members)
        if not known or not self.data.classes or self.model.cannot_predict:
            return None
        x, y = (np.concatenate(both) for both in zip(*known, strict=True))
        return np.asarray(self.model.expected(draws, x).argmax(1) == y)
