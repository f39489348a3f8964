"""Clip norm, sampling rate and steps from public quantities: N, ε, δ, the model, and the shape of a record (D9).

    C   the median |∇_z log p(x|z)| of made-up standardised records near the start
    T   1000 unless told
    q   the least with which a step's mean gradient is hardly noisier than that of full batches, by the variance of one
        coordinate  v(q) = (z(q) C / (q N))² + C² / (d q N) <= 1.2 v(1)

The first term is the noise for privacy, the second that of sampling, for gradients of length C in d directions. For a
fixed (ε, δ) and T the first falls as q grows until the accountant's z grows like q and nothing is left to gain (S2
section 3.2: the asymptotic regime). Beyond that point a larger batch costs time alone.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.accountant.calibrate import noise_for
from bayesdp.errors import InputError
from bayesdp.guarantee import Adjacency
from bayesdp.learn.probabilistic import Data, Form, Probabilistic

STEPS = 1000
"""Steps: enough for a mean that starts at 0 and steps of the size of `vi.default_optimizer`."""

_RECORDS = 512
_RATES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_SLACK = 1.2
_MOST = 2000
"""Records of a batch that are taken at most: a step should not take long."""

_FEWEST = 20
"""Records of a batch: with fewer the sizes of batches differ too much for averages to say something."""


def clip_norm_for(model: Probabilistic, data: Data, public: Data | None = None) -> float:
    """The median gradient norm near the start, of `public` records or of made-up ones: numbers N(0, 1), codes 0 and 1.

    Bad input: no gradient that is finite and not zero gets `InputError`.
    """
    records = standardised(Form.of(data), _RECORDS) if public is None else jax.tree.map(jnp.asarray, public)
    # Not at the start itself: 0 is where densities written with max(0, ·) have a kink.
    near = model.start + 0.01 * jax.random.normal(jax.random.key(0), (model.dim,))
    slopes = jax.jit(jax.vmap(lambda record: jax.grad(model.log_likelihood)(near, record)))(records)
    norms = np.linalg.norm(np.asarray(slopes, np.float64), axis=1)
    usable = norms[np.isfinite(norms) & (norms > 0)]
    if not len(usable):
        raise InputError(
            "Expected gradients of made-up standardised records to be finite, got none. Give public records, or choose "
            "clip_norm yourself."
        )
    return float(np.median(usable))


def rate_for_steps(steps: int, records: int, dim: int, epsilon: float, delta: float, adjacency: Adjacency) -> float:
    """The least rate on a grid that keeps v(q) <= 1.2 v(1)."""

    def variance(q: float) -> float:
        z = noise_for(epsilon, delta, sampling_rate=q, steps=steps, engine="rdp", adjacency=adjacency)
        return (z / q) ** 2 + records / (dim * q)

    least = variance(1.0)
    enough = (q for q in _RATES if q * records >= _FEWEST and variance(q) <= _SLACK * least)
    return min(next(enough, 1.0), max(_MOST / records, _RATES[0]), 1.0)


def standardised(form: Form, count: int) -> Any:
    """Made-up records whose numbers are N(0, 1), as those of standardised data are."""
    rng = np.random.default_rng(0)

    def part(leaf: Any) -> Any:
        return rng.normal(size=leaf.shape).astype(np.float32) if np.issubdtype(leaf.dtype, np.floating) else leaf

    return jax.tree.map(part, form.made_up(count))
