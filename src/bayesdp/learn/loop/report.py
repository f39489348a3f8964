"""From a run to its report, and back to the snapshots that a report shows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from bayesdp.accountant import Curve, Groups, InstanceAccountant
from bayesdp.accountant.fine_print import named_beforehand
from bayesdp.accountant.run_tallies import Tallies
from bayesdp.errors import Array
from bayesdp.estimate.two_sample import kernel_test, mean_test
from bayesdp.guarantee import Guarantee
from bayesdp.learn.loop.saved_plan import RunPlan
from bayesdp.learn.loop.snapshot import LEVELS, Snapshot
from bayesdp.report import (
    EpsilonHistory,
    GroupLosses,
    Intervals,
    NormQuantiles,
    Progress,
    RecordLosses,
    Report,
    Settings,
)
from bayesdp.report.of_accountants import coverage_curve
from bayesdp.report.paid import PaidMetrics
from bayesdp.report.people import in_words
from bayesdp.report.quality import Confusion
from bayesdp.report.schema import Level
from bayesdp.report.shift import FEWEST, Shift
from bayesdp.report.watched import WatchedRecords

SEEDED = "The noise came from a given seed: the run is reproducible, not private."

_NAMED = 5
"""So many watched records are called by their names in a sentence."""


class CommonDetails(TypedDict, total=False):
    """What any report says beside what the learner knows: see `report_of`."""

    title: str
    metrics: Mapping[str, float]
    preprocessing: Sequence[str]
    notes: Sequence[str]
    posterior: Intervals | None


class Details(CommonDetails, total=False):
    """And that of a run of noisy steps."""

    correct: npt.NDArray[np.bool_] | None
    groups: Sequence[str] | None
    optimizer: str
    evaluated_on: str
    released: str
    watched: Sequence[str]
    confusion: Confusion | None
    paid: PaidMetrics | None


class ReportedRun(Protocol):
    """What a report says of a run: see `Run`."""

    @property
    def plan(self) -> RunPlan: ...
    @property
    def tallies(self) -> Tallies: ...
    @property
    def steps(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def seeded(self) -> bool: ...
    @property
    def snapshots(self) -> tuple[Snapshot, ...]: ...
    @property
    def delta(self) -> float: ...
    @property
    def guarantees(self) -> list[Guarantee]: ...
    @property
    def instance(self) -> InstanceAccountant | None: ...
    def curve(self) -> Curve | None: ...
    def groups(self, labels: Sequence[object]) -> Groups | None: ...
    def losses(self) -> Array: ...


def report_of(
    run: ReportedRun,
    *,
    title: str = "Private training",
    metrics: Mapping[str, float] = MappingProxyType({}),
    correct: npt.NDArray[np.bool_] | None = None,
    groups: Sequence[str] | None = None,
    optimizer: str = "",
    evaluated_on: str = "",
    preprocessing: Sequence[str] = (),
    notes: Sequence[str] = (),
    released: str = "the trained model",
    posterior: Intervals | None = None,
    watched: Sequence[str] = (),
    confusion: Confusion | None = None,
    paid: PaidMetrics | None = None,
) -> Report:
    """Everything that the page shows.

    `metrics`: what the finished model achieves, by name. `correct`: whether the model is right about each witness, in
    the order of `Run.losses`. `groups`: the group of each outsider and member, as for `Run.groups`. `optimizer`,
    `evaluated_on`: in words, how updates became parameters, and whose records `evaluate` looked at. `preprocessing`:
    what was taken from the data beforehand and is declared public, a sentence each. `notes`: anything else that a
    reader should know. `released`: what an attacker sees. `posterior`: what was learned of each parameter.
    `watched`: what the watched records are called, in their order. `confusion`, `paid`: see `Report`.
    """
    plan, losses = run.plan, run.losses()
    report = Report(
        title=title,
        created=today(),
        settings=_settings(run, optimizer),
        delta=run.delta,
        guarantees=tuple(run.guarantees),
        record=_record(run, watched),
        curve=coverage_curve(run.curve()),
        history=_history(run.snapshots, plan.coverage),
        records=RecordLosses(epsilon=tuple(losses), correct=None if correct is None else tuple(map(bool, correct)))
        if len(losses)
        else None,
        groups=None if groups is None else GroupLosses.of(run.groups(groups)),
        watched=_watched(run, watched, losses),
        norms=_norms(run.snapshots, plan.clip_norms),
        progress=_progress(run.snapshots, evaluated_on),
        metrics=dict(metrics),
        confusion=confusion,
        paid=paid,
        seeded=run.seeded,
        assumptions=(SEEDED,) if run.seeded else (),
        preprocessing=tuple(preprocessing),
        notes=tuple(notes),
        released=released,
        posterior=posterior,
        shift=_shift(run, losses),
    )
    return in_words(report)


def _shift(run: ReportedRun, losses: Array) -> Shift | None:
    """Whether outsiders and members look alike; None where there are too few of either."""
    outsiders, members, _ = run.tallies.counts
    known = losses[: outsiders + members]
    if min(outsiders, members) < FEWEST or not np.isfinite(known).all():
        return None
    sides = known[:outsiders], known[outsiders:]
    return Shift(mean=mean_test(*sides), kernel=kernel_test(*sides), outsiders=outsiders, members=members)


def today() -> str:
    """The date of a report."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def snapshots_of(report: Report) -> tuple[Snapshot, ...]:
    """The snapshots that a report was made of; metrics that were not finite are left out."""
    history, norms, progress = report.history, report.norms, report.progress
    if history is None:
        return ()

    def metrics(place: int) -> dict[str, float]:
        values = {} if progress is None else progress.values
        return {name: value for name, several in values.items() if (value := several[place]) is not None}

    return tuple(
        Snapshot(
            step=step,
            dp=np.inf if history.dp is None else history.dp[i],
            bdp=None if history.bdp is None else history.bdp[i],
            per_instance=None if history.per_instance is None else history.per_instance[i],
            norms=() if norms is None else norms.values[i],
            metrics=metrics(i),
        )
        for i, step in enumerate(history.steps)
    )


def _record(run: ReportedRun, names: Sequence[str]) -> str:
    outsiders, members, watched = run.tallies.counts
    if watched:
        # A few are called by their names; of many the table of watched records tells.
        if len(names) == watched <= _NAMED:
            return (
                names[0]
                if watched == 1
                else f"each of {', '.join(names[:-1])} and {names[-1]}, named beforehand; the largest is shown"
            )
        return named_beforehand(watched, "watched records")
    if members:
        return named_beforehand(members, "members")
    return named_beforehand(outsiders, "outsiders") if outsiders else ""


def _watched(run: ReportedRun, names: Sequence[str], losses: Array) -> WatchedRecords | None:
    """The losses of the watched records, which come last; None where nobody was watched."""
    count = run.tallies.counts.watched
    if not count:
        return None
    called = names if len(names) == count else [f"watched record {place}" for place in range(1, count + 1)]
    return WatchedRecords(names=tuple(called), epsilon=tuple(losses[-count:]))


def _settings(run: ReportedRun, optimizer: str) -> Settings:
    plan, clip = run.plan, run.plan.clip_norms
    return Settings(
        kind=plan.kind,
        noise_std=_range(plan.noise * plan.sensitivities),
        noise_multiplier=_range(plan.noise) if plan.bounded else None,
        clip_norm=None if clip is None else _range(clip),
        sampling_rate=_range(plan.rates),
        steps=run.steps,
        records=run.records if plan.num_records is None else plan.num_records,
        optimizer=optimizer,
        orders=None if run.instance is None else tuple(run.instance.orders),
        conversion="privacy loss distribution for everybody; for the others a mixture over orders and with that (H14)"
        if plan.engine == "pld"
        else plan.engine,
        other={"update rule": plan.update_in_words, **plan.facts, **_witnesses(run)},
    )


def _witnesses(run: ReportedRun) -> dict[str, float]:
    names = ("witnesses outside of the data", "witnesses among the members", "watched records")
    return {name: count for name, count in zip(names, run.tallies.counts, strict=True) if count}


def _history(snapshots: Sequence[Snapshot], coverage: float) -> EpsilonHistory | None:
    if not snapshots:
        return None
    return EpsilonHistory(
        steps=tuple(one.step for one in snapshots),
        dp=tuple(one.dp for one in snapshots),
        bdp=_all(one.bdp for one in snapshots),
        per_instance=_all(one.per_instance for one in snapshots),
        coverage=coverage,
    )


def _norms(snapshots: Sequence[Snapshot], clip: Array | None) -> NormQuantiles | None:
    if not snapshots or not snapshots[0].norms:
        return None
    steps = tuple(one.step for one in snapshots)
    return NormQuantiles(
        steps=steps,
        levels=LEVELS,
        values=tuple(one.norms for one in snapshots),
        clip_norm=None if clip is None else tuple(clip[np.array(steps) - 1]),
    )


def _progress(snapshots: Sequence[Snapshot], data: str) -> Progress | None:
    names = sorted({name for one in snapshots for name in one.metrics})
    if not names:
        return None
    return Progress(
        steps=tuple(one.step for one in snapshots),
        values={name: tuple(one.metrics.get(name) for one in snapshots) for name in names},
        data=data,
    )


def _range(values: Array) -> Level:
    low, high = float(np.min(values)), float(np.max(values))
    return low if low == high else (low, high)


def _all(values: Iterable[float | None]) -> tuple[float, ...] | None:
    found = tuple(values)
    known = tuple(value for value in found if value is not None)
    return known if len(known) == len(found) else None
