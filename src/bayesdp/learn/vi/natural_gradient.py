"""The geometry of a Gaussian guide: what a gradient is in θ, and which direction is steepest between laws.

    Jᵀ g:          Σ_s g_sj,    F_jj Σ_s g_sj η_sj,    Σ_s g_sj η_sk for k < j,        draws s, coordinates j, k
    Fisher⁻¹ ∇:    Δμ = Σ ∇μ,    F ← F + F E,    E = the lower triangle of Fᵀ ∇F with its diagonal halved

J = ∂z/∂θ for z = μ + F η: z_j depends on row j of F alone, and on the diagonal through its logarithm.

For F → F + F E the Fisher metric of N(μ, FFᵀ) is Σ_{i>j} E_ij² + 2 Σ_i E_ii², so E is the gradient divided by it; for
a mean-field guide E_ii is the change of ω_i.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.learn.vi.guide import Guide


def in_theta(
    guide: Guide, theta: jax.Array, draws: jax.Array, gradients: jax.Array, rest: jax.Array | None = None
) -> jax.Array:
    """Jᵀ g of each record's gradients, (records, S, d) at draws (S, d) to (records, θ); Jᵀ g + rest with a `rest`.

    Written out for each record, and added up afterwards: draws cancel, and so do gradient and rest. A norm bounds what
    is added only if it is that of the numbers that are added (H20).
    """
    d = guide.dim
    mean = jnp.sum(gradients, axis=1)
    scale = jnp.sum(gradients * draws, axis=1) * _diagonal(guide, theta)
    below = []
    if guide.kind == "full-rank":
        below = [jnp.einsum("nsj,sk->njk", gradients, draws)[:, *np.tril_indices(d, -1)]]
    signals = jnp.concatenate([mean, *below, scale], axis=1)
    return signals if rest is None else signals + rest


def natural(guide: Guide, theta: jax.Array, gradient: jax.Array) -> jax.Array:
    """Fisher⁻¹ times a gradient in θ."""
    d, scale = guide.dim, _diagonal(guide, theta)
    mean, log_scale = gradient[:d], gradient[-d:]
    if guide.kind == "mean-field":
        return jnp.concatenate([scale**2 * mean, log_scale / 2])
    factor, below = _factor(guide, theta), np.tril_indices(d, -1)
    full = jnp.diag(log_scale / scale).at[below].set(gradient[d:-d])
    change = jnp.tril(factor.T @ full)
    step = factor @ (change - jnp.diag(jnp.diag(change)) / 2)
    return jnp.concatenate([factor @ (factor.T @ mean), step[below], jnp.diag(step) / scale])


def _diagonal(guide: Guide, theta: jax.Array) -> jax.Array:
    return jnp.exp(theta[-guide.dim :])


def _factor(guide: Guide, theta: jax.Array) -> jax.Array:
    # z is μ + F·noise: the images of the unit vectors are the columns of F.
    return (guide.draw(theta, jnp.eye(guide.dim)) - theta[: guide.dim]).T
