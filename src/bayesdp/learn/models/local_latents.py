"""Latent variables of single records, kept local: optimised anew from the record alone, never stored or released (D10).

    log p(x_i | z) >= max_φ F(φ),    F(φ) = E_{u ~ N(a, diag e^{2b})}[log p(x_i, u | z)] + H,    φ = (a, b)

At the best φ the gradient of F in z is the partial one (envelope theorem), so a record's share of a step is a function
of z and that record, clipped like any other: no noise is added to φ, and nothing of it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

STEPS = 30
"""Steps of the local optimisation, which starts from the same public point for every record and in every step."""

PACE = 0.6
"""Share of a natural-gradient step that is taken."""

PAIRS = 8
"""Antithetic pairs of draws for the expectation, the same at every step: F is then a smooth function."""


def marginal_bound(
    log_joint: Callable[[Mapping[str, jax.Array]], jax.Array], shapes: Mapping[str, tuple[int, ...]]
) -> jax.Array:
    """F at the best φ found, for `log_joint({site: u})` of one record.

    The value is a lower bound of log p(x_i | z) up to the Monte Carlo error of the fixed draws; exact where the
    posterior of u is a Gaussian with independent entries.
    """
    origin, unravel = ravel_pytree({name: jnp.zeros(shape) for name, shape in shapes.items()})
    half = jax.random.normal(jax.random.key(0), (PAIRS, origin.size))
    # Draws with exactly unit second moments make F exact for a quadratic log_joint.
    half = half / jnp.sqrt(jnp.mean(half**2, axis=0))
    draws = jnp.concatenate([half, -half])

    def bound(local: tuple[jax.Array, jax.Array]) -> jax.Array:
        a, b = local
        values = jax.vmap(lambda draw: log_joint(unravel(a + jnp.exp(b) * draw)))(draws)
        return jnp.mean(values) + jnp.sum(b) + 0.5 * origin.size * (1 + jnp.log(2 * jnp.pi))

    def climb(_: int, local: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, b = local
        gradient_a, gradient_b = jax.grad(bound)((a, b))
        # The natural gradient, damped and at most one standard deviation long: from far away it would overshoot.
        scale = jnp.exp(b)
        return a + PACE * scale * jnp.clip(scale * gradient_a, -1, 1), b + PACE * jnp.clip(gradient_b / 2, -1, 1)

    best = lax.fori_loop(0, STEPS, climb, (origin, jnp.zeros_like(origin)))
    return bound(lax.stop_gradient(best))
