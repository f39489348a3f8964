"""Plans of linear models on public sets, judged on validation records: writes src/bayesdp/learn/plans.csv.

    python benchmarks/plans.py [SET …]           the goals' plans and what `train` did before there were goals
    python benchmarks/plans.py search [SET …]    prints scores over κ = C/R and s, by which goals.py was settled

Sets are those of `plan_sets.py`; statsmodels and diffprivlib are used where they are installed. Scores are shares of
records right, or R²; each is the mean of three runs of `plan_training.py`, which accounts for nobody.
"""

from __future__ import annotations

import csv
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optax

from bayesdp.jobs import defaults
from bayesdp.learn import goals
from bayesdp.learn.goals import GOALS, Shape
from bayesdp.learn.sgd import SGD
from plan_sets import SETS, PlanSet
from plan_training import learn

Array = npt.NDArray[Any]

TABLE = Path(__file__).parents[1] / "src" / "bayesdp" / "learn" / "plans.csv"
HEADS = ("set", "kind", "records", "features", "classes", "epsilon", "goal", "score", "constant")
EPSILONS, REPEATS = (1.0, 3.0), 3
BEFORE, OTHER = "before goals", "diffprivlib"


@cache
def noise(rate: float, steps: int, schedule: Any, epsilon: float, delta: float) -> Array:
    """The z_t of a plan, by Rényi accounting: a little too much, for all alike."""
    plan = SGD(
        sampling_rate=rate, steps=steps, clip_norm=1.0, noise_schedule=schedule, optimizer=optax.identity(),
        delta=delta, engine="rdp",
    )  # fmt: skip
    return plan.calibrate(epsilon).noise


def shape_of(one: PlanSet) -> Shape:
    """What is public of it."""
    return Shape(len(one.x), one.features, one.classes, None, one.norm)


def by_goal(one: PlanSet, goal: str, epsilon: float) -> float:
    """The score of a goal's plan."""
    shape = shape_of(one)
    chosen = goals.steps_of(shape)
    delta = defaults.delta(shape.records)
    levels = noise(chosen.sampling_rate, chosen.steps, chosen.noise_schedule, epsilon, delta)
    pace = goals.paces(chosen.noise_schedule, chosen.falling, chosen.steps)
    sizes = goals.sizes(
        goal, shape, noise=levels, pace=pace, sampling_rate=chosen.sampling_rate, momentum=chosen.momentum
    )
    found = learn(
        one.x, one.y, one.x_valid, one.y_valid, one.classes, clip=np.array([sizes.clip_norm]),
        rate=np.array([sizes.learning_rate]), noise=levels, pace=pace, sampling_rate=chosen.sampling_rate,
        momentum=chosen.momentum, seeds=REPEATS,
    )  # fmt: skip
    return float(found.score.mean())


def before(one: PlanSet, epsilon: float) -> float:
    """The score of the defaults before there were goals: Adam, and a part of the records held out."""
    records = len(one.x) - defaults.holdout(len(one.x))
    rate, steps = defaults.sampling_rate(records), defaults.steps(records, "logistic")
    found = learn(
        one.x[:records], one.y[:records], one.x_valid, one.y_valid, one.classes,
        clip=np.array([defaults.clip_norm(records)]),
        rate=np.array([defaults.learning_rate("logistic", "adam", one.features)]),
        noise=noise(rate, steps, 1.0, epsilon, defaults.delta(records)), pace=np.ones(steps), sampling_rate=rate,
        adam=True, seeds=REPEATS,
    )  # fmt: skip
    return float(found.score.mean())


def other(one: PlanSet, epsilon: float) -> float | None:
    """The score of diffprivlib's logistic regression at the same ε (its δ is 0); None where it is not there."""
    if not one.classes:
        return None
    try:
        from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    scores = [
        LogisticRegression(epsilon=epsilon, data_norm=2 * one.norm, random_state=seed)
        .fit(one.x, one.y)
        .score(one.x_valid, one.y_valid)
        for seed in range(REPEATS)
    ]
    return float(np.mean(scores))


def constant(one: PlanSet) -> float:
    """What a constant answer scores."""
    return float(np.bincount(one.y_valid).max() / len(one.y_valid)) if one.classes else 0.0


def search(one: PlanSet, epsilon: float) -> None:
    """Print scores over κ and s."""
    shape = shape_of(one)
    chosen, length = goals.steps_of(shape), shape.length
    levels = noise(chosen.sampling_rate, chosen.steps, "typical", epsilon, defaults.delta(shape.records))
    pace = goals.paces("typical", chosen.falling, chosen.steps)
    kappas, moved = (part.ravel() for part in np.meshgrid((0.05, 0.1, 0.2, 0.5, 1.0), (0.15, 0.3, 0.6, 1.2)))
    walk = math.sqrt(np.sum((levels * pace) ** 2)) / (chosen.sampling_rate * shape.records * (1 - chosen.momentum))
    rates = np.minimum(moved / walk / kappas, shape.largest_rate) / length**2
    found = learn(
        one.x, one.y, one.x_valid, one.y_valid, one.classes, clip=kappas * length, rate=rates, noise=levels, pace=pace,
        sampling_rate=chosen.sampling_rate, momentum=chosen.momentum, seeds=REPEATS,
    )  # fmt: skip
    for kappa, s, score, loss in zip(kappas, moved, found.score.mean(0), found.loss.mean(0), strict=True):
        print(f"{one.name}, ε {epsilon:g}, κ {kappa:g}, s {s:g}: {score:.4f}, loss {loss:.3f}", flush=True)


def _write(lines: list[dict[str, Any]]) -> None:
    """After every set, so that a search that is broken off has told what it found."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def main() -> None:
    """The table, or the search."""
    words = sys.argv[1:]
    searching = words[:1] == ["search"]
    names = words[1:] if searching else words
    lines: list[dict[str, Any]] = []
    if names and not searching and TABLE.exists():
        with TABLE.open(encoding="utf-8") as file:
            lines = [line for line in csv.DictReader(file) if line["set"] not in names]
    for name in names or SETS:
        try:
            one = SETS[name]()
        except ImportError as problem:
            print(f"{name} is left out: {problem}", flush=True)
            continue
        for epsilon in EPSILONS:
            if searching:
                search(one, epsilon)
                continue
            scores: dict[str, float | None] = {goal: by_goal(one, goal, epsilon) for goal in GOALS}
            scores |= {BEFORE: before(one, epsilon), OTHER: other(one, epsilon)}
            print(name, epsilon, {key: value and round(value, 4) for key, value in scores.items()}, flush=True)
            fixed = (one.name, one.kind, len(one.x), one.features, one.classes, epsilon)
            for goal, score in scores.items():
                if score is not None:
                    row = (*fixed, goal, f"{score:.4f}", f"{constant(one):.4f}")
                    lines.append(dict(zip(HEADS, row, strict=True)))
        if not searching:
            _write(lines)


if __name__ == "__main__":
    main()
