"""Worker: bayesdp's ways to a clipped gradient sum (argument "ours"), or the same network not private ("plain")."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from bayesdp.mechanism import use_host_cores
from stopwatch import STEPS, peak, serve

if sys.argv[1] == "ours":
    use_host_cores()

import jax
import jax.numpy as jnp
import optax
from jax import lax

from bayesdp.mechanism import BookKeeping, Gradients, ModelLoss, PerExample, PrivateStep, record_mesh, spread
from bayesdp.mechanism.devices import DEALT, SAME, add_up
from networks import BATCH, NETWORKS, SHAPE, batch, cross_entropy, wait


def ours(name: str) -> dict[str, Callable[[], object]]:
    """One clipped sum over a given batch; norms of as many witnesses; whole steps of training, `STEPS` at a time."""
    loss = ModelLoss(NETWORKS[name], cross_entropy)
    params = NETWORKS[name].init(jax.random.key(0), SHAPE)
    mesh = record_mesh()
    records = spread(batch(name), mesh)
    population = spread(jax.tree.map(lambda a: jnp.concatenate([a] * 8), batch(name)), mesh)
    key = jax.random.key(1)

    def clipped_sum(gradients: Gradients) -> Callable[[], object]:
        def one_device(params: Any, data: Any) -> Any:
            own = jax.tree.map(lambda leaf: leaf[0], data)
            return add_up(gradients.clip_sum(params, own, jnp.ones(records.capacity, bool), 1.0)[0])

        spread_out = jax.shard_map(one_device, mesh=mesh, in_specs=(SAME, DEALT), out_specs=SAME, check_vma=False)
        compiled = jax.jit(spread_out)
        return lambda: wait(compiled(params, records.data))

    step, optimizer = PrivateStep(BookKeeping(loss), 1 / 8, BATCH[name], mesh=mesh), optax.sgd(0.1)

    def train(carry: Any, number: jax.Array) -> Any:
        weights, state = carry
        gradient, _ = step(key, number, weights, population, clip_norm=1.0, noise_std=1.0)
        updates, state = optimizer.update(gradient, state, weights)
        return (optax.apply_updates(weights, updates), state), None

    # The same steps every time, so that the best time is not that of the smallest batch.
    steps = jax.jit(lambda weights: lax.scan(train, (weights, optimizer.init(weights)), jnp.arange(STEPS))[0])
    norms = jax.jit(lambda p: step.witness_norms(p, records, 1.0))
    return {
        "books": clipped_sum(BookKeeping(loss)),
        "scan": clipped_sum(PerExample(loss, "scan")),
        "steps": lambda: wait(steps(params)),
        "norms": lambda: wait(norms(params)),
    }


def plain(name: str) -> dict[str, Callable[[], object]]:
    """The gradient of the batch as everybody writes it."""
    network = NETWORKS[name]
    params = network.init(jax.random.key(0), SHAPE)
    x, y = (jnp.asarray(a) for a in batch(name))

    def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(jax.vmap(cross_entropy)(network.apply(params, x), y))

    gradient = jax.jit(jax.grad(loss))
    return {"plain": lambda: wait(gradient(params, x, y))}


if __name__ == "__main__":
    wait(jnp.zeros(1))
    idle = peak()
    serve({"ours": ours, "plain": plain}[sys.argv[1]](sys.argv[2]), idle)
