"""The two networks of the clipping benchmark and a batch for each, for every environment that has JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.mechanism import Activation, AvgPool, Conv2D, Dense, Flatten, MaxPool, Sequential

RELU = Activation("relu")
NETWORKS = {
    "lenet5": Sequential(  # 61,706 weights
        (
            *(Conv2D(6, 5), RELU, AvgPool(), Conv2D(16, 5, padding="VALID"), RELU, AvgPool(), Flatten()),
            *(Dense(120), RELU, Dense(84), RELU, Dense(10)),
        )
    ),
    "wide": Sequential(  # 3,274,634 weights
        (Conv2D(32, 5), RELU, MaxPool(), Conv2D(64, 5), RELU, MaxPool(), Flatten(), Dense(1024), RELU, Dense(10))
    ),
}
BATCH = {"lenet5": 512, "wide": 128}
SHAPE = (28, 28, 1)


def batch(name: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Images of noise and labels: speed does not depend on what they show."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH[name], *SHAPE)).astype(np.float32)
    return x, rng.integers(0, 10, BATCH[name], dtype=np.int32)


def cross_entropy(logits: jax.Array, label: jax.Array) -> jax.Array:
    """-log softmax of the label."""
    return jax.nn.logsumexp(logits) - jnp.take(logits, label)


def wait(tree: Any) -> None:
    """Until everything is computed."""
    jax.block_until_ready(tree)  # type: ignore[no-untyped-call]
