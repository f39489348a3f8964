"""What `bayesdp train FILE --target y --epsilon ε` gives on tables of all kinds: now, before, and beside diffprivlib.

    default      as it is today: ranges found by noisy counts, a share of ε (`--scale private`)
    statistics   the same with exact means and scales, unpaid (`--scale public-statistics`), as it was before
    before       the defaults before there were goals (commit 04ff0ea): unpaid
    diffprivlib  its logistic regression, once as it comes and once standardised, unpaid; ε the same, its δ 0

Classes are declared (`--levels`), which is what the message asks for; nothing else is. Each table is split `splits`
times into a file to train on and a quarter to judge by, the same for all. Of the file, `train` keeps records for
testing and holds some out as its defaults say: what counts is the model that somebody with that file gets. A line of
the result is a mean over splits, of percents right or of 100 R², with its standard error, and the difference to
"before" on the same splits with its own.

    python benchmarks/front_door.py results/front-door.csv SPLITS [TABLE …]

Tables and diffprivlib come from an environment of their own, the former version from a work tree made of git
(`BAYESDP_BENCH`, see `clipping.py`).
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from clipping import CACHE, HERE, environment

FORMER = "04ff0ea"
EPSILONS = (1.0, 3.0)
TEST = 0.25
FIELDS = ("table", "records", "columns", "classes", "epsilon", "way", "score", "error", "gain", "gain_error", "splits")
_PEER_RUNS = 3


class Runner:
    """A process that trains and predicts with one version of bayesdp."""

    def __init__(self, source: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "front_door_runs.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(source)},
        )

    def score(self, folder: Path, epsilon: float, options: list[str]) -> float:
        """100 times the share right, or R², on the folder's test.csv of a model made of its train.csv."""
        out, told = folder / "run", folder / "told.csv"
        test = str(folder / "test.csv")
        given = [str(folder / "train.csv"), "--target", "y", "--epsilon", f"{epsilon:g}", "--model", "logistic"]
        asked = {
            "train": [*given, *options, "--out", str(out)],
            "predict": [str(out), test, "--out", str(told)],
        }
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer["code"]:
            raise RuntimeError(answer["said"])
        found = scored([row["prediction"] for row in _rows(told)], [row["y"] for row in _rows(folder / "test.csv")])
        shutil.rmtree(out)
        told.unlink()
        return found


def scored(told: list[str], true: list[str]) -> float:
    """100 times the share right, or R²."""
    if true[0].startswith("c"):
        return 100 * float(np.mean([one == other for one, other in zip(told, true, strict=True)]))
    answers, truth = np.array(told, float), np.array(true, float)
    return 100 * float(1 - np.square(answers - truth).mean() / truth.var())


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def former() -> Path:
    """The source of the version before there were goals, made of git when it is not there yet."""
    folder = CACHE / "before"
    if not folder.exists():
        subprocess.run(
            ["git", "-C", str(HERE.parent), "worktree", "add", "--detach", str(folder), FORMER], check=True
        )
    return folder / "src"


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
    """diffprivlib's two scores for each folder: all as they come, all standardised."""
    command = [environment("table-peers"), str(HERE / "front_door_peer.py"), "learn", f"{epsilon:g}", str(_PEER_RUNS)]
    said = subprocess.run([*command, *map(str, folders)], check=True, capture_output=True, text=True).stdout
    scores = [100 * float(line) for line in said.split()]
    return [scores[::2], scores[1::2]]


def measured(path: Path, splits: int, now: Runner, before: Runner, place: Path) -> list[dict[str, Any]]:
    """The lines of a table; its splits are folders of `place`."""
    rows = _rows(path)
    levels = sorted({row["y"] for row in rows}) if rows[0]["y"].startswith("c") else []
    declared = ["--levels", f"y={','.join(levels)}"] if levels else []
    folders = [split(path, place / path.stem / str(number), number) for number in range(splits)]
    lines = []
    for epsilon in EPSILONS:
        unpaid = [*declared, "--scale", "public-statistics"]
        found = {
            "before": [before.score(folder, epsilon, []) for folder in folders],
            "default": [now.score(folder, epsilon, declared) for folder in folders],
            "statistics": [now.score(folder, epsilon, unpaid) for folder in folders],
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
    now, before = Runner(HERE.parent / "src"), Runner(former())
    with tempfile.TemporaryDirectory() as place:
        for path in sorted(tables.glob("*.csv"), key=lambda one: one.stat().st_size):
            if names and path.stem not in names:
                continue
            found = measured(path, int(splits), now, before, Path(place))
            lines = [line for line in lines if line["table"] != path.stem] + found
            with target.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
