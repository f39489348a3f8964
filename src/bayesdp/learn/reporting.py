"""From a run to its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayesdp.learn.run import SEEDED, today
from bayesdp.learn.schedule import factors
from bayesdp.mechanism.clip_rule import clip_rule
from bayesdp.report import (
    CoverageCurve,
    EpsilonHistory,
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
    title: str,
    metrics: dict[str, float],
    correct: npt.NDArray[np.bool_] | None,
    preprocessing: tuple[str, ...],
    notes: tuple[str, ...],
) -> Report:
    """Everything that the page shows."""
    plan, looks = run.plan, run.looks
    steps = tuple(look.step for look in looks)
    curve = run.curve()
    from bayesdp.learn.training import LEVELS

    clip = _clip_norms(run)
    instance = run.instance
    return Report(
        title=title,
        created=today(),
        settings=_settings(run, clip),
        delta=plan.delta,
        guarantees=tuple(run.guarantees),
        record="the most exposed of the watched records",
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
        records=None
        if instance is None
        else RecordLosses(
            epsilon=tuple(instance.epsilon(plan.delta)), correct=None if correct is None else tuple(map(bool, correct))
        ),
        norms=NormQuantiles(
            steps=steps,
            levels=LEVELS,
            values=tuple(look.norms for look in looks),
            clip_norm=None if clip is None else tuple(clip[np.array(steps) - 1]),
        )
        if looks and looks[0].norms
        else None,
        progress=_progress(run),
        metrics=metrics,
        seeded=run.seeded,
        assumptions=(SEEDED,) if run.seeded else (),
        preprocessing=preprocessing,
        notes=notes,
    )


def _clip_norms(run: Run) -> Any:
    if not run.plan.bounded:
        return None
    scale = factors("clip_schedule", run.plan.clip_schedule, run.plan.steps)
    return float(clip_rule(run.plan.clip_norm).sensitivity) * scale


def _settings(run: Run, clip: Any) -> Settings:
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
        orders=None if run.instance is None else tuple(run.instance.orders),
        conversion="privacy loss distribution for everybody, bound on the loss for the other two"
        if plan.engine == "pld"
        else plan.engine,
    )


def _range(values: Any) -> Any:
    low, high = float(np.min(values)), float(np.max(values))
    return low if low == high else (low, high)


def _all(values: Any) -> Any:
    found = tuple(values)
    return None if any(value is None for value in found) else found


def _progress(run: Run) -> Progress | None:
    names = sorted({name for look in run.looks for name in look.metrics})
    if not names:
        return None
    return Progress(
        steps=tuple(look.step for look in run.looks),
        values={name: tuple(look.metrics.get(name) for look in run.looks) for name in names},
    )
