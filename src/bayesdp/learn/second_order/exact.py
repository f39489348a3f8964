"""The posterior without privacy, to compare with: its mode, and the curvature there (Laplace's approximation).

    θ ← θ + |∇²log p|⁻¹ ∇log p,  halved until log p rises,    log p = log prior + Σ_i log p(x_i|θ)

**Not private**: it is computed from the records as they are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array, unmet
from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.records import Data

MOST = 300
"""Parameters for whom a Hessian is computed."""

_STEPS, _HALVINGS = 60, 12
_CLOSE, _LONGEST = 1e-2, 2.0


class Laplace(NamedTuple):
    """N(mean, cov) on the real line."""

    mean: Array
    cov: Array


def laplace(model: Probabilistic, data: Data) -> Laplace:
    """See above. Bad input: a posterior without a mode that is found gets `InputError`."""
    records = jax.tree.map(jnp.asarray, data)

    def log_p(z: jax.Array) -> jax.Array:
        return model.log_prior(z) + jnp.sum(model.log_likelihoods(z, records))

    value, slopes = jax.jit(log_p), jax.jit(lambda z: (jax.grad(log_p)(z), jax.hessian(log_p)(z)))
    at = np.asarray(model.start, np.float64) + 0.01
    height = float(value(jnp.asarray(at, jnp.float32)))
    for _ in range(_STEPS):
        gradient, bend = (np.asarray(part, np.float64) for part in slopes(jnp.asarray(at, jnp.float32)))
        values, vectors = np.linalg.eigh(-(bend + bend.T) / 2)
        # Where log p is not concave, curvature of the opposite sign: uphill all the same, and no farther than is known.
        size = np.maximum(np.abs(values), 1e-6 * np.abs(values).max())
        move = vectors @ (vectors.T @ gradient / size)
        move /= max(1.0, float(np.abs(move).max()) / _LONGEST)
        for _ in range(_HALVINGS):
            found = float(value(jnp.asarray(at + move, jnp.float32)))
            if found >= height - 1e-6 * abs(height):
                break
            move /= 2
        if not math.isfinite(found):
            break
        at, height = at + move, found
        if values.min() > 0 and (np.abs(move) <= _CLOSE * np.sqrt(np.diagonal((vectors / size) @ vectors.T))).all():
            return Laplace(at, (vectors / size) @ vectors.T)
    raise unmet("model", None, "a posterior with one mode, to be found by Newton steps", "none that was found")
