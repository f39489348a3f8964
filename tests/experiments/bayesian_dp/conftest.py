"""S1's recipe on digits, run once for all tests of this folder."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import optax
import pytest
from s1_problem import LAMBDAS, STEPS, flat

from bayesdp.experiments.bayesian_dp import training
from bayesdp.experiments.bayesian_dp.recipe import Recipe, Seen, train
from bayesdp.experiments.bayesian_dp.training import Problem
from bayesdp.learn.models.networks import classifier
from bayesdp.mechanism import random_subset, seeded_key, step_keys


@pytest.fixture(scope="session")
def problem() -> Problem:
    from sklearn.datasets import load_digits

    raw = load_digits()
    x, y = (raw.data / 16).astype(np.float32), raw.target.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(x))
    train_part, outside, test = order[:1000], order[1000:1300], order[1300:]
    loss = classifier("logistic", 10)
    return Problem(
        loss=loss,
        params=loss.model.init(jax.random.key(0), (64,)),
        data=(x[train_part], y[train_part]),
        outsiders=(x[outside], y[outside]),
        test=(x[test], y[test]),
        members=300,
    )


@pytest.fixture(scope="session")
def plan() -> Recipe:
    return Recipe(
        sigma=0.1, clip_norm=1.0, sampling_rate=0.1, steps=STEPS, optimizer=optax.sgd(1.0), subset_fraction=0.5
    )


@pytest.fixture(scope="session")
def witnesses(problem: Problem) -> Any:
    """Those of `recipe_rows` with seed 0: outsiders, then members."""
    members = np.random.default_rng(0).permutation(1000)[:300]
    inside = (part[members] for part in problem.data)
    return tuple(np.concatenate(parts) for parts in zip(problem.outsiders, inside, strict=True))


@pytest.fixture(scope="session")
def follow(problem: Problem, plan: Recipe, witnesses: Any) -> Any:
    """The run that was asked for, step by step: all of them share one compiled program."""

    def run(steps: int = STEPS, seed: int = 3, **changed: Any) -> list[Seen]:
        chosen = dataclasses.replace(plan, steps=steps, **changed)
        given = {"witnesses": witnesses, "seed": seed, "interval": 1}
        return list(train(chosen, problem.loss, problem.params, problem.data, **given))

    return run


@pytest.fixture(scope="session")
def mask(problem: Problem) -> Any:
    """The weights that the first step may move, seed 3."""
    return flat(random_subset(step_keys(seeded_key(3), 0).subset, problem.params, 0.5))


@pytest.fixture(scope="session")
def rows(problem: Problem, plan: Recipe) -> list[dict[str, Any]]:
    record = training.plan_rows("per record", training.same_noise(plan, 1000, 2.0), problem, 0)
    # A picture has four runs; two are enough to look at.
    text, bare = ([{**row, "run": name} for row in record] for name in ("text", "no noise"))
    return [*training.recipe_rows(problem, plan, LAMBDAS, 0), *record, *text, *bare]
