"""From a run to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayesdp.learn.run import SEEDED, today
from bayesdp.learn.schedule import factors
from bayesdp.mechanism.clip_rule import clip_rule
from bayesdp.mechanism.update_rule import Mean, UpdateRule
from bayesdp.report import (
    CoverageCurve,
    EpsilonHistory,
    Intervals,
    NormQuantiles,
    Progress,
    RecordLosses,
    Report,
    Settings,
)

if TYPE_CHECKING:
    from bayesdp.learn.run import Run


def report_of(
    run: Run,
    *,
    title: str = "Private training",
    metrics: Mapping[str, float] | None = None,
    correct: npt.NDArray[np.bool_] | None = None,
    optimizer: str = "",
    evaluated_on: str = "",
    preprocessing: Sequence[str] = (),
    notes: Sequence[str] = (),
    released: str = "the trained model",
    posterior: Intervals | None = None,
) -> Report:
    """Everything that the page shows.

    `metrics`: what the finished model achieves, by name. `correct`: whether the model is right about each witness, in
    the order of `Run.losses`. `optimizer`, `evaluated_on`: in words, how updates became parameters, and whose records
    `evaluate` looked at. `preprocessing`: what was taken from the data beforehand and is declared public, a sentence
    each. `notes`: anything else that a reader should know. `released`: what an attacker sees. `posterior`: what was
    learned of each parameter.
    """
    plan, looks = run.plan, run.looks
    steps = tuple(look.step for look in looks)
    curve = run.curve()
    from bayesdp.learn.training import LEVELS

    clip = _clip_norms(run)
    losses = run.losses()
    return Report(
        title=title,
        created=today(),
        settings=_settings(run, clip, optimizer),
        delta=plan.delta,
        guarantees=tuple(run.guarantees),
        record=_record(run),
        curve=None
        if curve is None
        else CoverageCurve(
            coverage=tuple(curve.coverage), epsilon=tuple(curve.epsilon), limit=curve.limit, failure=curve.failure
        ),
        history=EpsilonHistory(
            steps=steps,
            dp=tuple(look.dp for look in looks),
            bdp=_all(look.bdp for look in looks),
            per_instance=_all(look.per_instance for look in looks),
            coverage=plan.coverage,
        )
        if looks
        else None,
        records=RecordLosses(epsilon=tuple(losses), correct=None if correct is None else tuple(map(bool, correct)))
        if len(losses)
        else None,
        norms=NormQuantiles(
            steps=steps,
            levels=LEVELS,
            values=tuple(look.norms for look in looks),
            clip_norm=None if clip is None else tuple(clip[np.array(steps) - 1]),
        )
        if looks and looks[0].norms
        else None,
        progress=_progress(run, evaluated_on),
        metrics=dict(metrics or {}),
        seeded=run.seeded,
        assumptions=(SEEDED,) if run.seeded else (),
        preprocessing=tuple(preprocessing),
        notes=tuple(notes),
        released=released,
        posterior=posterior,
    )


def _clip_norms(run: Run) -> Any:
    if not run.plan.bounded:
        return None
    scale = factors("clip_schedule", run.plan.clip_schedule, run.plan.steps)
    return float(clip_rule(run.plan.clip_norm).sensitivity) * scale


def _record(run: Run) -> str:
    _, members, watched = run.tallies.counts
    if watched:
        return "the most exposed of the watched records" if watched > 1 else "the watched record"
    return f"the most exposed of {members:,} members, drawn at random" if members else "the most exposed witness"


def _settings(run: Run, clip: Any, optimizer: str) -> Settings:
    plan = run.plan
    noise = plan.noise
    sensitivity = 1.0 if clip is None else np.array([float(plan.update.sensitivity(c)) for c in clip])
    return Settings(
        kind=plan.kind,
        noise_std=_range(noise * sensitivity),
        noise_multiplier=_range(noise) if plan.bounded else None,
        clip_norm=None if clip is None else _range(clip),
        sampling_rate=_range(plan.rates),
        steps=run.steps,
        records=run.records,
        optimizer=optimizer,
        orders=None if run.instance is None else tuple(run.instance.orders),
        conversion="privacy loss distribution for everybody, bound on the loss for the other two"
        if plan.engine == "pld"
        else plan.engine,
        other={"update rule": _rule(plan.update)} | plan.facts | _witnesses(run),
    )


def _rule(update: UpdateRule) -> str:
    if isinstance(update, Mean):
        return f"mean over the batch, which counts as {update.smallest_batch:,} where it is smaller"
    return "sum over the batch, divided by its expected size"


def _witnesses(run: Run) -> dict[str, str | float | bool]:
    names = ("witnesses outside of the data", "witnesses among the members", "watched records")
    return {name: count for name, count in zip(names, run.tallies.counts, strict=True) if count}


def _range(values: Any) -> Any:
    low, high = float(np.min(values)), float(np.max(values))
    return low if low == high else (low, high)


def _all(values: Any) -> Any:
    found = tuple(values)
    return None if any(value is None for value in found) else found


def _progress(run: Run, data: str) -> Progress | None:
    names = sorted({name for look in run.looks for name in look.metrics})
    if not names:
        return None
    return Progress(
        steps=tuple(look.step for look in run.looks),
        values={name: tuple(look.metrics.get(name) for look in run.looks) for name in names},
        data=data,
    )
