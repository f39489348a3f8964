"""Linear models under private SGD, many settings at once in one compiled program: for the search of `plans.py`.

    g̃ = (Σ_{x in batch} clip(g_x; C) + N(0, (z_t C)² I)) / (q N),    v ← μ v + g̃,    θ ← θ − η_t v

What is left out against the library: batches have a fixed size, and nobody is accounted for. Settings differ in clip
norm and learning rate; everything else is shared, so that records are read once for all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

Array = npt.NDArray[Any]


class Outcome(NamedTuple):
    """Of every setting: share of records right (or R²) and loss on the validation records, and squared costs.

    `costs` (settings, records): Σ_t (|clip(g_x)|/(C z_t))² / Σ_t z_t⁻², the share of the worst case's squared cost that
    a validation record has.
    """

    score: Array
    loss: Array
    costs: Array


def learn(
    x: Array,
    y: Array,
    x_valid: Array,
    y_valid: Array,
    classes: int,
    *,
    clip: Array,
    rate: Array,
    noise: Array,
    pace: Array,
    sampling_rate: float,
    momentum: float = 0.9,
    adam: bool = False,
    averaged: float = 0.0,
    seeds: int = 1,
    every: int = 10,
    effective: int | None = None,
) -> Outcome:
    """Train `seeds` models for each pair of `clip` and `rate`; `classes` 0 is a regression.

    `noise` (steps,) are the z_t, `pace` (steps,) factors of the learning rate, `averaged` the share of the last
    iterates whose mean is the result. `effective`: the N of the noise, where the records are a part of a larger set.
    """
    count, steps = len(x), len(noise)
    size = count if sampling_rate == 1 else max(1, round(sampling_rate * count))
    outputs = classes or 1
    onehot = np.eye(classes, dtype=np.float32)[y] if classes else np.asarray(y, np.float32)[:, None]
    lanes = np.tile(np.arange(len(clip)), seeds)
    clips, rates = jnp.asarray(clip, jnp.float32)[lanes], jnp.asarray(rate, jnp.float32)[lanes]
    key = jax.random.key(0)
    weights, costs = _run(
        _with_one(x), jnp.asarray(onehot), _with_one(x_valid), _targets(y_valid, classes), clips, rates,
        jnp.asarray(noise, jnp.float32), jnp.asarray(pace, jnp.float32), key,
        jnp.float32(sampling_rate * (effective or count)),
        size=size, steps=steps, momentum=momentum, adam=adam, begin=round(steps * (1 - averaged)), every=every,
        outputs=outputs, classes=classes, whole=sampling_rate == 1,
    )  # fmt: skip
    logits = np.einsum("bd,sdk->sbk", np.asarray(_with_one(x_valid)), np.asarray(weights))
    scores, losses = _measured(logits, y_valid, classes)
    shape = (seeds, len(clip))
    per_record = np.asarray(costs).reshape(*shape, -1).mean(0)
    return Outcome(scores.reshape(shape), losses.reshape(shape), per_record)


def _with_one(x: Array) -> jax.Array:
    return jnp.concatenate([jnp.asarray(x, jnp.float32), jnp.ones((len(x), 1), jnp.float32)], axis=1)


def _targets(y: Array, classes: int) -> jax.Array:
    return jnp.asarray(np.eye(classes, dtype=np.float32)[y] if classes else np.asarray(y, np.float32)[:, None])


def _measured(logits: Array, y: Array, classes: int) -> tuple[Array, Array]:
    if not classes:
        wrong = np.square(logits[..., 0] - y).mean(1)
        return 1 - wrong / np.var(y), wrong / 2
    top = logits.max(-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    return (logits.argmax(-1) == y).mean(1), -log_p[:, np.arange(len(y)), y].mean(1)


@partial(
    jax.jit,
    static_argnames=("size", "steps", "momentum", "adam", "begin", "every", "outputs", "classes", "whole"),
)
def _run(
    x: Any, y: Any, xv: Any, yv: Any, clips: Any, rates: Any, noise: Any, pace: Any, key: Any, divisor: Any,
    *, size: int, steps: int, momentum: float, adam: bool, begin: int, every: int, outputs: int, classes: int,
    whole: bool,
) -> Any:  # fmt: skip
    lanes, dim = len(clips), x.shape[1]
    optimizer = optax.scale_by_adam() if adam else optax.trace(momentum)

    def residuals(weights: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
        flat = jnp.moveaxis(weights, 0, 1).reshape(dim, lanes * outputs)
        logits = (inputs @ flat).reshape(len(inputs), lanes, outputs)
        predicted = jax.nn.softmax(logits) if classes else logits
        wrong = predicted - targets[:, None]
        length = jnp.sqrt(jnp.square(inputs).sum(1))[:, None] * jnp.sqrt(jnp.square(wrong).sum(2) + 1e-20)
        return wrong, jnp.minimum(length, clips) / clips

    def step(carry: Any, now: Any) -> Any:
        weights, state, average, costs = carry
        number, level, factor, own = now
        first, second = jax.random.split(own)
        inputs, targets = (
            (x, y) if whole else (lambda rows: (x[rows], y[rows]))(jax.random.randint(first, (size,), 0, len(x)))
        )
        wrong, clipped = residuals(weights, inputs, targets)
        length = jnp.sqrt(jnp.square(inputs).sum(1))[:, None] * jnp.sqrt(jnp.square(wrong).sum(2) + 1e-20)
        scaled = wrong * (clipped * clips / length)[..., None]
        total = (inputs.T @ scaled.reshape(len(inputs), -1)).reshape(dim, lanes, outputs)
        noisy = jnp.moveaxis(total, 1, 0) + level * clips[:, None, None] * jax.random.normal(
            second, (lanes, dim, outputs)
        )
        update, state = optimizer.update(noisy / divisor, state)
        weights = weights - factor * rates[:, None, None] * update
        average = average + jnp.where(number >= begin, weights, 0)
        costs = jax.lax.cond(
            number % every == 0,
            lambda: costs + jnp.square(residuals(weights, xv, yv)[1] / level).T,
            lambda: costs,
        )
        return (weights, state, average, costs), None

    start = jnp.zeros((lanes, dim, outputs))
    carry = (start, optimizer.init(start), start, jnp.zeros((lanes, len(xv))))
    many = (jnp.arange(steps), noise, pace, jax.random.split(key, steps))
    (weights, _, average, costs), _ = jax.lax.scan(step, carry, many)
    worst = jnp.square(1 / noise[::every]).sum()
    return (average / (steps - begin) if begin < steps else weights), costs / worst
