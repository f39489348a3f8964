"""`bayesdp train`: private SGD from a data set to a model and a report."""

from __future__ import annotations

from typing import Literal

from bayesdp import errors
from bayesdp.cli import learning_options, options, terminal, training_options
from bayesdp.cli.learning import assigned, carry_out, check_noise, start_jax
from bayesdp.cli.learning_options import CommonOptions, RecordOptions
from bayesdp.cli.option_groups import spread


@spread
def train(
    *,
    records: RecordOptions,
    features: training_options.Features = None,
    feature_norm: training_options.FeatureNorm = None,
    keep_features: training_options.KeepFeatures = False,
    model: training_options.Model = None,
    goal: training_options.Goal = None,
    optimizer: training_options.Optimizer = None,
    learning_rate: training_options.LearningRate = None,
    momentum: training_options.Momentum = None,
    class_weights: training_options.ClassWeights = None,
    common: CommonOptions,
    clip_norm: training_options.ClipNorm = None,
    noise_std: training_options.NoiseStd = None,
    schedule: training_options.Schedule = None,
    epsilon_budget: training_options.Budget = None,
    filter_epsilon: training_options.FilterEpsilon = None,
    budget_column: training_options.BudgetColumn = None,
    measure_every: training_options.MeasureEvery = None,
    metrics_share: training_options.MetricsShare = None,
    keep_iterates: training_options.KeepIterates = None,
    out: learning_options.Out,
    ledger: learning_options.LedgerFile = None,
    ledger_budget: learning_options.LedgerBudget = None,
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
              --epsilon 1.2 --delta 1e-5 --goal typical --out run
    """
    check_noise(common, needed=clip_norm != "none")
    start_jax()

    from bayesdp.jobs.prepared_sgd import prepare
    from bayesdp.jobs.sgd_job import SGDJob
    from bayesdp.learn.loop.run_folder import RunFolder

    RunFolder(out).check_free()
    job = SGDJob(
        **assigned(records, common, features=features, feature_norm=feature_norm, keep_features=keep_features),
        model=model,
        noise_std=noise_std,
        clip_norm=_clip_norm(clip_norm),
        goal=goal,
        noise_schedule=schedule,
        optimizer=optimizer,
        learning_rate=learning_rate,
        momentum=momentum,
        class_weights=class_weights,
        metrics_share=metrics_share,
        epsilon_budget=epsilon_budget,
        filter_epsilon=filter_epsilon,
        budget_column=budget_column,
        measure_every=measure_every,  # type: ignore[arg-type]  # checked there, so that 1e3 can be typed
        keep_iterates=keep_iterates,  # type: ignore[arg-type]
    )
    with terminal.waiting("Loading the records and calibrating the noise"):
        prepared = prepare(job)
    carry_out(prepared, out, json=json, ledger=ledger, budget=ledger_budget)


def _clip_norm(text: str | None) -> float | Literal["none"] | None:
    if text is None or text == "none":
        return text  # type: ignore[return-value]
    try:
        return float(text)
    except ValueError:
        raise errors.refuse("clip_norm", text, "to be a number or none") from None
