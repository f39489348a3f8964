"""The words of `fit` that `train` does not have."""

from __future__ import annotations

from typing import Annotated

from bayesdp.cli.options import number
from bayesdp.cli.shared_options import MODEL, OUTPUT, PLAN, option

Model = Annotated[
    str,
    option(
        MODEL,
        "--model",
        "NAME",
        "logistic, linear, poisson, negative-binomial, hierarchical (with --group), mixture (with --components), or a "
        "NumPyro model of your own, my_model.py:model, which is called with (x, y).",
    ),
]
Method = Annotated[
    str | None,
    option(
        MODEL,
        "--method",
        "NAME",
        "newton: a few noisy sums, intervals that know of the noise (DP); if left out taken for yes/no and counts. "
        "vi: many noisy steps (DP). posterior-vi: no noise, --samples of a secret posterior are released.",
    ),
]
Group = Annotated[
    str | None,
    option(MODEL, "--group", "COLUMN", "Of --model hierarchical: the column of categories that are groups, e.g. ward."),
]
Components = Annotated[
    float | None, option(MODEL, "--components", "K", "Of --model mixture: how many, e.g. 3; 2 if left out.", number)
]
Guide = Annotated[str, option(MODEL, "--guide", "NAME", "Shape of the posterior: mean-field or full-rank (Gaussian).")]
Variant = Annotated[
    str, option(MODEL, "--variant", "NAME", "What of a record is noised: aligned, plain, natural, or paper (as in S2).")
]
NoiseAware = Annotated[
    bool | None,
    option(
        MODEL,
        "--noise-aware/--no-noise-aware",
        " ",
        "Whether intervals include what the noise for privacy did. If left out: where there are steps enough.",
    ),
]
LearningRate = Annotated[
    float | None, option(MODEL, "--learning-rate", "R", "Step of the means, e.g. 0.3. Chosen if left out.", number)
]
ClipNorm = Annotated[
    float | None,
    option(
        PLAN, "--clip-norm", "C", "The farthest that one record may move the sum, e.g. 1. Chosen if left out.", number
    ),
]
Samples = Annotated[
    float | None,
    option(PLAN, "--samples", "N", "Of --method posterior-vi: samples to release, e.g. 10, which is taken.", number),
]
Radius = Annotated[
    float | None,
    option(PLAN, "--radius", "R", "Of posterior-vi with --epsilon: largest length of the mean, e.g. 3.", number),
]
Scales = Annotated[
    str | None,
    option(
        PLAN, "--scales", "A,B", "Of posterior-vi with --epsilon: least and largest standard deviation, e.g. 0.1,1."
    ),
]
NonPrivateToo = Annotated[
    bool,
    option(
        OUTPUT,
        "--non-private-too",
        " ",
        "Show beside it the posterior without clipping and noise: NOT PRIVATE, and marked so wherever it is shown.",
    ),
]
