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


def layer_norms(params):
    return tuple(0.1 * (i + 1) for i in range(len(params)))


def leaf_norms(params):
    return tuple({"bias": 0.05 * (i + 1), "kernel": 0.2} for i in range(len(params)))


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
        own = np.array(jax.tree.leaves(rule))[:, None]
        sizes = np.sqrt(squares if len(own) == len(leaves) else squares[0::2] + squares[1::2])
        factors = np.repeat(1 / np.maximum(1, sizes / own), len(leaves) // len(own), axis=0)
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
    cases = [(0.5, None), (layer_norms(params), subset)]
    if name == "lenet":
        cases += [(None, None), (Automatic(0.7, 0.05), None), (leaf_norms(params), None)]

    @jax.jit  # one program: what the cases share is compiled once
    def everything(params, examples):
        books = BookKeeping(loss, RECORDS)
        sums = [books.clip_sum(params, examples, mask, *case) for case in cases]
        return jax.vmap(jax.grad(loss), (None, 0))(params, examples), sums, books.norms(params, examples, mask, 0.5)

    gradients, sums, alone = everything(params, examples)
    for case, (total, norms) in zip(cases, sums, strict=True):
        wanted, raw, clipped = clipped_by_hand(gradients, np.asarray(mask), *case)
        close(total, wanted)
        close(norms.raw, raw)
        close(norms.clipped, clipped)
    close(alone, sums[0][1])


@pytest.mark.parametrize("block", [4, None])  # 11 records: the last block of 4 is padded
def test_the_block_size_does_not_matter_and_nobody_gives_nothing(block):
    loss, params, examples, mask = problem("lenet")
    clip_sum = jax.jit(lambda mask: BookKeeping(loss, block).clip_sum(params, examples, mask, 0.5))
    gradients = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(params, examples)
    total, norms = clip_sum(mask)
    wanted, raw, clipped = clipped_by_hand(gradients, np.asarray(mask), 0.5, None)
    for ours, theirs in ((total, wanted), (norms.raw, raw), (norms.clipped, clipped)):
        close(ours, theirs)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(clip_sum(jnp.zeros_like(mask))))


def test_matrix_products_keep_all_their_digits_on_every_platform():
    loss, params, examples, mask = problem("lenet")
    for engine in (BookKeeping(loss, 4), PerExample(loss, "vmap")):
        for work in (engine.clip_sum, engine.norms):
            program = str(jax.make_jaxpr(lambda p, work=work: work(p, examples, mask, 0.5))(params))
            products = program.count("dot_general[") + program.count("conv_general_dilated[")
            assert products > 3
            assert program.count("precision=(Precision.HIGHEST, Precision.HIGHEST)") == products


@pytest.mark.parametrize("name", ["lenet", "few positions"])
def test_a_record_that_is_not_finite_adds_nothing(name):
    loss, params, (x, y), mask = problem(name)
    loss = ModelLoss(Sequential(tuple(_without_tanh(loss.model.layers))), loss.example_loss)
    rules = [None, layer_norms(params)]

    @jax.jit
    def sums(x, mask):
        return [BookKeeping(loss, RECORDS).clip_sum(params, (x, y), mask, rule) for rule in rules]

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
