"""`bayesdp train`: private SGD from a data set to a model and a report."""

from __future__ import annotations

from typing import Literal

from bayesdp.cli import options, show
from bayesdp.cli import train_options as words
from bayesdp.cli.learning import carry_out, check_noise, records, seed_of, source, start_jax
from bayesdp.errors import InputError


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
    filter_epsilon: words.FilterEpsilon = None,
    refresh: words.Refresh = None,
    keep_iterates: words.KeepIterates = None,
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
      bayesdp train digits --epsilon 4 --delta 1e-5 --watch everyone --out run
      bayesdp train mnist --features scattering --model logistic \
              --epsilon 1.2 --delta 1e-5 --schedule typical --out run
    """
    check_noise(epsilon, noise_multiplier, needed=clip_norm != "none")
    start_jax()

    from bayesdp.learn.job import Job
    from bayesdp.learn.prepared import check_free, prepare

    check_free(out)
    job = Job(
        data=source(
            data,
            target=target,
            task=task,
            scale=scale,
            categories=categories,
            drop=drop,
            test_share=test_share,
            features=features,
            data_dir=data_dir,
            no_download=no_download,
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
        watch=records(watch),
        filter_epsilon=filter_epsilon,
        refresh=refresh,  # type: ignore[arg-type]
        keep_iterates=keep_iterates,  # type: ignore[arg-type]
        seed=seed_of(seed),
    )
    with show.waiting("Loading the records and calibrating the noise"):
        ready = prepare(job)
    carry_out(ready, out, json=json)


def _clip_norm(text: str | None) -> float | Literal["none"] | None:
    if text is None or text == "none":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError:
        raise InputError(f"Expected --clip-norm to be a number or none, got --clip-norm={text!r}.") from None
