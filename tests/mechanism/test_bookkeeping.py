from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdp import InputError
from bayesdp.mechanism import (
    Activation,
    Automatic,
    AvgPool,
    BookKeeping,
    Conv2D,
    Dense,
    Flatten,
    MaxPool,
    ModelLoss,
    PerExample,
    Sequential,
    clip_rule,
    gradients_of,
    random_subset,
)

RECORDS = 11
MODELS = {
    "dense": (Sequential((Dense(7), Activation("tanh"), Dense(4))), (6,)),
    "lenet": (
        Sequential(
            (
                *(Conv2D(3, 3), Activation("relu"), AvgPool(), Conv2D(5, 3, padding="VALID"), Activation("selu")),
                *(Flatten(), Dense(8), Activation("gelu"), Dense(4)),
            )
        ),
        (10, 8, 1),
    ),
    "wide": (  # XLA's own convolutions
        Sequential((Conv2D(32, 3, stride=2), Activation("relu"), MaxPool(), Conv2D(33, 2), Flatten(), Dense(4))),
        (9, 9, 2),
    ),
    "few positions": (  # norms from the Gram matrices
        Sequential(
            (Activation("tanh"), Conv2D(16, 3), Activation("elu"), Conv2D(24, 3, stride=2), Flatten(), Dense(4))
        ),
        (3, 3, 8),
    ),
}
RULES = [0.5, None, "per layer", Automatic(0.7, 0.05)]


def cross_entropy(logits, y):
    return jax.nn.logsumexp(logits) - logits[y]


@cache
def problem(name):
    model, shape = MODELS[name]
    params = model.init(jax.random.key(0), shape)
    params = jax.tree.map(lambda leaf: np.asarray(leaf) + np.float32(0.05), params)
    rng, scale = np.random.default_rng(1), np.linspace(0.3, 3, RECORDS)
    x = rng.normal(size=(RECORDS, *shape)) * scale.reshape(-1, *[1] * len(shape))
    mask = np.arange(RECORDS) % 5 != 2
    return (
        ModelLoss(model, cross_entropy),
        params,
        (jnp.asarray(x, jnp.float32), jnp.arange(RECORDS) % 4),
        jnp.asarray(mask),
    )


def norms_for(rule, params):
    return tuple(0.1 * (i + 1) for i in range(len(params))) if rule == "per layer" else rule


def close(ours, wanted, tolerance=1e-5):
    """To 1e-5 of the whole gradient, and of the largest norm."""
    ours, wanted = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (ours, wanted))
    assert np.linalg.norm(ours - wanted) <= tolerance * np.linalg.norm(wanted)


def clipped_by_hand(gradients, mask, rule, subset):
    """Sums and norms in float64 from per-record gradients, for the rules below."""
    leaves, structure = jax.tree.flatten(gradients)
    chosen = [1.0] * len(leaves) if subset is None else [np.asarray(leaf) for leaf in jax.tree.leaves(subset)]
    leaves = [np.asarray(leaf, np.float64) * c for leaf, c in zip(leaves, chosen, strict=True)]
    squares = np.array([np.sum(leaf**2, axis=tuple(range(1, leaf.ndim))) for leaf in leaves])
    size = np.sqrt(squares.sum(0))
    if isinstance(rule, tuple):  # two leaves, bias and kernel, in each layer
        layers = np.sqrt(squares[0::2] + squares[1::2])
        factors = np.repeat(1 / np.maximum(1, layers / np.array(rule)[:, None]), 2, axis=0)
    elif isinstance(rule, Automatic):
        factors = np.tile(rule.norm / (size + rule.gamma), (len(leaves), 1))
    else:
        factors = np.tile(1 / np.maximum(1, size / (rule or np.inf)), (len(leaves), 1))
    sums = [np.tensordot(f * mask, leaf, axes=1) for f, leaf in zip(factors, leaves, strict=True)]
    return jax.tree.unflatten(structure, sums), size * mask, np.sqrt((factors**2 * squares).sum(0)) * mask


@pytest.mark.parametrize("name", MODELS)
def test_the_books_give_the_numbers_of_record_by_record(name):
    loss, params, examples, mask = problem(name)
    subset = random_subset(jax.random.key(5), params, 0.3)
    cases = [(0.5, None), (norms_for("per layer", params), subset)]
    if name == "lenet":
        cases += [(None, None), (Automatic(0.7, 0.05), None)]
    books = BookKeeping(loss, block=4)  # 11 records: the last block is padded
    gradients = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(params, examples)
    for clip_norm, chosen in cases:
        total, norms = jax.jit(books.clip_sum)(params, examples, mask, clip_norm, chosen)
        wanted, raw, clipped = clipped_by_hand(gradients, np.asarray(mask), clip_norm, chosen)
        close(total, wanted)
        close(norms.raw, raw)
        close(norms.clipped, clipped)
        if chosen is None:
            close(jax.jit(books.norms)(params, examples, mask, clip_norm), norms)


@pytest.mark.parametrize("block", [11, None])
def test_the_block_size_does_not_matter(block):
    loss, params, examples, mask = problem("lenet")
    wanted = jax.jit(PerExample(loss, "vmap").clip_sum)(params, examples, mask, 0.5)
    close(jax.jit(BookKeeping(loss, block).clip_sum)(params, examples, mask, 0.5), wanted)


def test_kernel_and_bias_may_have_norms_of_their_own():
    loss, params, examples, mask = problem("lenet")
    clip_norm = tuple({"bias": 0.05 * (i + 1), "kernel": 0.2} for i in range(len(params)))
    wanted = jax.jit(PerExample(loss, "vmap").clip_sum)(params, examples, mask, clip_norm)
    close(jax.jit(BookKeeping(loss, 4).clip_sum)(params, examples, mask, clip_norm), wanted)


@pytest.mark.parametrize("name", ["lenet"])
def test_nobody_gives_nothing(name):
    loss, params, examples, mask = problem(name)
    total, norms = jax.jit(BookKeeping(loss, 4).clip_sum)(params, examples, jnp.zeros_like(mask), 0.5)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves((total, norms)))


@pytest.mark.parametrize("name", ["lenet", "few positions"])
def test_a_record_that_is_not_finite_adds_nothing(name):
    loss, params, (x, y), mask = problem(name)
    loss = ModelLoss(Sequential(tuple(_without_tanh(loss.model.layers))), loss.example_loss)
    rules = [norms_for(rule, params) for rule in RULES[1:3]]

    @jax.jit
    def sums(x, mask):
        return [BookKeeping(loss, 4).clip_sum(params, (x, y), mask, rule) for rule in rules]

    without = sums(x, mask.at[4].set(False))
    for bad in (np.nan, np.inf, 1e30):
        for rule, (total, norms), (wanted, _) in zip(rules, sums(x.at[4].set(bad), mask), without, strict=True):
            close(total, wanted)
            assert float(norms.clipped[4]) == pytest.approx(clip_rule(rule).sensitivity)


def _without_tanh(layers):
    """A tanh makes a huge input harmless, which is not what is tested."""
    return [Activation("relu") if layer == Activation("tanh") else layer for layer in layers]


def test_the_fast_way_is_chosen_for_models_that_show_their_layers():
    loss, *_ = problem("dense")
    assert isinstance(gradients_of(loss), BookKeeping)
    assert isinstance(gradients_of(lambda params, example: 0.0), PerExample)


def test_a_bad_block_is_refused():
    loss, params, examples, mask = problem("dense")
    with pytest.raises(InputError, match="block"):
        BookKeeping(loss, 0).clip_sum(params, examples, mask, 1.0)
