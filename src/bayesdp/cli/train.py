"""`bayesdp train` and `bayesdp resume`: private SGD from a data set to a model and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from bayesdp import errors
from bayesdp.cli import options, progress, show
from bayesdp.cli import train_options as words
from bayesdp.errors import InputError

if TYPE_CHECKING:
    from bayesdp.learn import Run
    from bayesdp.learn.job import Job
    from bayesdp.learn.prepared import Prepared

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and the number of the signal."""


def train(
    data: words.Data,
    *,
    target: words.Target = None,
    task: words.Task = None,
    drop: words.Drop = None,
    categories: words.Categories = None,
    scale: words.Scale = None,
    test_share: words.TestShare = None,
    features: words.Features = None,
    data_dir: words.DataDir = None,
    no_download: words.NoDownload = False,
    model: words.Model = None,
    optimizer: words.Optimizer = "adam",
    learning_rate: words.LearningRate = None,
    momentum: words.Momentum = None,
    epsilon: words.Epsilon = None,
    delta: words.Delta = None,
    noise_multiplier: words.NoiseMultiplier = None,
    clip_norm: words.ClipNorm = None,
    noise_std: words.NoiseStd = None,
    sampling_rate: words.SamplingRate = None,
    batch_size: words.BatchSize = None,
    steps: words.Steps = None,
    epochs: words.Epochs = None,
    schedule: words.Schedule = "constant",
    epsilon_budget: words.Budget = None,
    audit: words.Audit = None,
    members: words.Members = None,
    watch: words.Watch = None,
    coverage: words.Coverage = 0.9,
    adjacency: options.Adjacency = "add-remove",
    engine: options.Engine = "pld",
    out: words.Out,
    seed: words.Seed = None,
    json: options.Json = False,
) -> None:
    r"""
    Train a model privately and say what was promised to whom.

    DATA is the name of a data set or a table of your own with --target. Give the DP ε to keep: the noise is
    calibrated to it. The rest is chosen for you from public quantities, and stated. Into --out go the model, the
    report (report.html opens in a browser, offline) and all that "predict", "report" and "resume" need.

    For example:
      bayesdp train digits --model logistic --epsilon 2 --delta 1e-5 --out run
      bayesdp train people.csv --target income --drop name \
              --epsilon 1 --delta 1e-6 --watch 17,42 --out run
      bayesdp train mnist --features scattering --model logistic \
              --epsilon 1.2 --delta 1e-5 --schedule typical --out run
    """
    if epsilon is not None and noise_multiplier is not None:
        raise InputError("Expected --epsilon or --noise-multiplier, got both.")
    if epsilon is None and noise_multiplier is None and clip_norm != "none":
        raise InputError("Expected --epsilon, the DP ε to keep, or --noise-multiplier, got neither.")
    start_jax()

    from bayesdp.learn.job import Job, Source
    from bayesdp.learn.prepared import check_free, prepare

    check_free(out)
    job = Job(
        data=Source.given(
            data,
            target=target,
            task=task,
            scale=scale,
            categories=tuple(categories or ()),
            drop=tuple(drop or ()),
            test_share=test_share,
            features=features,
            data_dir=data_dir,
            download=not no_download,
        ),
        model=model,
        epsilon=epsilon,
        noise_multiplier=noise_multiplier,
        noise_std=noise_std,
        clip_norm=_clip_norm(clip_norm),
        sampling_rate=sampling_rate,
        batch_size=batch_size,  # type: ignore[arg-type]  # checked there, so that 1e3 can be typed
        steps=steps,  # type: ignore[arg-type]
        epochs=epochs,
        noise_schedule=schedule,
        optimizer=optimizer,
        learning_rate=learning_rate,
        momentum=momentum,
        delta=delta,
        coverage=coverage,
        adjacency=adjacency,  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        epsilon_budget=epsilon_budget,
        audit=audit,  # type: ignore[arg-type]
        members=members,  # type: ignore[arg-type]
        watch=_records(watch),
        seed=None if seed is None else errors.whole("--seed", seed, least=0),
    )
    with show.waiting("Loading the records and calibrating the noise"):
        ready = prepare(job)
    carry_out(ready, out, json=json)


def resume(run: words.RunFolder, json: options.Json = False) -> None:
    """
    Go on with a training run that was interrupted.

    The result is the one that the run would have had: parameters, optimiser, noise and tallies go on from the last
    checkpoint. DATA must be where it was, and as it was.

    For example:
      bayesdp resume run
    """
    start_jax()

    from bayesdp.learn.job import Job
    from bayesdp.learn.prepared import finished, prepare

    job = Job.read(run)
    if finished(run):
        raise errors.refuse("run", str(run), "to hold an unfinished run", "This one has finished: see its report.html.")
    with show.waiting("Loading the records"):
        ready = prepare(job)
    carry_out(ready, run, json=json, resumed=True)


def carry_out(ready: Prepared, out: Path, *, json: bool = False, resumed: bool = False) -> Run:
    """Train under the eyes of the user, and say what came out; Ctrl-C leaves with words on how to go on."""
    try:
        training = ready.resumed(out) if resumed else ready.begun(out)
        if not json:
            for sentence in plan_in_words(ready):
                show.line(sentence)
        with progress.watching(ready.plan.steps, silent=json) as look:
            run = ready.run(training, out, look)
    except KeyboardInterrupt:
        begun = (out / "job.json").exists()
        show.remark(
            f"\nInterrupted. Nothing is lost: go on with\n  bayesdp resume {out}" if begun else "\nInterrupted."
        )
        raise typer.Exit(INTERRUPTED) from None
    if json:
        show.guarantees(run.guarantees, json=True)
        return run
    _achieved(ready, run)
    show.guarantees(run.guarantees, record=_most_exposed(ready.job, run), fine_print=False)
    curve = run.curve()
    if curve is not None:
        show.curve(curve)
    _afterwards(out)
    return run


def plan_in_words(ready: Prepared) -> list[str]:
    """What will be done, all of it public, before it is done."""
    job, plan, data = ready.job, ready.plan, ready.data
    kind = f"{len(data.classes)} classes" if data.classes else "a number to predict"
    held = f", {len(ready.audit[1]):,} held out as outsiders" if ready.audit else ""
    lines = [
        f"{data.name}: {len(data.x):,} records to train on{held}, {ready.tests:,} to test on; "
        f"{data.x[0].size:,} features, {kind}.",
        f"Model {job.model}, {ready.parameters:,} parameters; {job.optimizer_in_words}.",
        _noise_in_words(job),
    ]
    if plan.epsilon_budget is not None:
        lines.append(f"Training stops before DP ε passes {plan.epsilon_budget:g}.")
    if ready.too_few:
        lines.append(ready.too_few)
    lines += [f"Public: {sentence}" for sentence in data.public]
    if job.seed is not None:
        lines.append(f"{show.SEEDED} Leave --seed out for a private one.")
    return lines


def _noise_in_words(job: Job) -> str:
    rate, noise = job.sampling_rate or 0.0, job.noise_std if job.clip_norm == "none" else job.noise_multiplier
    clipped = (
        f"no clipping, noise of standard deviation {noise:g}: nothing is promised to everybody"
        if job.clip_norm == "none"
        else f"clip norm {job.clip_norm:g}, noise multiplier {noise:.4g}"
    )
    aim = f", for DP ε ≤ {job.epsilon:g} at δ = {job.delta:g}" if job.epsilon is not None else f", δ = {job.delta:g}"
    shape = ", more noise in the first steps" if job.noise_schedule == "typical" else ""
    return f"Plan: {job.steps} steps, each with a record's chance of {rate:.4g}; {clipped}{shape}{aim}."


def _achieved(ready: Prepared, run: Run) -> None:
    if ready.tests:
        for name, value in ready.details(run)["metrics"].items():
            show.line(show.metric(name, value))


def _most_exposed(job: Job, run: Run) -> str:
    """The number of the most exposed watched record."""
    if run.tallies.watched is None or run.instance is None:
        return "most exposed witness"
    return f"number {job.watch[int(run.instance.epsilon(run.plan.delta).argmax())]}"


def _afterwards(out: Path) -> None:
    show.line("")
    show.uncut(f"Report: {out / 'report.html'}  (opens in a browser; sensitive, like the whole folder)")
    show.uncut(f"Model: {out / 'params.npz'}  (may be published with its DP guarantee)")
    show.uncut("Next:")
    show.uncut(f"  bayesdp predict {out} FILE  (the model on further records)")
    show.uncut(f"  bayesdp report {out}  (the promises in full sentences, with their fine print)")


def _clip_norm(text: str | None) -> float | Literal["none"] | None:
    if text is None or text == "none":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError:
        raise InputError(f"Expected --clip-norm to be a number or none, got --clip-norm={text!r}.") from None


def _records(text: str | None) -> tuple[int, ...]:
    return () if text is None else tuple(errors.whole("--watch", one) for one in options.numbers("--watch", text))


def start_jax() -> None:
    """Make every core a device, which must be asked for before JAX's first computation."""
    from bayesdp.mechanism.devices import use_host_cores

    use_host_cores()
