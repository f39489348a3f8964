"""S1's settings for MNIST and CIFAR-10: the paper's numbers, bounded gradients, pictures."""

from __future__ import annotations

import math
import os
from typing import Any

import jax
import numpy as np
import pytest
from pictures import drawn
from s1_problem import flat

from bayesdp.experiments.bayesian_dp import training
from bayesdp.experiments.bayesian_dp.images import CIFAR10, MNIST, NORM, PAPERS, features
from bayesdp.learn.models.networks import classifier


def test_the_papers_numbers() -> None:
    plan = MNIST.recipe(60_000, full=True)
    assert (plan.sigma, plan.clip_norm, plan.noise_std, plan.subset_fraction) == (0.1, 1.0, 0.1, 0.1)
    assert (plan.steps, plan.sampling_rate) == (1172, 1024 / 60_000)
    plan = CIFAR10.recipe(50_000, full=True)
    assert (plan.sigma, plan.clip_norm, plan.noise_std, plan.steps) == (0.7, None, 0.7, 293)
    assert (MNIST.recipe(59_500).steps, CIFAR10.recipe(9500).steps, CIFAR10.recipe(9500).sampling_rate) == (
        581,
        293,
        512 / 9500,
    )


def test_the_papers_network() -> None:
    params = jax.eval_shape(lambda key: PAPERS.init(key, (28, 28, 1)), jax.random.key(0))
    assert [leaf["kernel"].shape for leaf in params] == [
        (5, 5, 1, 64), (5, 5, 64, 64), (1024, 384), (384, 192), (192, 10),
    ]  # fmt: skip


def test_features_of_photographs_bound_their_gradients() -> None:
    """|∇loss| ≤ √(2(R² + 1)) whatever the image, its label and the weights; a blank image has no features."""
    pixels = np.random.default_rng(0).random((5, 32, 32, 3), np.float32)
    pixels[4] = 0.5
    found = features(pixels)
    assert found.shape == (5, 5184)
    np.testing.assert_allclose(np.linalg.norm(found[:4], axis=1), NORM, rtol=1e-4)
    assert np.linalg.norm(found[4]) <= NORM
    loss, most = classifier("logistic", 10), math.sqrt(2 * (NORM**2 + 1))
    aligned = {"kernel": np.outer(found[0], np.eye(10)[0]).astype(np.float32), "bias": np.zeros(10, np.float32)}
    sure = jax.grad(loss)((aligned,), (found[0], np.int32(1)))  # certain of a wrong class: the worst there is
    assert most * (1 - 1e-4) < np.linalg.norm(flat(sure)) < most * (1 + 1e-4)


def test_mnist_is_split_between_training_and_outsiders() -> None:
    if not os.environ.get("BAYESDP_DATA"):
        pytest.skip("BAYESDP_DATA is not set: the experiment's data are not looked at")
    chosen = MNIST.problem(0, witnesses=300)
    assert [len(part[0]) for part in (chosen.data, chosen.outsiders, chosen.test)] == [59_700, 300, 10_000]
    assert (float(chosen.data[0].min()), float(chosen.data[0].max())) == (-1.0, 1.0)
    plan = MNIST.recipe(59_700)
    assert training.largest_shift(plan, chosen) == pytest.approx(20)


def test_pictures(rows: list[dict[str, Any]]) -> None:
    for name in ("bdp-mnist", "bdp-cifar10"):
        assert drawn(name, rows).legends
