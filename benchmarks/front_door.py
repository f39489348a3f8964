"""What `bayesdp train FILE --target y --epsilon ε` gives on tables of all kinds: now, before, and beside diffprivlib.

    default      as it is today: ranges found by noisy counts, a share of ε (`--scale private`)
    statistics   the same with exact means and scales, unpaid (`--scale public-statistics`), as it was before
    before       the defaults before there were goals (commit 04ff0ea): unpaid; Adam, a fifth kept for testing, and
                 some held out, whatever the number of records
    diffprivlib  its logistic regression, once as it comes and once standardised, unpaid; ε the same, its δ 0

Classes are declared (`--levels`), which is what the message asks for; nothing else is. Each table is split `splits`
times into a file to train on and a quarter to judge by, the same for all. Of the file, `train` keeps records for
testing and holds some out as its defaults say: what counts is the model that somebody with that file gets. A line of
the result is a mean over splits, of percents right or of 100 R², with its standard error, and the difference to
"before" on the same splits with its own.

    python benchmarks/front_door.py results/front-door.csv SPLITS [TABLE …]

Jobs are loaded, prepared and settled as the command line does it; the noisy steps are taken in NumPy, which compiles
nothing, and the noise is calibrated by Rényi accounting, a little too much for all alike. Tables and diffprivlib come
from an environment of their own (`BAYESDP_BENCH`, see `clipping.py`).
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optax

from bayesdp.data import Dataset, read_features
from bayesdp.data.own import TEST_SHARE
from bayesdp.jobs import defaults
from bayesdp.jobs.data_source import DataSource
from bayesdp.jobs.sgd_job import SGDJob
from bayesdp.learn import goals
from bayesdp.learn.sgd import SGD
from clipping import CACHE, HERE, environment

Array = npt.NDArray[Any]

EPSILONS = (1.0, 3.0)
TEST = 0.25
FIELDS = ("table", "records", "columns", "classes", "epsilon", "way", "score", "error", "gain", "gain_error", "splits")
_PEER_RUNS = 1


@dataclasses.dataclass(frozen=True)
class Steps:
    """What the noisy steps need: z_t and learning rates (steps,), momentum or Adam."""

    clip: float
    noise: Array
    rates: Array
    sampling_rate: float
    momentum: float | None


def now(folder: Path, epsilon: float, number: int, options: dict[str, Any]) -> float:
    """The score of today's plan."""
    source = DataSource.given(str(folder / "train.csv"), target="y", **options)
    job = SGDJob(data=source, model="logistic", epsilon=epsilon, engine="rdp", seed=number)
    data = job.load()
    settled = _settled(job, data)
    kept = data
    if settled.holdout:
        share = settled.holdout / settled.pool(data) if data.paid is None else data.paid.held_out
        kept, _ = data.set_apart(share, draw=number)
    plan = settled.plan()
    rates = float(settled.learning_rate or 0) * goals.paces(plan.noise_schedule, settled.falling or 0.0, plan.steps)
    steps = Steps(float(plan.clip_norm or 0), plan.noise, rates, float(plan.sampling_rate), settled.momentum)
    return _judged(folder, data, trained(kept, steps, np.random.default_rng(number)))


_SETTLED: dict[tuple[Any, ...], SGDJob] = {}


def _settled(job: SGDJob, data: Dataset) -> SGDJob:
    """The job settled for such data; the noise is looked for once for about so many records, ε and payment."""
    # Coins make the number of records differ by a few from split to split, which the noise hardly notices.
    paid = None if data.paid is None else round(data.paid.noise_multiplier, 1)
    key = (round(len(data.x), -2), data.x.shape[1], data.classes, job.epsilon, paid)
    if key not in _SETTLED:
        _SETTLED[key] = job.settled(data)
    known = _SETTLED[key]
    return dataclasses.replace(known, data=job.data, seed=job.seed, paid=data.paid)


def before(folder: Path, epsilon: float, number: int) -> float:
    """The score of the former one."""
    source = DataSource.given(str(folder / "train.csv"), target="y", scale="public-statistics", test_share=TEST_SHARE)
    data = SGDJob(data=source, model="logistic", epsilon=epsilon, seed=number).load()
    held = defaults.holdout(len(data.x))
    kept, _ = data.set_apart(held / len(data.x), draw=number)
    count = len(data.x) - held
    rate, length = defaults.sampling_rate(count), defaults.steps(count, "logistic")
    noise = _noise(round(rate, 3), length, epsilon, defaults.delta(count))
    speed = defaults.learning_rate("logistic", "adam", data.x.shape[1])
    steps = Steps(defaults.clip_norm(count), np.full(length, noise), np.full(length, speed), rate, None)
    return _judged(folder, data, trained(kept, steps, np.random.default_rng(number)))


@functools.cache
def _noise(rate: float, steps: int, epsilon: float, delta: float) -> float:
    plan = SGD(
        sampling_rate=rate, steps=steps, clip_norm=1.0, noise_multiplier=1.0, optimizer=optax.identity(), delta=delta,
        engine="rdp",
    )  # fmt: skip
    return float(plan.calibrate(epsilon).noise_multiplier or 0)


def trained(data: Dataset, how: Steps, rng: np.random.Generator) -> Array:
    """The steps of `bd.SGD` for a linear model: SGD with momentum, or Adam where there is none."""
    x = np.column_stack([data.x, np.ones(len(data.x))])
    right = np.eye(len(data.classes))[data.y] if data.classes else np.asarray(data.y, float)[:, None]
    weights = np.zeros((x.shape[1], right.shape[1]))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    lengths = np.linalg.norm(x, axis=1)
    for step, (level, speed) in enumerate(zip(how.noise, how.rates, strict=True), start=1):
        batch = np.flatnonzero(rng.random(len(x)) < how.sampling_rate)
        told = x[batch] @ weights
        if data.classes:
            told = np.exp(told - told.max(axis=1, keepdims=True))
            told /= told.sum(axis=1, keepdims=True)
        wrong = told - right[batch]
        wrong *= np.minimum(1, how.clip / np.maximum(lengths[batch] * np.linalg.norm(wrong, axis=1), 1e-12))[:, None]
        noisy = x[batch].T @ wrong + how.clip * level * rng.normal(size=weights.shape)
        gradient = noisy / (how.sampling_rate * len(x))
        if how.momentum is not None:
            first = how.momentum * first + gradient
            weights = weights - speed * first
            continue
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        weights = weights - speed * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def _judged(folder: Path, data: Dataset, weights: Array) -> float:
    path = folder / "test.csv"
    assert data.recipe is not None
    told = read_features(path, data.recipe) @ weights[:-1] + weights[-1]
    true = [row["y"] for row in _rows(path)]
    if data.classes:
        return scored([data.classes[one] for one in told.argmax(axis=1)], true)
    return scored(list(data.y_mean + data.y_scale * told[:, 0]), true)


def scored(told: list[Any], true: list[str]) -> float:
    """100 times the share right, or R²."""
    if true[0].startswith("c"):
        return 100 * float(np.mean([one == other for one, other in zip(told, true, strict=True)]))
    answers, truth = np.array(told, float), np.array(true, float)
    return 100 * float(1 - np.square(answers - truth).mean() / truth.var())


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def split(path: Path, folder: Path, number: int) -> Path:
    """The folder with train.csv and test.csv."""
    folder.mkdir(parents=True)
    heads, *lines = path.read_text().splitlines()
    order = np.random.default_rng([number, len(lines)]).permutation(len(lines))
    cut = round(TEST * len(lines))
    for name, rows in (("test.csv", order[:cut]), ("train.csv", order[cut:])):
        (folder / name).write_text("\n".join([heads, *(lines[row] for row in rows)]) + "\n")
    return folder


def peer(folders: list[Path], epsilon: float) -> list[list[float]]:
    """The two scores of diffprivlib for each folder: all as they come, all standardised."""
    command = [environment("table-peers"), str(HERE / "front_door_peer.py"), "learn", f"{epsilon:g}", str(_PEER_RUNS)]
    said = subprocess.run([*command, *map(str, folders)], check=True, capture_output=True, text=True).stdout
    scores = [100 * float(line) for line in said.split()]
    return [scores[::2], scores[1::2]]


def measured(path: Path, splits: int, place: Path) -> list[dict[str, Any]]:
    """The lines of a table; its splits are folders of `place`."""
    rows = _rows(path)
    levels = sorted({row["y"] for row in rows}) if rows[0]["y"].startswith("c") else []
    declared: dict[str, Any] = {"levels": (("y", tuple(levels)),)} if levels else {}
    folders = [split(path, place / path.stem / str(number), number) for number in range(splits)]
    lines = []
    for epsilon in EPSILONS:
        unpaid = {**declared, "scale": "public-statistics"}
        found = {
            "before": [before(folder, epsilon, number) for number, folder in enumerate(folders)],
            "default": [now(folder, epsilon, number, declared) for number, folder in enumerate(folders)],
            "statistics": [now(folder, epsilon, number, unpaid) for number, folder in enumerate(folders)],
        }
        if levels:
            found["diffprivlib"], found["diffprivlib standardised"] = peer(folders, epsilon)
        for way, scores in found.items():
            gain = np.array(scores) - found["before"]
            values = (path.stem, len(rows), len(rows[0]) - 1, len(levels), epsilon, way, *_mean(scores), *_mean(gain))
            lines.append(dict(zip(FIELDS, (*values, splits), strict=True)))
            print(*lines[-1].values(), sep="\t", flush=True)
    return lines


def _mean(values: Any) -> tuple[str, str]:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.2f}", f"{error:.2f}"


def main(out: str, splits: str, *names: str) -> None:
    """Write after every table; those that are not named stay as they were."""
    target = Path(out)
    tables = CACHE / "tables"
    if not tables.exists():
        tables.mkdir(parents=True)
        command = [environment("table-peers"), str(HERE / "front_door_peer.py"), "tables", str(tables)]
        subprocess.run(command, check=True)
    lines: list[dict[str, Any]] = list(_rows(target)) if names and target.exists() else []
    with tempfile.TemporaryDirectory() as place:
        for path in sorted(tables.glob("*.csv"), key=lambda one: one.stat().st_size):
            if names and path.stem not in names:
                continue
            found = measured(path, int(splits), Path(place))
            lines = [line for line in lines if line["table"] != path.stem] + found
            with target.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
