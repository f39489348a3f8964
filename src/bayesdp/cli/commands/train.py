"""`bayesdp train`: private SGD from a data set to a model and a report.

Its options are declared in `cli.train_options`, and those that `fit` has too in `cli.shared_options`.
"""

from __future__ import annotations

from typing import Literal

from bayesdp import errors
from bayesdp.cli import options, shared_options, terminal, train_options
from bayesdp.cli.learning import assigned, carry_out, check_noise, start_jax
from bayesdp.cli.option_groups import spread
from bayesdp.cli.shared_options import CommonOptions, RecordOptions


@spread
def train(
    *,
    records: RecordOptions,
    features: train_options.Features = None,
    feature_norm: train_options.FeatureNorm = None,
    keep_features: train_options.KeepFeatures = False,
    model: train_options.Model = None,
    goal: train_options.Goal = None,
    optimizer: train_options.Optimizer = None,
    learning_rate: train_options.LearningRate = None,
    momentum: train_options.Momentum = None,
    class_weights: train_options.ClassWeights = None,
    common: CommonOptions,
    clip_norm: train_options.ClipNorm = None,
    noise_std: train_options.NoiseStd = None,
    schedule: train_options.Schedule = None,
    epsilon_budget: train_options.Budget = None,
    filter_epsilon: train_options.FilterEpsilon = None,
    budget_column: train_options.BudgetColumn = None,
    measure_every: train_options.MeasureEvery = None,
    metrics_share: train_options.MetricsShare = None,
    keep_iterates: train_options.KeepIterates = None,
    out: shared_options.Out,
    ledger: shared_options.LedgerFile = None,
    ledger_budget: shared_options.LedgerBudget = None,
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
    own = {"features": features, "feature_norm": feature_norm, "keep_features": keep_features}
    job = SGDJob(
        **assigned(records, common, clipped=clip_norm != "none", **own),
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
