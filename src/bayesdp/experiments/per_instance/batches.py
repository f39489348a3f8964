"""Batches drawn at a checkpoint, and how far a record moves their sum or mean (update rules E2, sensitivity E3).

    U(B) = Σ_{x in B} clip(g_x) / d(B),    Δ(B) = |U(B + x*) − U(B)|,    d = 1 (sum) or max(|B|, 1) (mean)

Bounds need inner products alone, so all vectors are turned into as many dimensions as there are of them (QR).

Of the mean rule something is known without drawing: |clip(g*) − mean of B| <= |clip(g*)| + C, hence

    Δ(B) <= (|clip(g*)| + C)/(|B| + 1)   (|B| >= 1),    |clip(g*)|   (|B| = 0),    |B| ~ Binomial(N, q)

and an average over sizes is exact: averages over B (H1, H7) are then sound, from the norm of the record alone (I-7b).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.stats import binom

from bayesdp.errors import Array
from bayesdp.experiments.per_instance.training import CLIP_NORM, Params, Problem, Records
from bayesdp.mechanism import ModelLoss, gradients_of

Rule = Literal["mean", "sum"]

_RARE = 1e-6
"""Batches that are larger than all but this share are given room when they are drawn: others share one program."""

_TAIL = 1e-15
"""Chance of larger batches that are counted as one of the largest size kept: a smaller batch moves farther."""


@dataclass(frozen=True)
class Batches:
    """Σ clip(g) of batches (batches, d), their sizes, and clip(g) of the records (records, d), at one checkpoint."""

    sums: Array
    sizes: Array
    records: Array

    @property
    def norms(self) -> Array:
        """|clip(g)| of every record."""
        return np.asarray(np.minimum(np.linalg.norm(self.records, axis=1), CLIP_NORM))

    def updates(self, rule: Rule, joining: Array | None = None) -> Array:
        """U(B) of every batch, (batches, d), or of every batch with a vector put in."""
        sums, sizes = (self.sums, self.sizes) if joining is None else (self.sums + joining, self.sizes + 1)
        return sums if rule == "sum" else sums / np.maximum(sizes, 1)[:, None]

    def moves(self, rule: Rule) -> Array:
        """Δ(B) of every record beside every batch, (records, batches)."""
        if rule == "sum":
            return np.repeat(self.norms[:, None], len(self.sums), axis=1)
        before = self.updates(rule)
        return np.stack([np.linalg.norm(self.updates(rule, one) - before, axis=1) for one in self.records])


def draw(problem: Problem, params: Params, records: Records, *, batch: int, count: int, seed: int) -> Batches:
    """`count` Poisson batches of `batch` records on average, at `params`."""
    rng = np.random.default_rng(seed)
    x, y = problem.data
    sizes = rng.binomial(problem.size, batch / problem.size, count)
    room = max(int(sizes.max()), int(binom.isf(_RARE, problem.size, batch / problem.size)))
    capacity = 16 * (room // 16 + 1)
    total = _clipped_sums(problem.loss)
    sums = []
    for size in sizes:
        rows = np.resize(np.append(rng.choice(problem.size, size, replace=False), 0), capacity)
        sums.append(total(params, (x[rows], y[rows]), np.arange(capacity) < size))
    alone = [
        total(params, (records[0][i : i + 1], records[1][i : i + 1]), np.ones(1, bool)) for i in range(len(records[0]))
    ]
    columns: Any = np.linalg.qr(np.stack([*sums, *alone], axis=1), mode="r")
    turned = columns.T.astype(np.float64)
    return Batches(turned[:count], sizes.astype(np.float64), turned[count:])


def size_law(size: int, rate: float) -> tuple[Array, Array]:
    """(|B|, probability) for the batches of a Poisson sample, the upper tail gathered in the last."""
    last = int(binom.isf(_TAIL, size, rate)) + 1
    counts = np.arange(min(last, size) + 1)
    weights = binom.pmf(counts, size, rate)
    weights[-1] += max(0.0, 1 - float(weights.sum()))
    return counts.astype(float), weights


def largest_moves(norm: float, counts: Array) -> Array:
    """The bound of the module on Δ for the mean rule, for each |B|."""
    return np.where(counts == 0, norm, (norm + CLIP_NORM) / (counts + 1))


@lru_cache(maxsize=4)
def _clipped_sums(loss: ModelLoss) -> Any:
    """Σ clip(g) of a batch as a vector, compiled once for a model."""
    gradients = gradients_of(loss)

    @jax.jit
    def total(params: Params, examples: Any, mask: Any) -> jax.Array:
        return ravel_pytree(gradients.clip_sum(params, examples, jnp.asarray(mask), CLIP_NORM)[0])[0]

    return lambda *given: np.asarray(total(*given))
