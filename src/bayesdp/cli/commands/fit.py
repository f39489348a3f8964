"""`bayesdp fit`: a private posterior of a Bayesian model."""

from __future__ import annotations

from pathlib import Path

from bayesdp.cli import fit_options, options, shared_options, terminal
from bayesdp.cli.learning import assigned, carry_out, check_noise, start_jax
from bayesdp.cli.option_groups import spread
from bayesdp.cli.shared_options import CommonOptions, RecordOptions


@spread
def fit(
    *,
    records: RecordOptions,
    model: fit_options.Model,
    method: fit_options.Method = None,
    group: fit_options.Group = None,
    components: fit_options.Components = None,
    guide: fit_options.Guide = "mean-field",
    variant: fit_options.Variant = "aligned",
    noise_aware: fit_options.NoiseAware = None,
    learning_rate: fit_options.LearningRate = None,
    common: CommonOptions,
    clip_norm: fit_options.ClipNorm = None,
    samples: fit_options.Samples = None,
    radius: fit_options.Radius = None,
    scales: fit_options.Scales = None,
    out: shared_options.Out,
    non_private_too: fit_options.NonPrivateToo = False,
    ledger: shared_options.LedgerFile = None,
    ledger_budget: shared_options.LedgerBudget = None,
    json: options.Json = False,
) -> None:
    r"""
    Fit a Bayesian model privately: a posterior, and what it promises to whom.

    DATA is the name of a data set or a table of your own with --target. By --method newton and vi clipped sums over
    the records are noised, so that the posterior keeps the DP ε that you give; by posterior-vi nothing is noised,
    samples of a posterior that stays secret are released, and every one is accounted for. What is left out is chosen
    from public quantities, and stated. Into --out go the posterior or the samples, the report and all that "predict",
    "report" and "resume" need.

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
    check_noise(common, needed=method != "posterior-vi")
    start_jax()

    from bayesdp.jobs.posterior_job import PosteriorJob
    from bayesdp.jobs.resume import prepare
    from bayesdp.learn.loop.run_folder import RunFolder

    RunFolder(out).check_free()
    job = PosteriorJob(
        **assigned(records, common, clipped=method != "posterior-vi"),
        model=_absolute(model),
        method=method,  # type: ignore[arg-type]  # checked there, as all that follows
        group=group,
        components=components,  # type: ignore[arg-type]
        guide=guide,  # type: ignore[arg-type]
        variant=variant,  # type: ignore[arg-type]
        noise_aware=noise_aware,
        learning_rate=learning_rate,
        clip_norm=clip_norm,
        samples=samples,  # type: ignore[arg-type]
        radius=radius,
        scales=None if scales is None else tuple(options.numbers("scales", scales, 2)),  # type: ignore[arg-type]
        non_private_too=non_private_too,
    )
    with terminal.waiting("Loading the records and calibrating the noise"):
        prepared = prepare(job)
    carry_out(prepared, out, json=json, ledger=ledger, budget=ledger_budget)


def _absolute(model: str) -> str:
    """A model of the user's own by a path that holds wherever the job is read again."""
    file, colon, name = model.rpartition(":")
    return f"{Path(file).expanduser().absolute()}:{name}" if colon and Path(file).suffix == ".py" else model
