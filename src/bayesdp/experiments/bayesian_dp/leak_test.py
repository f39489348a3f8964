"""S1's test for a leak of its estimator (C18): are gradients of records that were trained on closer together?

    d_ij = |clip(ḡ without x_i; C) − clip(ḡ without x_j; C)|   for all pairs of a batch, on training and other records

    "paper"  t-test and Levene's test on all distances at once, as if they were independent. They are not: a batch
             of 100 records has 4950 distances, all from the same 100 gradients.
    "sound"  one number for each batch: the mean of its distances, or their standard deviation. Batches have no record
             in common, so their numbers are independent, and a permutation test of "training" against "other" is exact
             if training records look like new ones.

`false_alarms` splits batches of untrained records in two at random, so that there is nothing to find, and counts how
often a test at level 0.05 finds something. `planted` makes some training records fit perfectly, so that there is
something. A large p says that these means and spreads do not differ by more than chance does; it bounds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from bayesdp.errors import Array
from bayesdp.experiments.bayesian_dp import synthetic
from bayesdp.experiments.bayesian_dp.recipe import Data, Params
from bayesdp.mechanism import ModelLoss

LEVEL = 0.05
PERMUTATIONS = 9999
FEWER = 499
"""Permutations of a single test, and of each of many when false alarms are counted: exact in either number."""


def batches(loss: ModelLoss, params: Params, data: Data, *, count: int, size: int) -> list[Array]:
    """The gradients of `count` batches of `size` records, taken in order: one row for each record."""

    def gradients(params: Params, examples: Data) -> jax.Array:
        def own(example: Data) -> jax.Array:
            leaves = jax.tree.leaves(jax.grad(loss)(params, example))
            return jnp.concatenate([leaf.ravel() for leaf in leaves])

        rows: jax.Array = jax.lax.map(own, examples)
        return rows

    # From the host, so that one device computes it; parameters that are on all of them would have all do so.
    compiled, params = jax.jit(gradients), jax.device_get(params)
    starts = range(0, count * size, size)
    parts = (jax.tree.map(lambda leaf, at=at: np.asarray(leaf)[at : at + size], data) for at in starts)
    return [np.asarray(compiled(params, part), np.float64) for part in parts]


def distances(gradients: Array, clip_norm: float | None) -> Array:
    """d_ij of all pairs of a batch."""
    left = (gradients.sum(axis=0) - gradients) / (len(gradients) - 1)
    return synthetic.pair_distances(left if clip_norm is None else synthetic.clipped(left, clip_norm))


def planted(gradients: Array, share: float, rng: np.random.Generator) -> Array:
    """The batch if a `share` of its records were fitted perfectly: gradient zero."""
    return np.where(rng.random(len(gradients))[:, None] < share, 0.0, gradients)


def p_values(
    train: Sequence[Array], others: Sequence[Array], way: str, seed: int = 0, permutations: int = PERMUTATIONS
) -> dict[str, float]:
    """The p-values of "mean" and "spread": t-test and Levene's test ("paper"), or permuted batches ("sound")."""
    if way == "paper":
        one, other = np.concatenate(train), np.concatenate(others)
        return {
            "mean": float(stats.ttest_ind(one, other).pvalue),
            "spread": float(stats.levene(one, other).pvalue),
        }
    return {
        what: _permuted([statistic(one) for one in train], [statistic(one) for one in others], seed, permutations)
        for what, statistic in (("mean", np.mean), ("spread", np.std))
    }


def false_alarms(others: Sequence[Array], way: str, *, splits: int, seed: int) -> dict[str, float]:
    """How often p < 0.05 when both halves are untrained records; a test that keeps its promise: in 5 of 100."""
    rng = np.random.default_rng(seed)
    found = {"mean": 0, "spread": 0}
    for _ in range(splits):
        order = rng.permutation(len(others))
        half = len(others) // 2
        one, other = ([others[i] for i in part] for part in (order[:half], order[half:]))
        for what, p in p_values(one, other, way, seed, FEWER).items():
            found[what] += p < LEVEL
    return {what: count / splits for what, count in found.items()}


def _permuted(train: list[Any], others: list[Any], seed: int, permutations: int) -> float:
    def difference(one: Array, other: Array, axis: int) -> Array:
        return np.asarray(np.mean(one, axis=axis) - np.mean(other, axis=axis))

    result = stats.permutation_test(
        (train, others), difference, n_resamples=permutations, vectorized=True, rng=np.random.default_rng(seed)
    )
    return float(result.pvalue)
