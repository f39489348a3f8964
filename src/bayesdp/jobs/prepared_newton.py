"""A job for a private posterior by "newton": a few noisy sums, whose posterior reads them as data.

Files and interruptions are those of "vi" (`prepared_vi`).
"""

from __future__ import annotations

from dataclasses import dataclass

from bayesdp.jobs.prepared_vi import PreparedVI

_HOW = (
    "The posterior is a Gaussian on the real line that reads the noisy sums of scores and curvature as data: its "
    "intervals include the noise for privacy, and parameters for which that cannot be relied on are marked (H27)."
)


@dataclass(frozen=True, eq=False)
class PreparedNewton(PreparedVI):
    """A `PreparedVI` with other words."""

    @property
    def model_in_words(self) -> str:
        """Which model."""
        return f"Model {self.name}, {self.parameters:,} parameters; second-order inference."

    @property
    def plan_in_words(self) -> list[str]:
        """Model, plan and what to be careful with: a sentence each."""
        job = self.job
        lines = [
            self.model_in_words,
            f"{job.steps} steps over all records, noise multiplier {job.noise_multiplier:.4g} for all of them together"
            f"{job.aim_in_words}.",
            *self.careful,
        ]
        if job.non_private_too:
            lines.append("The report will also hold the posterior without clipping and noise, which is NOT PRIVATE.")
        return lines

    @property
    def careful(self) -> list[str]:
        """What a reader of the intervals should know beforehand."""
        return [words for words in (self.confounded,) if words]

    @property
    def confounded(self) -> str:
        """Words for categories beside an intercept, which are the same direction; else none."""
        if not super().confounded:
            return ""
        return (
            "The weights of a text column's categories and the intercept are told apart by the prior alone: read "
            "differences of categories."
        )

    @property
    def how(self) -> tuple[str, ...]:
        """What the posterior is, and what its intervals know."""
        return (_HOW,)

    @property
    def optimizer_in_words(self) -> str:
        """What was made of the noisy sums."""
        return "Newton steps; the posterior reads the last"
