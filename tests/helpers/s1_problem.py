"""S1's training on scikit-learn's digits: what the tests of its recipe, accounting, leak test and table share."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bayesdp.experiments.bayesian_dp.training import Problem

STEPS = 6
LAMBDAS = (2, 8, 32)


def flat(tree: Any) -> Any:
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


def gradients(problem: Problem, data: Any) -> Any:
    own = jax.vmap(jax.grad(problem.loss), in_axes=(None, 0))(problem.params, data)
    return np.concatenate([np.asarray(leaf, np.float64).reshape(len(leaf), -1) for leaf in jax.tree.leaves(own)], 1)
