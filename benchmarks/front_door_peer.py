"""Tables of scikit-learn and statsmodels as CSV, and diffprivlib's logistic regression on splits of them.

    python front_door_peer.py tables FOLDER              writes NAME.csv each, with the target in the column y
    python front_door_peer.py learn ε RUNS FOLDER …      prints shares of test.csv right, two for each folder

Runs in an environment of its own (`clipping.PEERS`), without bayesdp. `c…` in y are classes, else it is a number.
diffprivlib with its defaults looks up the length of the longest record, which leaks; standardised by exact statistics,
as `--scale public-statistics` does, it is told √d, what such records have on average, and shortens longer ones.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


def _of_sklearn(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    raw = getattr(datasets, f"load_{name}")()
    return raw.data, raw.target


def _frame(name: str) -> Any:
    import statsmodels.datasets as datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return getattr(datasets, name).load_pandas().data


def _split(frame: Any, target: str, *drop: str) -> tuple[Any, Any]:
    frame = frame.dropna()
    return frame.drop(columns=[target, *drop]).to_numpy(float), frame[target].to_numpy(float)


def tables() -> Iterator[tuple[str, bool, Any, Any]]:
    """Name, whether the target is a class, columns, target."""
    for name, classes in (("iris", True), ("wine", True), ("diabetes", False), ("breast_cancer", True)):
        yield name.replace("_", "-"), classes, *_of_sklearn(name)
    digits, which = _of_sklearn("digits")
    yield "digits", True, digits, which
    fair, had = _split(_frame("fair"), "affairs")
    yield "fair", True, fair, had > 0
    # 944 voters: for whom, by what they are and think.
    yield "anes96", True, *_split(_frame("anes96"), "vote", "popul")
    # 840 = 210 travellers with four lines each: whether this is the way they took.
    mode = _frame("modechoice")
    yield "modechoice", True, *_split(mode, "choice", "individual")
    randhie, visits = _split(_frame("randhie"), "mdvis")
    yield "randhie", True, randhie, visits > 0
    star = _frame("star98")
    passed = star["NABOVE"] / (star["NABOVE"] + star["NBELOW"])
    yield "star98", False, star.drop(columns=["NABOVE", "NBELOW"]).to_numpy(float), passed.to_numpy(float)
    # 203 quarters: whether unemployment is above its median.
    macro, jobless = _split(_frame("macrodata"), "unemp", "year", "quarter")
    yield "macrodata", True, macro, jobless > np.median(jobless)
    engel = _frame("engel")
    yield "engel", False, engel[["income"]].to_numpy(float), engel["foodexp"].to_numpy(float)
    rng = np.random.default_rng(1)
    yield "digits+1936", True, np.concatenate([digits, rng.normal(size=(len(digits), 1936))], axis=1), which % 2
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2500, 2000))
    yield "made-2000x2000", True, x, x[:, :50] @ rng.normal(size=50) / 4 + rng.logistic(size=len(x)) > 0


def write(folder: Path) -> None:
    """All tables."""
    for name, classes, x, y in tables():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow([*(f"x{i}" for i in range(x.shape[1])), "y"])
            for row, target in zip(x, y, strict=True):
                lines.writerow([*(f"{cell:.6g}" for cell in row), f"c{int(target)}" if classes else f"{target:.6g}"])


def learn(folder: Path, epsilon: float, runs: int) -> None:
    """Print two shares: as it comes, and standardised."""
    from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore")  # that it leaks: said above
    (x, y), (x_test, y_test) = _read(folder / "train.csv"), _read(folder / "test.csv")
    mean, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 0, scale, 1)
    forms = [(x, x_test, None), ((x - mean) / scale, (x_test - mean) / scale, float(np.sqrt(x.shape[1])))]
    for ours, theirs, norm in forms:
        scores = [
            LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=run, max_iter=300)
            .fit(ours, y)
            .score(theirs, y_test)
            for run in range(runs)
        ]
        print(float(np.mean(scores)), flush=True)


def _read(path: Path) -> tuple[Any, Any]:
    with path.open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array([row[:-1] for row in rows], float), np.array([row[-1] for row in rows])


if __name__ == "__main__":
    if sys.argv[1] == "tables":
        write(Path(sys.argv[2]))
    else:
        for place in sys.argv[4:]:
            learn(Path(place), float(sys.argv[2]), int(sys.argv[3]))
