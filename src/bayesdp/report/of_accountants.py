"""The page of accountants alone: of a run that somebody else made, of which only distances and noise are known.

write_report("page.html", accountant)                              one of the three
write_report("page.html", worst_case, population, watched)         the promises side by side
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesdp import errors, everybody
from bayesdp.accountant import BayesianAccountant, Curve, Groups, InstanceAccountant, WorstCaseAccountant
from bayesdp.estimate.quantile import most_covered
from bayesdp.guarantee import Guarantee
from bayesdp.report.files import write
from bayesdp.report.group_losses import GroupLosses
from bayesdp.report.people import in_words
from bayesdp.report.schema import CoverageCurve, RecordLosses, Report, Settings
from bayesdp.unit import Unit

COVERAGE = 0.9
Accountant = WorstCaseAccountant | BayesianAccountant | InstanceAccountant


def write_report(path: str | Path, *accountants: Accountant, delta: float = 1e-5, **details: Any) -> Path:
    """Write what accountants know as one HTML page that opens offline, or JSON for a name that ends so.

    Args:
        path: where to.
        accountants: of one run: a `WorstCaseAccountant`, a `BayesianAccountant`, an `InstanceAccountant`, or several.
        delta: of all promises.
        details: see `report_of_accountants`.

    Returns:
        the path.

    Examples:
        >>> import bayesdp as bd
        >>> account = bd.WorstCaseAccountant()
        >>> account.step(noise_multiplier=1.1, sampling_rate=0.01, steps=1000)
        >>> bd.write_report("page.html", account, delta=1e-5).name
        'page.html'
    """
    return write(report_of_accountants(accountants, delta=delta, **details), path)


def report_of_accountants(
    accountants: Sequence[Accountant],
    *,
    delta: float,
    coverage: float | None = None,
    title: str = "A run that was accounted for",
    guarantees: Sequence[Guarantee] = (),
    groups: Groups | None = None,
    settings: Settings | None = None,
    notes: Sequence[str] = (),
    unit: Unit = "record",
) -> Report:
    """The report of accountants that counted one run.

    Args:
        accountants: at least one that has counted a step.
        delta: of all promises.
        coverage: the share of people, fixed beforehand; None: 0.9, or the most that so few witnesses support.
        guarantees: where the caller has them already.
        title: of the page.
        groups: ε by group of people.
        settings: what was done, in place of what the accountants know.
        notes: sentences.
        unit: what a record is.

    Bad input: none that has counted anything, or a stranger, gets `InputError`.
    """
    for one in accountants:
        if not isinstance(one, WorstCaseAccountant | BayesianAccountant | InstanceAccountant):
            raise errors.refuse("accountants", one, "to be accountants of bayesdp")
    counted = [one for one in accountants if one.steps]
    if not counted:
        raise errors.refuse("accountants", len(accountants), "to have counted a step", got="none that has")
    promised = list(guarantees) or everybody.beside([_promise(one, delta, coverage) for one in counted])
    population = next((one for one in counted if isinstance(one, BayesianAccountant)), None)
    curve = None if population is None or population.composition != "holdout" else population.curve(delta)
    losses = [one.epsilon(delta) for one in _named(counted)]
    return in_words(
        Report(
            title=title,
            created=datetime.datetime.now(datetime.UTC).date().isoformat(),
            settings=settings or _settings(counted),
            delta=delta,
            guarantees=tuple(one.speaking_of(unit) for one in promised),
            record="" if not losses else "the most exposed of those that were named beforehand",
            curve=coverage_curve(curve),
            records=RecordLosses(epsilon=tuple(np.concatenate(losses).tolist())) if losses else None,
            groups=GroupLosses.of(groups),
            released="what was released",
            notes=tuple(notes),
        )
    )


def usual_coverage(population: BayesianAccountant, asked: float | None = None) -> float | None:
    """The share asked for; else `COVERAGE`, or the most that so few records support, which no distance decides."""
    if asked is not None or population.composition != "holdout":
        return asked
    if population.cap is not None:
        return COVERAGE
    sides = population.witnesses.values()
    return min(COVERAGE, *(most_covered(side.records, population.failure / len(sides)) for side in sides))


def _promise(one: Accountant, delta: float, coverage: float | None) -> Guarantee:
    if isinstance(one, BayesianAccountant):
        return one.guarantee(delta, usual_coverage(one, coverage))
    return one.guarantee(delta)


def _named(counted: Sequence[Accountant]) -> list[InstanceAccountant]:
    """The accountants that have a number for each record: those of witnesses, then of watched ones."""
    found: list[InstanceAccountant] = []
    for one in counted:
        if isinstance(one, BayesianAccountant):
            found += [side for _, side in sorted(one.witnesses.items())]
        elif isinstance(one, InstanceAccountant):
            found.append(one)
    return found


def _settings(counted: Sequence[Accountant]) -> Settings:
    history = next((one.history for one in counted if isinstance(one, WorstCaseAccountant)), ())
    kind, steps = "accounting of a run made elsewhere", max(one.steps for one in counted)
    if not history:
        return Settings(kind=kind, steps=steps)
    noise, rates = ([getattr(run, name) for run in history] for name in ("noise_multiplier", "sampling_rate"))
    return Settings(
        kind=kind, steps=steps, noise_multiplier=(min(noise), max(noise)), sampling_rate=(min(rates), max(rates))
    )


def coverage_curve(curve: Curve | None) -> CoverageCurve | None:
    """An accountant's curve for a report."""
    if curve is None:
        return None
    return CoverageCurve(
        coverage=tuple(curve.coverage),
        epsilon=tuple(curve.epsilon),
        limit=curve.limit,
        failure=curve.failure,
        dp=curve.dp,
    )
