"""What it costs in accuracy to pay for ranges and levels: Adult, Abalone and breast cancer as own tables, by N and ε.

    statistics   exact means, scales and levels of the records, unpaid
    declared     ranges that anybody would name, levels and classes known: divided by range/√12, or by half of it
    paid         classes known, all else found by noisy counts for a share of ε (H22)

A logistic model with the settings of `bayesdp train`, nobody held out; test accuracy, mean of `SEEDS` runs.
`python benchmarks/preparation.py results/preparation.csv [adult …]`.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from bayesdp.data import Dataset, builtin, own, uci
from bayesdp.data.dataset import Features
from bayesdp.data.places import Places
from bayesdp.data.preparation import declared
from bayesdp.data.table_file import read_table
from bayesdp.errors import Array, InputError
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.sgd_job import SGDJob

SEEDS = 5
TEST_SHARE = 0.3
SIZES = (500, 2000, 8000, 30_000)
EPSILONS = (1.0, 3.0)

ADULT_RANGES = {
    "age": (0, 100),
    "fnlwgt": (0, 1e6),
    "education-num": (0, 20),
    "capital-gain": (0, 1e5),
    "capital-loss": (0, 5000),
    "hours-per-week": (0, 100),
}
ABALONE_RANGES = dict.fromkeys(("length", "diameter", "height", "viscera", "shell"), (0.0, 1.0)) | {
    "whole": (0.0, 3.0),
    "shucked": (0.0, 2.0),
}


class Own(NamedTuple):
    """A table as somebody has it, with what is known of it beforehand."""

    columns: dict[str, list[str]]
    ranges: dict[str, tuple[float, float]]
    levels: dict[str, tuple[str, ...]]


def adult() -> Own:
    """The training file of Adult."""
    (path, _), _ = Places(None, False).get("adult", uci.ADULT)
    table, y = uci._adult_file(path)
    columns = {name: list(table.texts(name)) for name in uci.ADULT_COLUMNS}
    levels = {name: tuple(sorted(set(cells))) for name, cells in columns.items() if name not in ADULT_RANGES}
    columns["y"] = [uci.INCOMES[one] for one in y]
    return Own(columns, dict(ADULT_RANGES), levels)


def abalone() -> Own:
    """Abalone, ten rings and more or fewer."""
    (path,), _ = Places(None, False).get("abalone", uci.ABALONE)
    table = uci._read(path, (*uci.ABALONE_COLUMNS, "rings"))
    columns = {name: list(table.texts(name)) for name in uci.ABALONE_COLUMNS}
    columns["y"] = ["many" if rings >= 10 else "few" for rings in table.numbers("rings")]
    return Own(columns, dict(ABALONE_RANGES), {"sex": uci.SEXES})


def cancer() -> Own:
    """Breast cancer: 30 measurements, each from 0 to the power of ten above the largest."""
    raw = builtin._datasets("breast-cancer").load_breast_cancer()
    names = [str(name) for name in raw.feature_names]
    columns = {name: [repr(float(one)) for one in cells] for name, cells in zip(names, raw.data.T, strict=True)}
    ranges = {
        name: (0.0, float(10 ** np.ceil(np.log10(cells.max())))) for name, cells in zip(names, raw.data.T, strict=True)
    }
    columns["y"] = [str(raw.target_names[one]) for one in raw.target]
    return Own(columns, ranges, {})


TABLES = {"adult": adult, "abalone": abalone, "breast-cancer": cancer}


def ways(table: Own) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Name, what a range is divided by in √12-ths, and options of the data."""
    classes = ("y", tuple(sorted(set(table.columns["y"]))))
    bounds = tuple((name, low, high) for name, (low, high) in table.ranges.items())
    known = {"bounds": bounds, "levels": (*table.levels.items(), classes)}
    yield "statistics", 12**0.5, {"scale": "public-statistics"}
    yield "declared, range/√12", 12**0.5, known
    yield "declared, half of the range", 2.0, known
    for share in (0.1, 0.3):
        yield f"paid, share {share:g}", 12**0.5, {"scale": "private", "scale_share": share, "levels": (classes,)}


def accuracy(path: Path, size: float, epsilon: float, seed: int, options: dict[str, Any]) -> float:
    """Of one run on the test records, in percent."""
    declared.SIZE = size
    source = DataSource.given(str(path), target="y", test_share=TEST_SHARE, **options)
    job = SGDJob(
        data=source, model="logistic", epsilon=epsilon, delta=1e-5, engine="rdp", holdout=0, members=0, seed=seed
    )
    data = job.load()
    settled = calibrated(dataclasses.replace(job, data=DataSource(name="own"), seed=None, draw=0), data)
    weights = trained(settled, data, np.random.default_rng(seed))
    return 100 * float((_logits(weights, data.x_test).argmax(axis=1) == data.y_test).mean())


_KNOWN: dict[tuple[Any, ...], SGDJob] = {}


def calibrated(job: SGDJob, data: Dataset) -> SGDJob:
    """The job settled for such data; the noise is looked for once for a number of records, ε and payment."""
    # Coins make the number of records differ by a few from seed to seed, which the noise hardly notices.
    key = (round(len(data.x), -2), data.x.shape[1], job.epsilon, data.paid)
    if key not in _KNOWN:
        _KNOWN[key] = job.settled(data)
    return _KNOWN[key]


def trained(job: SGDJob, data: Dataset, rng: np.random.Generator) -> Array:
    """The steps of `bd.SGD` with Adam for a logistic model, in NumPy, which compiles nothing."""
    steps, rate, _ = job.chosen
    clip, noise = float(job.clip_norm or 0), float(job.noise_multiplier or 0)
    x = np.column_stack([data.x, np.ones(len(data.x), np.float32)])
    right = np.eye(len(data.classes))[data.y]
    weights = np.zeros((x.shape[1], len(data.classes)))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):
        batch = np.flatnonzero(rng.random(len(x)) < rate)
        scores = x[batch] @ weights
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        wrong = shares / shares.sum(axis=1, keepdims=True) - right[batch]
        norms = np.linalg.norm(x[batch], axis=1) * np.linalg.norm(wrong, axis=1)
        wrong *= np.minimum(1, clip / np.maximum(norms, 1e-12))[:, None]
        gradient = (x[batch].T @ wrong + clip * noise * rng.normal(size=weights.shape)) / (rate * len(x))
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        weights -= float(job.learning_rate or 0) * first / (1 - 0.9**step) / size
    return weights


def _logits(weights: Array, x: Features) -> Array:
    return np.asarray(x @ weights[:-1] + weights[-1])


def measured(names: list[str]) -> Iterator[dict[str, Any]]:
    """A line for each table, number of records, ε and way."""
    for name in names:
        table = TABLES[name]()
        rows = len(table.columns["y"])
        sizes = [size for size in SIZES if size < rows] + ([rows] if rows < SIZES[-1] else [])
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "own.csv"
                chosen = np.sort(np.random.default_rng(0).permutation(rows)[:size])
                with path.open("w", newline="") as file:
                    lines = csv.writer(file)
                    lines.writerow(table.columns)
                    lines.writerows([cells[row] for cells in table.columns.values()] for row in chosen)
                for epsilon in EPSILONS:
                    for way, divisor, options in ways(table):
                        try:
                            found = [accuracy(path, divisor, epsilon, seed, options) for seed in range(SEEDS)]
                        except InputError as problem:
                            print(problem)
                            continue
                        yield {
                            "data": name,
                            "records": size,
                            "epsilon": epsilon,
                            "way": way,
                            "accuracy": f"{np.mean(found):.2f}",
                            "spread": f"{np.std(found, ddof=1):.2f}",
                        }


def main(out: str, *names: str) -> None:
    """Write the lines as they come, to go on reading while it runs."""
    fields = ("data", "records", "epsilon", "way", "accuracy", "spread")
    kept = mock.patch.object(own, "read_table", functools.cache(read_table))  # the same file again and again
    with kept, Path(out).open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, fields)
        lines.writeheader()
        for line in measured(list(names) or list(TABLES)):
            lines.writerow(line)
            file.flush()
            print(*line.values(), sep="\t", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
