"""A search for records that move a clipped sum by more than the clip norm: gradient ascent, for every layer and rule.

Of the record and the parameters that it meets, both float32, the true length of what one record adds to the sum is
taken in float64 from the sum itself, part by part, and divided by what its rule allows. Sums are piecewise constant in
their last bits, so that what is climbed is smooth: how much the terms of a gradient are larger than their sum (where
cancellation would show), and how near the norm is to the clip norm (where rounding would). Every so many steps the true
excess is looked at. From several scales, at least `STEPS` steps for each layer and rule.

Exits with an error when a contribution passes the clip norm. `python benchmarks/adversarial_norms.py [STEPS]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from bayesdp.mechanism import (
    Activation,
    Automatic,
    AvgPool,
    Conv2D,
    Dense,
    Flatten,
    MaxPool,
    ModelLoss,
    PerExample,
    Sequential,
    clip_rule,
    random_subset,
)
from bayesdp.mechanism.people import People, PeopleLoss
from bayesdp.mechanism.people_books import gradients_of
from bayesdp.mechanism.per_example import Gradients

STEPS = 10_000
SCALES = (1e-25, 1e-6, 1.0, 255.0, 1e4, 1e8)
CLIP = 0.01
LABELS = (1, 2, 1)
"""Of the rows of a person; a single record has the first."""

LAYERS: dict[str, tuple[Sequential, tuple[int, ...]]] = {
    "dense": (Sequential((Dense(7), Activation("tanh"), Dense(4))), (6,)),
    "convolution, channels first": (
        Sequential((Conv2D(4, 3), Activation("relu"), AvgPool(), Flatten(), Dense(4))),
        (6, 6, 2),
    ),
    "convolution, channels last": (Sequential((Conv2D(32, 3, 2), MaxPool(), Flatten(), Dense(4))), (8, 8, 2)),
    "convolution, few positions": (
        Sequential((Conv2D(64, 4, 4, "VALID"), AvgPool(2), Flatten(), Dense(10))),
        (8, 8, 3),
    ),
}
RULES: dict[str, Callable[[Any], Any]] = {
    "flat": lambda _: CLIP,
    "per layer": lambda params: tuple({"bias": CLIP, "kernel": CLIP} for _ in params),
    "automatic": lambda _: Automatic(CLIP, 1e-6),
}


class Found(NamedTuple):
    """The worst record of a search: what it adds, over what it may add, and what it was reported as adding."""

    excess: float
    under_reported: float


def cross_entropy(logits: jax.Array, label: jax.Array) -> jax.Array:
    """-log softmax of the label."""
    return jax.nn.logsumexp(logits) - jnp.take(logits, label)


def search(layer: str, rule: str, way: str, steps: int, seed: int = 0) -> Found:
    """At least `steps` steps of gradient ascent, shared by records that start at all of the `SCALES`."""
    model, shape = LAYERS[layer]
    loss = ModelLoss(model, cross_entropy)
    params = model.init(jax.random.key(seed), shape)
    clip = RULES[rule](params)
    subset = random_subset(jax.random.key(1), params, 0.3) if way.endswith("subset") else None
    # A person has several rows with labels of their own, so that what they ask for may cancel.
    person = way == "person"
    start, labels = ((len(LABELS), *shape), jnp.asarray(LABELS)) if person else (shape, jnp.asarray(LABELS[0]))
    whole = PeopleLoss(loss) if person else loss
    engine: Gradients = PerExample(loss) if way.startswith("record") else gradients_of(whole)

    def record(x: jax.Array) -> Any:
        return People((x, labels), jnp.ones(len(LABELS), bool)) if person else (x, labels)

    def added(x: jax.Array, gain: jax.Array) -> tuple[Any, Any]:
        scaled = jax.tree.map(lambda leaf: leaf * gain, params)
        one = jax.tree.map(lambda leaf: leaf[None], record(x))
        return engine.clip_sum(scaled, one, jnp.ones(1, bool), clip, subset)

    def goal(x: jax.Array, gain: jax.Array, kind: jax.Array) -> jax.Array:
        scaled = jax.tree.map(lambda leaf: leaf * gain, params)
        gradient = jax.grad(whole)(scaled, record(x))
        size = jnp.sqrt(sum(jnp.sum(jnp.square(leaf / CLIP)) for leaf in jax.tree.leaves(gradient)) + 1e-30)
        terms = jnp.log(jnp.sqrt(jnp.sum(jnp.square(x / jnp.max(jnp.abs(x))))) * jnp.max(jnp.abs(x)) + 1e-30)
        # 0: terms far above their sum; 1: a norm near the clip norm; 2: as long as can be.
        return jnp.stack([terms - jnp.log(size), -jnp.abs(jnp.log(size)), jnp.log(size)])[kind]

    def climb(x: jax.Array, gain: jax.Array, kind: jax.Array, key: jax.Array) -> jax.Array:
        def one(x: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            up = jnp.nan_to_num(jax.grad(goal)(x, gain, kind), posinf=0, neginf=0)
            up = up / (jnp.max(jnp.abs(up)) + 1e-30)
            rate, noise = jax.random.uniform(key), jax.random.normal(jax.random.fold_in(key, 1), x.shape)
            return x + 10 ** (-1 - 5 * rate) * jnp.max(jnp.abs(x)) * (up + 0.003 * noise), None

        return lax.scan(one, x, jax.random.split(key, LOOK))[0]

    # The mapping over records is a loop: a batch of clipped sums would be another program than the one that is used.
    look = jax.jit(lambda xs, gains: lax.map(lambda one: added(*one), (xs, gains)))
    move = jax.jit(jax.vmap(climb))
    xs, gains, kinds = _starts(start, seed)
    allowed = [float(c) for c in jax.tree.leaves(clip)] if rule == "per layer" else None
    worst, under = 0.0, 0.0
    for turn in range(1 + -(-steps // (LOOK * len(xs)))):
        totals, norms = look(xs, gains)
        xs = move(xs, gains, kinds, jax.random.split(jax.random.key(turn), len(xs)))
        lengths = np.stack([_length(leaf) for leaf in jax.tree.leaves(totals)])  # (leaves, records), float64
        total = np.sqrt(np.sum(lengths**2, axis=0))
        excess = total / float(clip_rule(clip).sensitivity)
        if allowed is not None:
            excess = np.maximum(excess, np.max(lengths / np.asarray(allowed)[:, None], axis=0))
        if not np.isfinite(excess).all():
            return Found(float("inf"), float("inf"))
        said = np.asarray(norms.clipped, np.float64)[:, 0]
        under = max(under, float(np.max(np.where(total > 1e-37, total / np.maximum(said, 1e-38), 0))))
        worst = max(worst, float(excess.max()))
    return Found(worst, under)


LOOK = 20
"""Steps between two looks at the true contribution."""


def _starts(shape: tuple[int, ...], seed: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Records at all scales, with large and small weights, for all goals; half of them of patches that cancel."""
    rng = np.random.default_rng(seed)
    records, gains, kinds = [], [], []
    for scale in SCALES:
        for kind in range(3):
            x = rng.standard_normal(shape)
            if len(shape) >= 3 and rng.integers(2):
                side = shape[-3] // 2
                x = np.tile(x[..., :side, :side, :], (2, 2, 1)) + 1e-4 * x
                x[..., :side, :side, :] *= -1
                x[..., side:, side:, :] *= -1
            records.append(scale * x)
            gains.append(rng.choice([1e-3, 1.0, 1.0, 30.0]))
            kinds.append(kind)
    return jnp.asarray(np.stack(records), jnp.float32), jnp.asarray(gains, jnp.float32), jnp.asarray(kinds)


def _length(leaf: jax.Array) -> npt.NDArray[np.float64]:
    values = np.asarray(leaf, np.float64)
    lengths: npt.NDArray[np.float64] = np.sqrt(np.sum(values.reshape(len(values), -1) ** 2, axis=1))
    return lengths


def searches() -> Iterator[tuple[str, str, str]]:
    """Every layer and rule by the books, of a record and of a person; a subset of the weights; record by record."""
    yield from ((layer, rule, "books") for layer in LAYERS for rule in RULES)
    yield from ((layer, rule, "person") for layer in LAYERS for rule in RULES)
    yield from ((layer, "per layer", "books, subset") for layer in LAYERS)
    yield from (("convolution, few positions", rule, "record by record") for rule in RULES)


def main() -> None:
    """All searches, one line each."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    bad = 0
    for layer, rule, way in searches():
        found = search(layer, rule, way, steps)
        fails = found.excess > 1 or found.under_reported > 1
        bad += fails
        print(
            f"{'FAILS' if fails else 'holds'}: {layer}; {rule}; {way}: at most {found.excess:.8f} of the clip norm, "
            f"{found.under_reported:.8f} of what is reported",
            flush=True,
        )
    print(f"{bad} of {len(list(searches()))} searches found a contribution above its bound ({steps:,} steps each).")
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
