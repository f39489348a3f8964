"""The words of `train` that `fit` does not have."""

from __future__ import annotations

from typing import Annotated

from bayesdp.cli.options import number
from bayesdp.cli.shared_options import DATA, MODEL, PLAN, WITNESSES, option

Features = Annotated[
    str | None,
    option(
        DATA,
        "--features",
        "NAME",
        "scattering: turn images into features on which a linear model goes far; or a public extractor of your own, "
        "e.g. my_features.py:embed, with --feature-norm.",
    ),
]
FeatureNorm = Annotated[
    float | None,
    option(
        DATA,
        "--feature-norm",
        "B",
        "With an extractor of your own: the length that no record's features exceed, e.g. 1; longer are shortened.",
        number,
    ),
]
KeepFeatures = Annotated[
    bool,
    option(
        DATA,
        "--keep-features",
        " ",
        "Keep the features of a file of your own in your cache, readable by you alone, to have them at once next time; "
        "those of named data sets are kept anyway.",
    ),
]
Model = Annotated[
    str | None,
    option(MODEL, "--model", "NAME", "logistic (linear), mlp, cnn or lenet5. If left out: by the kind of records."),
]
Goal = Annotated[
    str | None,
    option(
        MODEL,
        "--goal",
        "NAME",
        "What the plan of a linear model is to be good at: accuracy, typical (what it costs typical people), or "
        "balanced, which is taken if left out.",
    ),
]
Optimizer = Annotated[
    str | None,
    option(MODEL, "--optimizer", "NAME", "adam or sgd. If left out: sgd for a linear model, adam for others."),
]
LearningRate = Annotated[
    float | None, option(MODEL, "--learning-rate", "R", "Of the optimiser, e.g. 0.05. Chosen if left out.", number)
]
Momentum = Annotated[float | None, option(MODEL, "--momentum", "M", "Of --optimizer sgd, e.g. 0.9.", number)]
ClipNorm = Annotated[
    str | None,
    option(
        PLAN,
        "--clip-norm",
        "C",
        "The largest distance that one record may move the sum, e.g. 1; none for no limit, with --noise-std: then "
        "nothing is promised to everybody (DP).",
    ),
]
NoiseStd = Annotated[
    float | None,
    option(PLAN, "--noise-std", "S", "With --clip-norm none: standard deviation of the noise, e.g. 5.", number),
]
Schedule = Annotated[
    str | None,
    option(
        PLAN,
        "--schedule",
        "NAME",
        "Noise over the steps: constant, or typical (more at first, when everybody is clipped: at the same DP ε it is "
        "gentler on typical people), which means --goal typical unless another is given.",
    ),
]
Budget = Annotated[
    float | None,
    option(PLAN, "--epsilon-budget", "E", "Stop before the step that would pass this DP ε, e.g. 3.", number),
]
FilterEpsilon = Annotated[
    float | None,
    option(
        PLAN,
        "--filter-epsilon",
        "E",
        "Leave a record out once its own steps add up to this DP ε, e.g. 1: everybody is then promised that ε, however "
        "much the plan costs in the worst case.",
        number,
    ),
]
BudgetColumn = Annotated[
    str | None,
    option(
        PLAN,
        "--budget-column",
        "NAME",
        "The column of your table with the DP ε that each person chose: a record is left out once its own steps add up "
        "to that. Everybody is promised the largest, which must be public.",
    ),
]
MeasureEvery = Annotated[
    float | None,
    option(
        PLAN,
        "--measure-every",
        "K",
        "With --watch everyone or --filter-epsilon: measure all records every K steps, e.g. 10, and clip each at what "
        "was measured in between; if left out, at every step.",
        number,
    ),
]
KeepIterates = Annotated[
    float | None,
    option(
        WITNESSES,
        "--keep-iterates",
        "K",
        "Keep the parameters before every Kth step, e.g. 1, so that the command instance can tell any record's own "
        "guarantee later.",
        number,
    ),
]
MetricsShare = Annotated[
    float | None,
    option(
        PLAN,
        "--metrics-share",
        "P",
        "Release counts over the test records with noise, for this share of --epsilon, e.g. 0.02: test accuracy may "
        "then be published. If left out, no test metric may.",
        number,
    ),
]
ClassWeights = Annotated[
    str | None,
    option(
        MODEL,
        "--class-weights",
        "NAME=W,…",
        "What a record of a class counts, e.g. yes=3,no=1: declared, and public. 1 for classes not named.",
    ),
]
