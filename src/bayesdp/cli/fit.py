"""`bayesdp fit`: a private posterior of a Bayesian model."""

from __future__ import annotations

from pathlib import Path

from bayesdp.cli import fit_options as own
from bayesdp.cli import options, show
from bayesdp.cli import train_options as words
from bayesdp.cli.learning import carry_out, check_noise, records, seed_of, source, start_jax


def fit(
    data: words.Data,
    *,
    target: words.Target = None,
    task: words.Task = None,
    drop: words.Drop = None,
    categories: words.Categories = None,
    scale: words.Scale = None,
    test_share: words.TestShare = None,
    data_dir: words.DataDir = None,
    no_download: words.NoDownload = False,
    model: own.Model,
    method: own.Method = "vi",
    group: own.Group = None,
    components: own.Components = None,
    guide: own.Guide = "mean-field",
    variant: own.Variant = "aligned",
    noise_aware: own.NoiseAware = None,
    learning_rate: own.LearningRate = None,
    epsilon: words.Epsilon = None,
    delta: words.Delta = None,
    noise_multiplier: words.NoiseMultiplier = None,
    clip_norm: own.ClipNorm = None,
    sampling_rate: words.SamplingRate = None,
    batch_size: words.BatchSize = None,
    steps: words.Steps = None,
    epochs: words.Epochs = None,
    samples: own.Samples = None,
    radius: own.Radius = None,
    scales: own.Scales = None,
    audit: words.Audit = None,
    members: words.Members = None,
    watch: words.Watch = None,
    coverage: words.Coverage = 0.9,
    adjacency: options.Adjacency = "add-remove",
    engine: options.Engine = "pld",
    out: words.Out,
    non_private_too: own.NonPrivateToo = False,
    seed: words.Seed = None,
    json: options.Json = False,
) -> None:
    r"""
    Fit a Bayesian model privately: a posterior, and what it promises to whom.

    DATA is the name of a data set or a table of your own with --target. By --method vi the gradients are clipped and
    noised, so that the posterior keeps the DP ε that you give; by posterior-vi nothing is noised, samples of a
    posterior that stays secret are released, and every one is accounted for. What is left out is chosen from public
    quantities, and stated. Into --out go the posterior or the samples, the report and all that "predict", "report"
    and "resume" need.

    A model of your own is a NumPyro function in a file, my_model.py:model. It is called with (x, y): x has the features
    of the records as rows, y the target, or None to predict. It needs numpyro.plate("records", x.shape[0]) around
    what it observes, and draws its parameters outside of it.

    For example:
      bayesdp fit breast-cancer --model logistic --epsilon 1 --out fit
      bayesdp fit people.csv --target income --model linear --noise-aware \
              --epsilon 1 --delta 1e-6 --watch 17,42 --out fit
      bayesdp fit people.csv --target visits --model my_model.py:model \
              --method posterior-vi --samples 5 --out fit
    """
    check_noise(epsilon, noise_multiplier, needed=method == "vi")
    start_jax()

    from bayesdp.learn.fit_job import FitJob
    from bayesdp.learn.fitting import prepare_fit
    from bayesdp.learn.ready import check_free

    check_free(out)
    job = FitJob(
        data=source(
            data,
            target=target,
            task=task,
            scale=scale,
            categories=categories,
            drop=drop,
            test_share=test_share,
            data_dir=data_dir,
            no_download=no_download,
        ),
        model=_absolute(model),
        method=method,  # type: ignore[arg-type]  # checked there, as all that follows
        group=group,
        components=components,  # type: ignore[arg-type]
        guide=guide,  # type: ignore[arg-type]
        variant=variant,  # type: ignore[arg-type]
        noise_aware=noise_aware,
        learning_rate=learning_rate,
        epsilon=epsilon,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        sampling_rate=sampling_rate,
        batch_size=batch_size,  # type: ignore[arg-type]
        steps=steps,  # type: ignore[arg-type]
        epochs=epochs,
        samples=samples,  # type: ignore[arg-type]
        radius=radius,
        scales=None if scales is None else tuple(options.numbers("--scales", scales, 2)),  # type: ignore[arg-type]
        delta=delta,
        coverage=coverage,
        adjacency=adjacency,  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        audit=audit,  # type: ignore[arg-type]
        members=members,  # type: ignore[arg-type]
        watch=records(watch),
        non_private_too=non_private_too,
        seed=seed_of(seed),
    )
    with show.waiting("Loading the records and calibrating the noise"):
        ready = prepare_fit(job)
    carry_out(ready, out, json=json)


def _absolute(model: str) -> str:
    """A model of the user's own by a path that holds wherever the job is read again."""
    file, colon, name = model.rpartition(":")
    return f"{Path(file).expanduser().absolute()}:{name}" if colon and Path(file).suffix == ".py" else model
