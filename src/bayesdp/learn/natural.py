"""The geometry of a Gaussian guide: how long a gradient is in θ, and which direction is steepest between laws.

    |Jᵀ g|²:       Σ_j (Σ_s g_sj)² + F_jj² (Σ_s g_sj η_sj)² + Σ_{k<j} (Σ_s g_sj η_sk)²,    draws s, coordinates j, k
    Fisher⁻¹ ∇:    Δμ = Σ ∇μ,    F ← F + F E,    E = the lower triangle of Fᵀ ∇F with its diagonal halved

J = ∂z/∂θ for z = μ + F η: z_j depends on row j of F alone, and on the diagonal through its logarithm.

For F → F + F E the Fisher metric of N(μ, FFᵀ) is Σ_{i>j} E_ij² + 2 Σ_i E_ii², so E is the gradient divided by it; for
a mean-field guide E_ii is the change of ω_i.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.learn.guide import Guide


def squares_in_theta(
    guide: Guide, theta: jax.Array, draws: jax.Array, slopes: jax.Array, rest: jax.Array | None = None
) -> jax.Array:
    """|Jᵀ g|² of each record's slopes, (records, S, d), at draws (S, d); |Jᵀ g + rest|² with a `rest` in θ.

    The rest is added before anything is squared: where the two nearly cancel, a sum of squares and a product would be
    all rounding, and the clipping that comes of it no bound.
    """
    d = guide.dim
    rest = jnp.zeros_like(theta) if rest is None else rest
    mean = jnp.sum(slopes, axis=1) + rest[:d]
    scale = jnp.sum(slopes * draws, axis=1) * _diagonal(guide, theta) + rest[-d:]
    squares = jnp.sum(mean**2 + scale**2, axis=1)
    if guide.kind == "mean-field":
        return squares
    below = jnp.einsum("nsj,sk->njk", slopes, draws)[:, *np.tril_indices(d, -1)] + rest[d:-d]
    return squares + jnp.sum(below**2, axis=1)


def natural(guide: Guide, theta: jax.Array, gradient: jax.Array) -> jax.Array:
    """Fisher⁻¹ times a gradient in θ."""
    d, scale = guide.dim, _diagonal(guide, theta)
    mean, log_scale = gradient[:d], gradient[-d:]
    if guide.kind == "mean-field":
        return jnp.concatenate([scale**2 * mean, log_scale / 2])
    factor, below = _factor(guide, theta), np.tril_indices(d, -1)
    slope = jnp.diag(log_scale / scale).at[below].set(gradient[d:-d])
    change = jnp.tril(factor.T @ slope)
    step = factor @ (change - jnp.diag(jnp.diag(change)) / 2)
    return jnp.concatenate([factor @ (factor.T @ mean), step[below], jnp.diag(step) / scale])


def _diagonal(guide: Guide, theta: jax.Array) -> jax.Array:
    return jnp.exp(theta[-guide.dim :])


def _factor(guide: Guide, theta: jax.Array) -> jax.Array:
    # z is μ + F·noise: the images of the unit vectors are the columns of F.
    return (guide.draw(theta, jnp.eye(guide.dim)) - theta[: guide.dim]).T
