"""Worker: a Python loop over jitted `blackjax.sgld` steps on the same problem, not private."""

from __future__ import annotations

from collections.abc import Callable

import blackjax  # type: ignore[import-not-found]
import jax
import jax.numpy as jnp
import numpy as np

from sgld_problem import BATCH, COLUMNS, RECORDS, STEP_SIZE, STEPS, records
from stopwatch import peak, serve


def log_prior(w: jax.Array) -> jax.Array:
    """Standard normal, up to a constant."""
    return -0.5 * jnp.sum(w**2)


def log_likelihood(w: jax.Array, record: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Of one record."""
    x, y = record
    logit = x @ w
    return y * logit - jax.nn.softplus(logit)


def ways() -> dict[str, Callable[[], object]]:
    """Name → 2,000 steps of it; every iterate is kept."""
    x, y = records()
    rng = np.random.default_rng(1)
    sgld = blackjax.sgld(blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, RECORDS))
    step = jax.jit(sgld.step)
    here = jnp.asarray(x), jnp.asarray(y)

    @jax.jit
    def drawing(key: jax.Array, w: jax.Array, size: float) -> jax.Array:
        first, second = jax.random.split(key)
        rows = jax.random.randint(first, (BATCH,), 0, RECORDS)
        moved: jax.Array = sgld.step(second, w, jax.tree.map(lambda leaf: leaf[rows], here), size)
        return moved

    def by_numpy() -> object:
        key, w, draws = jax.random.key(0), sgld.init(jnp.zeros(COLUMNS)), []
        for _ in range(STEPS):
            key, now = jax.random.split(key)
            rows = rng.integers(0, RECORDS, BATCH)
            w = step(now, w, (x[rows], y[rows]), STEP_SIZE)
            draws.append(w)
        return np.stack(draws)

    def by_jax() -> object:
        key, w, draws = jax.random.key(0), sgld.init(jnp.zeros(COLUMNS)), []
        for _ in range(STEPS):
            key, now = jax.random.split(key)
            w = drawing(now, w, STEP_SIZE)
            draws.append(w)
        return np.stack(draws)

    return {"numpy": by_numpy, "jax": by_jax}


if __name__ == "__main__":
    serve(ways(), peak())
