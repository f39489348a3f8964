"""The three promises of a training loop of your own, in any library, told step by step.

    log = TrainingLog(delta=1e-5)
    for each step:
        log.step(noise_multiplier=z, sampling_rate=q, clip_norm=C, outsiders=norms, members=norms, watched=norms)
        ... then add the noise, and use the result
    log.guarantees, log.curve(), log.report("page.html")

Norms are those of the gradients of witnesses *before* clipping, at the weights that the step starts from, whether a
witness was sampled or not. In units of the clip norm: distance min(norm, C)/C and noise z, so that C may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import errors, everybody
from bayesdp.accountant import BayesianAccountant, Curve, InstanceAccountant, WorstCaseAccountant
from bayesdp.accountant.worst_case import PlanDP
from bayesdp.guarantee import Guarantee
from bayesdp.report.of_accountants import Accountant, usual_coverage, write_report

ORIENTATIONS = {"outsiders": "absent", "members": "present"}


class TrainingLog:
    """What a loop has spent on everybody, on people like those in the data, and on named records.

    Args:
        delta: of all promises.
        coverage: the share of people that the Bayesian promise is for, fixed beforehand; None: 0.9.
        failure: the chance that this share is wrong (H5).
        total_steps: how many steps there will be; stepping past it is an error. None: the number of steps must be fixed
            without looking at what training gives, and every promise says so.
        assumptions: sentences for every promise.

    Examples:
        >>> import numpy as np
        >>> from bayesdp.interop.training_log import TrainingLog
        >>> log = TrainingLog(delta=1e-5)
        >>> norms = np.full(500, 0.1)
        >>> for _ in range(10):
        ...     log.step(noise_multiplier=1.0, sampling_rate=0.01, clip_norm=1.0, outsiders=norms)
        >>> [one.notion for one in log.guarantees]
        ['dp', 'bdp']
    """

    def __init__(
        self,
        *,
        delta: float = 1e-5,
        coverage: float | None = None,
        failure: float = 1e-6,
        total_steps: int | None = None,
        assumptions: Sequence[str] = (),
    ) -> None:
        self.delta = errors.probability("delta", delta)
        self.coverage = None if coverage is None else errors.probability("coverage", coverage)
        self.total_steps, self.assumptions = total_steps, tuple(assumptions)
        self.worst_case = WorstCaseAccountant()
        self.population = BayesianAccountant(cap=1.0, failure=failure, total_steps=total_steps)
        self.watched: InstanceAccountant | None = None
        self._witnesses: tuple[int | None, ...] | None = None

    @property
    def steps(self) -> int:
        """How many were counted."""
        return self.worst_case.steps

    def step(
        self,
        *,
        noise_multiplier: float,
        sampling_rate: float,
        clip_norm: float = 1.0,
        outsiders: Any = None,
        members: Any = None,
        watched: Any = None,
    ) -> None:
        """Charge one step; call it before its noisy result is used.

        Args:
            noise_multiplier: z, noise / clip norm.
            sampling_rate: q, with which a record enters the step (Poisson).
            clip_norm: C.
            outsiders: gradient norms before clipping, (records,), the same records in every step, of people who are
                never trained on.
            members: the same of training records drawn beforehand.
            watched: the same of named records.

        Bad input: other witnesses than in the first step, a norm that is negative or NaN; then nothing is charged. An
        infinite norm counts as the clip norm.
        """
        z, q = errors.noise("noise_multiplier", noise_multiplier), errors.rate("sampling_rate", sampling_rate)
        most = errors.number("clip_norm", clip_norm, above=0)
        errors.more_steps(self.total_steps, self.steps, 1)
        given = {"outsiders": outsiders, "members": members, "watched": watched}
        shares = {name: _shares(name, norms, most) for name, norms in given.items() if norms is not None}
        counts = tuple(len(shares[name]) if name in shares else None for name in given)
        if self._witnesses is not None and counts != self._witnesses:
            raise errors.unmet(
                "watched", counts, f"as many witnesses as in the first step, {self._witnesses}", f"{counts}"
            )
        self._witnesses = counts
        self.worst_case.step(noise_multiplier=z, sampling_rate=q)
        for name, side in ORIENTATIONS.items():
            if name in shares:
                self.population.step(shares[name], noise_std=z, sampling_rate=q, orientation=side)
        if "watched" in shares:
            if self.watched is None:
                self.watched = InstanceAccountant(records=len(shares["watched"]), cap=1.0, total_steps=self.total_steps)
            self.watched.step(shares["watched"], noise_std=z, sampling_rate=q)

    @property
    def guarantees(self) -> list[Guarantee]:
        """One per notion: "dp"; "bdp" where there are outsiders or members; "per-instance" for each watched record."""
        if not self.steps:
            raise errors.unmet("steps", 0, "a step before a promise is asked for", "none")
        found, plan = [self.worst_case.guarantee(self.delta)], PlanDP.of(self.worst_case, self.delta)
        if self.population.steps:
            found.append(self.population.guarantee(self.delta, usual_coverage(self.population, self.coverage), plan))
        if self.watched is not None:
            found += [self.watched.guarantee(self.delta, i, dp=plan) for i in range(self.watched.records)]
        return everybody.beside([_also(one, self.assumptions) for one in found])

    def curve(self) -> Curve | None:
        """Share of people → Bayesian ε, for all shares at once (H12); None without outsiders and members."""
        return self.population.curve(self.delta) if self.population.steps else None

    def report(self, path: str | Path, *, title: str = "A training loop that was accounted for") -> Path:
        """Write the page, or JSON for a name that ends so.

        Args:
            path: where to.
            title: of the page.

        Returns:
            the path.
        """
        known: list[Accountant] = [self.worst_case, self.population]
        known += [] if self.watched is None else [self.watched]
        return write_report(path, *known, delta=self.delta, title=title, guarantees=self.guarantees)


def _shares(name: str, norms: Any, most: float) -> npt.NDArray[np.floating[Any]]:
    """What is left of norms after clipping, in units of the clip norm, in the precision they came in."""
    values = np.asarray(norms)
    errors.array(name, values, least=0, ndim=1, infinite=True)
    single = values.dtype in (np.float32, np.float16)
    return np.minimum(values / most, 1.0).astype(np.float32 if single else np.float64)


def _also(one: Guarantee, sentences: tuple[str, ...]) -> Guarantee:
    return Guarantee.from_dict({**one.to_dict(), "assumptions": [*one.assumptions, *sentences]})
