"""What will be done, all of it public, in the words of a terminal, before it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesdp.cli import show

if TYPE_CHECKING:
    from bayesdp.learn.fit_job import FitJob
    from bayesdp.learn.fitting import Fitting, Sampling
    from bayesdp.learn.job import Job
    from bayesdp.learn.prepared import Prepared


def plan_in_words(ready: Prepared | Fitting | Sampling) -> list[str]:
    """A sentence each: records, model, plan, what is public."""
    from bayesdp.learn.prepared import Prepared

    job, data = ready.job, ready.data
    held = f", {len(ready.audit[1]):,} held out as outsiders" if ready.audit else ""
    lines = [
        f"{data.name}: {len(data.x):,} records to train on{held}, {ready.tests:,} to test on; "
        f"{data.x[0].size:,} features, {_kind(data)}."
    ]
    lines += _training(ready) if isinstance(ready, Prepared) else _fitting(ready)
    if ready.too_few:
        lines.append(ready.too_few)
    lines += [f"Public: {sentence}" for sentence in data.public]
    if job.seed is not None:
        lines.append(f"{show.SEEDED} Leave --seed out for a private one.")
    return lines


def _kind(data: Any) -> str:
    if data.task == "density":
        return "nothing to predict"
    return f"{len(data.classes)} classes" if data.classes else "a number to predict"


def _training(ready: Prepared) -> list[str]:
    job, budget = ready.job, ready.plan.epsilon_budget
    stop = [] if budget is None else [f"Training stops before DP ε passes {budget:g}."]
    return [
        f"Model {job.model}, {ready.parameters:,} parameters; {job.optimizer_in_words}.",
        f"{_pace(job)}; {_noise(job)}.",
        *stop,
        *(f"{name[0].upper()}{name[1:]}: {words}." for name, words in ready.plan.facts.items()),
    ]


def _noise(job: Job) -> str:
    if job.clip_norm == "none":
        return (
            f"no clipping, noise of standard deviation {job.noise_std:g}: nothing is promised to everybody{_aim(job)}"
        )
    shape = ", more noise in the first steps" if job.noise_schedule == "typical" else ""
    return f"clip norm {job.clip_norm:g}, noise multiplier {job.noise_multiplier:.4g}{shape}{_aim(job)}"


def _fitting(ready: Fitting | Sampling) -> list[str]:
    job: FitJob = ready.job
    lines = [f"Model {ready.name}, {ready.parameters:,} parameters; {job.guide} guide."]
    if job.method == "vi":
        aware = ", intervals widened by the noise" if job.noise_aware else ", intervals that leave the noise out"
        noise = f"clip norm {job.clip_norm:g}, noise multiplier {job.noise_multiplier:.4g}"
        lines.append(f"{_pace(job)}; {noise}, {job.step_in_words}, variant {job.variant}{aware}{_aim(job)}.")
        lines += [words for words in (getattr(ready, name, "") for name in ("confounded", "drowned")) if words]
    else:
        wider = f", widened by {job.widen:.4g}" if job.widen else ""
        lines.append(
            f"{_pace(job)}, without noise; {job.samples} samples are released{wider} and nothing else{_aim(job)}."
        )
        if job.radius is None or job.scales is None:
            lines.append("Nothing is promised to everybody (DP): that takes --radius and --scales.")
    if job.non_private_too:
        lines.append("The report will also hold the posterior without clipping and noise, which is NOT PRIVATE.")
    return lines


def _pace(job: Job | FitJob) -> str:
    return f"Plan: {job.steps} steps, each with a record's chance of {job.sampling_rate or 0.0:.4g}"


def _aim(job: Job | FitJob) -> str:
    return f", for DP ε ≤ {job.epsilon:g} at δ = {job.delta:g}" if job.epsilon is not None else f", δ = {job.delta:g}"
