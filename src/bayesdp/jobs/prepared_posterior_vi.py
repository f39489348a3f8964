"""A job for samples of a secret posterior, by "posterior-vi": all at once, and nothing is written before its end.

job.json, data.json, model.json, model.py, and what `SecretPosterior.save` writes: samples and their account
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, NoReturn

from bayesdp.errors import refuse
from bayesdp.jobs.prepared import Finished, Progress, UnderWay
from bayesdp.jobs.prepared_posterior import PreparedPosterior
from bayesdp.learn.loop.report import CommonDetails
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.posterior_sampling.posterior_vi import PosteriorVI
from bayesdp.learn.posterior_sampling.secret_posterior import SecretPosterior
from bayesdp.ledger import Charge, Ledger


@dataclass(frozen=True, eq=False)
class PreparedPosteriorVI(PreparedPosterior[SecretPosterior]):
    """A `PreparedJob` whose result is a `SecretPosterior` with all of its samples drawn."""

    shows_progress: ClassVar[bool] = False  # neighbouring runs are one program from the first step to the last

    @cached_property
    def plan(self) -> PosteriorVI:
        """The plan."""
        return self.job.secret_plan()

    @property
    def plan_in_words(self) -> list[str]:
        """Model, plan and what is not promised: a sentence each."""
        job = self.job
        wider = f", widened by {job.extra_std:.4g}" if job.extra_std else ""
        released = f"{job.samples} samples are released{wider} and nothing else"
        lines = [self.model_in_words, f"{job.pace_in_words}, without noise; {released}{job.aim_in_words}."]
        if job.radius is None or job.scales is None:
            lines.append("Nothing is promised to everybody (DP): that takes --radius and --scales.")
        return lines

    def _begun(self, folder: RunFolder) -> UnderWay[SecretPosterior]:
        return partial(self._run, self.plan, folder)

    def resume(self, folder: str | Path) -> NoReturn:
        """Refused: samples may have left, and others would come on top of them."""
        hint = "Fit again into another folder; samples that were read come on top of the new ones."
        raise refuse("run", str(folder), "to hold a run by vi: one by posterior-vi is not taken up again", hint)

    def _run(self, plan: PosteriorVI, folder: RunFolder, progress: Progress | None = None) -> Finished[SecretPosterior]:
        """Train, draw all samples that the account allows, and write them."""
        del progress
        secret = plan.fit(
            self.model.family.model,
            self.trained_on,
            holdout=self.held_out,
            members=self.job.members or 0,
            watch=self.watched_arguments,
            seed=self.job.seed,
        )
        secret.sample()
        details = self.details(secret)
        report = secret.to_report(**details)
        place = self.claimed(folder)
        with place.locked():
            self._charge(place, secret)
            self._keep_digests(place, self._digests())
            secret.write(place, report)
        return Finished(secret, details["metrics"], report, secret)

    def _charge(self, folder: RunFolder, secret: SecretPosterior) -> None:
        """Write down what the samples cost everybody, before they are anywhere else."""
        dp = next((one for one in secret.guarantees if one.notion == "dp"), None)
        epsilon, delta = (math.inf, 0.0) if dp is None else (dp.epsilon, dp.delta)
        Ledger.open(folder.journal).charge(Charge(run="samples", what="samples", epsilon=epsilon, delta=delta))

    def details(self, secret: SecretPosterior) -> CommonDetails:
        """What the report says beside what the account knows: computed from the samples alone."""
        draws = secret.draws
        how = f"The posterior is a {self.job.guide} Gaussian on the real line; it was not written anywhere."
        metrics = self.metrics(draws, lambda: self.model.measure(draws, self.data.x_test, self.data.y_test))
        return self.told(metrics, self.summary.of_samples(draws), how)
