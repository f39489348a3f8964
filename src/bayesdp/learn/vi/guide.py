"""Gaussian guides on the real line: q(z) = N(μ, FFᵀ), their numbers in one flat vector θ (D1).

    mean-field   θ = (μ, ω),                                 F = diag(e^ω)
    full-rank    θ = (μ, F below its diagonal by rows, ω),   F lower triangular with diagonal e^ω

z = μ + F·noise; entropy = Σ ω + constant (D2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.errors import Array, one_of

Kind = Literal["mean-field", "full-rank"]
KINDS: tuple[Kind, ...] = ("mean-field", "full-rank")


@dataclass(frozen=True)
class Guide:
    """The family: pure functions of θ. `dim` is the length of z. Bad input: another kind."""

    kind: Kind
    dim: int

    def __post_init__(self) -> None:
        one_of("guide", self.kind, KINDS)

    @property
    def below(self) -> int:
        """How many entries of F lie below its diagonal."""
        return self.dim * (self.dim - 1) // 2 if self.kind == "full-rank" else 0

    def start(self, mean: jax.Array, scale: float) -> jax.Array:
        """θ of N(mean, scale² I)."""
        return jnp.concatenate([jnp.asarray(mean, float), jnp.zeros(self.below), jnp.full(self.dim, jnp.log(scale))])

    def draw(self, theta: jax.Array, noise: jax.Array) -> jax.Array:
        """μ + F·noise for noise (…, dim)."""
        z = theta[: self.dim] + jnp.exp(theta[-self.dim :]) * noise
        if not self.below:
            return z
        strict = jnp.zeros((self.dim, self.dim)).at[np.tril_indices(self.dim, -1)].set(theta[self.dim : -self.dim])
        return z + noise @ strict.T

    def entropy(self, theta: jax.Array) -> jax.Array:
        """Σ ω: the entropy without its constant."""
        return jnp.sum(theta[-self.dim :])

    def moments(self, theta: Array) -> tuple[Array, Array]:
        """(μ, spread) of θ (…, parameters): the variances (…, dim) if mean-field, else covariances (…, dim, dim)."""
        values = np.asarray(theta, np.float64)
        with np.errstate(over="ignore"):
            scales = np.exp(values[..., -self.dim :])
        if not self.below:
            return values[..., : self.dim], scales**2
        factor = np.zeros((*values.shape[:-1], self.dim, self.dim))
        factor[..., np.arange(self.dim), np.arange(self.dim)] = scales
        rows, columns = np.tril_indices(self.dim, -1)
        factor[..., rows, columns] = values[..., self.dim : -self.dim]
        covariance = factor @ np.swapaxes(factor, -1, -2)
        return values[..., : self.dim], (covariance + np.swapaxes(covariance, -1, -2)) / 2
