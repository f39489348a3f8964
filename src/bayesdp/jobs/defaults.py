"""What a job leaves open, chosen from public quantities only: how many records, of which shape, which model.

Chosen once on public data sets (digits, breast-cancer, abalone, adult, mnist) at ε = 1, 2 and 8, and the same for all:
nothing here looks at the records that are trained on, so nothing here costs privacy (a condition of H5). A linear model
takes its plan from `learn.goals` instead: `plans.default_plan` chooses between the two.

- For a given ε and number of steps the noise of a step is about proportional to the sampling rate, so that large
  batches cost nothing but time. Few steps mean little noise, too few do not learn.
- Adam divides by the size of the noisy gradient, so that one learning rate does for little noise and for much.
- A low clip norm means little noise. A high one leaves ordinary people's gradients below it, which is what makes their
  own numbers smaller than the worst case. The more records, the less the noise matters.
"""

from __future__ import annotations

import math
import sys

MOMENTUM = 0.9


def holdout(records: int) -> int:
    """How many of the training records are held out: a tenth, at least 200 unless that were over a quarter; beyond
    2,000 a twentieth, at most 10,000: their number is what limits the share of people that they can speak for (H5).
    """
    few = min(2000, max(records // 10, min(200, records // 4)))
    return min(10_000, max(few, records // 20))


FEW = 500
"""Records below which `train` holds nobody out and keeps nobody for testing: at ε = 1 every record counts."""

MEMBERS_ALONE = (
    f"Fewer than {FEW} records to train on: nobody is held out unless that is asked for, so the Bayesian promise "
    "speaks for members alone."
)
UNTESTED = "No record is kept for testing unless that is asked for: no test accuracy is told."


def few(declared: int | None) -> int:
    """How many rows a file must have to be split where nothing was said; by the declared number where there is one,
    so that the true one decides nothing.
    """
    if declared is None:
        return FEW
    return 0 if declared >= FEW else sys.maxsize


def holdout_of_training(records: int) -> int:
    """`holdout`, but nobody where there are few: the Bayesian promise then speaks for members alone."""
    return 0 if records < FEW else holdout(records)


def members(records: int) -> int:
    """How many training records are witnesses."""
    return min(2000, records)


def holdout_of_features(records: int) -> int:
    """`holdout_of_training` where a linear model on features of images is to be gentle on typical people: a twelfth
    where that is more. Witnesses cost such a model little, and a curve that more of them speak for is closer to what
    they measured: on MNIST, where that was 0.10 of the DP ε for 80 % of people, 2,000 members and 3,000 outsiders
    certified 0.17 and 4,000 of each 0.13.
    """
    return max(holdout_of_training(records), min(10_000, records // 12))


def members_of_features(records: int) -> int:
    """The same for members."""
    return min(records, max(members(records), holdout_of_features(records)))


def sampling_rate(records: int) -> float:
    """16/√N: batches of 16 √N records."""
    return min(1.0, 16 / math.sqrt(records))


def steps(records: int, model: str) -> int:
    """4 √N, between 80 and 150: few records cannot stand much noise. Twice as many for more than one layer."""
    return (1 if model == "logistic" else 2) * round(min(150.0, max(80.0, 4 * math.sqrt(records))))


def clip_norm(records: int, features: str | None = None) -> float:
    """√N/15, between 1.5 and 6, to a tenth; 1.5 for scattering features, which have the length 3 by design."""
    return 1.5 if features else round(min(6.0, max(1.5, math.sqrt(records) / 15)), 1)


def delta(records: int) -> float:
    """1e-5, or where that is not below 1/N the largest power of ten that is."""
    power = math.ceil(-math.log10(records)) - 1
    return min(1e-5, 10.0**power)


def model(shape: tuple[int, ...], features: str | None = None) -> str:
    """LeNet-5 for images that are large enough for it, one hidden layer for others, else a linear model."""
    if len(shape) != 3 or features:
        return "logistic"
    return "lenet5" if min(shape[:2]) >= 28 else "mlp"


def learning_rate(model: str, optimizer: str, features: int) -> float:
    """Of optax's Adam or SGD; a linear model of very many features takes smaller steps with each."""
    if model != "logistic":
        return 0.01 if optimizer == "adam" else 0.1
    return float(f"{0.03 * min(1.0, math.sqrt(256 / features)):.2g}") if optimizer == "adam" else 0.2


def step_of_means(wander: float, paced: float) -> float | None:
    """The step of a guide's means where noise alone would carry paced ones farther than a prior reaches; else None.

    `wander` is how far a step of 1 at every time would carry a mean, z C √T/(q N); `paced` the last of the paced steps.
    On breast-cancer (455 records, ε = 1) this halves the distance to the non-private means three times.
    """
    return float(f"{1 / wander:.2g}") if wander * paced > 1 else None
