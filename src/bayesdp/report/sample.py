"""A sample report: a logistic regression on made-up people, really accounted three ways.

    python -m bayesdp.report.sample report.html

The residual of person i with margin d_i after t steps is σ(−k_t d_i), k_t growing as training goes on, and their
gradient's norm is that times the norm of their features: ordinary people are soon understood and pay little, those whom
the model gets wrong (d_i < 0) keep paying. No model is trained; the accountants are the real ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from bayesdp.accountant import BayesianAccountant, InstanceAccountant, WorstCaseAccountant
from bayesdp.compose import orders
from bayesdp.errors import Array, whole
from bayesdp.report.files import write
from bayesdp.report.schema import CoverageCurve, EpsilonHistory, NormQuantiles, Progress, RecordLosses, Report, Settings

NOISE, RATE, CLIP, DELTA, COVERAGE, RECORDS = 1.25, 0.02, 1.0, 1e-5, 0.9, 48_842
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
WATCHED = 5


def sample(people: int = 2000, steps: int = 600, evaluations: int = 16, seed: int = 7) -> Report:
    """The report of `steps` steps with `people` outsiders and as many members as witnesses, a few seconds.

    Bad input: fewer than 200 people, steps or evaluations below 1, or a negative seed get `InputError`.
    """
    people, steps = whole("people", people, least=200), whole("steps", steps, least=1)
    evaluations = whole("evaluations", evaluations, least=1, most=steps)
    rng = np.random.default_rng(whole("seed", seed, least=0))
    margin = rng.normal(1.7, 1.0, 2 * people)
    features = rng.gamma(12, 1 / 12, 2 * people)
    test = rng.normal(1.7, 1.0, 4000)

    grid, weights = orders.planned(NOISE, RATE, steps, DELTA / 2)
    plan: dict[str, Any] = {"noise_std": NOISE * CLIP, "sampling_rate": RATE}
    worst_case = WorstCaseAccountant(engine="pld", total_steps=steps)
    population = BayesianAccountant(orders=grid, weights=weights, cap=CLIP, total_steps=steps)
    each = InstanceAccountant(records=2 * people, orders=grid, weights=weights, cap=CLIP, total_steps=steps)
    moments = sorted({int(moment) for moment in np.linspace(1, steps, evaluations)})
    rows: dict[str, list[float]] = {"dp": [], "bdp": [], "per_instance": [], "loss": [], "accuracy": []}
    quantiles = []
    for now in range(1, steps + 1):
        sharpness = _sharpness(now, steps)
        norms = features * expit(-sharpness * margin)
        clipped = np.minimum(norms, CLIP)
        worst_case.step(noise_multiplier=NOISE, sampling_rate=RATE)
        population.step(clipped[:people], **plan, orientation="absent")
        population.step(clipped[people:], **plan, orientation="present")
        each.step(clipped, **plan)
        if now in moments:
            rows["dp"].append(worst_case.epsilon(DELTA))
            rows["bdp"].append(population.guarantee(DELTA, coverage=COVERAGE).epsilon)
            rows["per_instance"].append(float(each.epsilon(DELTA)[people : people + WATCHED].max()))
            rows["loss"].append(float(np.logaddexp(0, -sharpness * test).mean()))
            rows["accuracy"].append(_accuracy(test, now, rng))
            quantiles.append(np.quantile(norms, LEVELS))

    losses = each.epsilon(DELTA)
    worst = people + int(np.argmax(losses[people : people + WATCHED]))
    curve = population.curve(DELTA)
    return Report(
        title="Income model for the city council (sample on made-up people)",
        created="2026-03-01",
        settings=Settings(
            kind="private SGD, logistic regression",
            noise_std=NOISE * CLIP,
            noise_multiplier=NOISE,
            clip_norm=CLIP,
            sampling_rate=RATE,
            steps=steps,
            records=RECORDS,
            optimizer="SGD, learning rate 0.5, momentum 0.9",
            orders=tuple(grid),
            conversion="DP: privacy loss distributions. Witnesses: mixture over orders, hockey-stick form (H14).",
            other={"update rule": "sum, divided by a public constant", "witnesses outside the data": people},
        ),
        delta=DELTA,
        guarantees=(
            worst_case.guarantee(DELTA),
            population.guarantee(DELTA, coverage=COVERAGE),
            each.guarantee(DELTA, record=worst),
        ),
        record=f"each of {WATCHED} watched members, named beforehand; the largest is shown",
        curve=CoverageCurve(
            coverage=tuple(curve.coverage),
            epsilon=tuple(curve.epsilon),
            limit=curve.limit,
            failure=curve.failure,
            dp=curve.dp,
        ),
        history=EpsilonHistory(
            steps=tuple(moments),
            dp=tuple(rows["dp"]),
            bdp=tuple(rows["bdp"]),
            per_instance=tuple(rows["per_instance"]),
            coverage=COVERAGE,
        ),
        records=RecordLosses(epsilon=tuple(losses), correct=tuple(margin > 0)),
        norms=NormQuantiles(
            steps=tuple(moments),
            levels=LEVELS,
            values=tuple(tuple(row) for row in quantiles),
            clip_norm=(CLIP,) * len(moments),
        ),
        progress=Progress(
            steps=tuple(moments),
            values={"test loss": tuple(rows["loss"]), "test accuracy": tuple(rows["accuracy"])},
            data="test records that were never trained on",
        ),
        metrics={"test accuracy": float(np.mean(test > 0)), "test loss": rows["loss"][-1]},
        assumptions=("Whoever trained the model keeps the training data and this page secret.",),
        preprocessing=(
            "Features were scaled by bounds from the public code book, not from the data.",
            "The number of records is public.",
        ),
        notes=("The people of this sample are made up; the accountants are the real ones.",),
    )


def _sharpness(now: int, steps: int) -> float:
    """How sure the model has become: 0 at first, about 3 at the end."""
    return float(3.0 * (1 - np.exp(-4.0 * (now - 1) / steps)))


def _accuracy(margins: Array, now: int, rng: np.random.Generator) -> float:
    """Noisy at first, then settling."""
    return float(np.mean(margins + rng.normal(0, 3 / np.sqrt(now), margins.shape) > 0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sample to the files named."""
    parser = argparse.ArgumentParser(prog="python -m bayesdp.report.sample", description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="+", help="a file that ends in .html or .json")
    made = sample()
    for path in parser.parse_args(arguments).out:
        print(write(made, path))


if __name__ == "__main__":
    main()
