"""Worker: JAX-Privacy's clipped sum of the same network, for several microbatch sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax_privacy  # type: ignore[import-not-found]

from networks import NETWORKS, SHAPE, batch, cross_entropy, wait
from stopwatch import peak, serve


def ways(name: str) -> dict[str, Callable[[], object]]:
    """The default (`vmap` of the whole batch) takes seconds to minutes here and is left out."""
    network = NETWORKS[name]
    params = network.init(jax.random.key(0), SHAPE)
    x, y = (jnp.asarray(a) for a in batch(name))

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean(jax.vmap(cross_entropy)(network.apply(params, x), y))

    def way(size: int) -> Callable[[], object]:
        clipped = jax.jit(jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2), microbatch_size=size))
        return lambda: wait(clipped(params, x, y))

    return {f"microbatch_size={size}": way(size) for size in (1, 2, 4)}


if __name__ == "__main__":
    serve(ways(sys.argv[1]), peak())
