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
    Tapped,
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
    for engine in (BookKeeping(loss, 4), PerExample(loss, "vmap"), Tapped(loss, 4)):
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
    assert isinstance(gradients_of(lambda params, example: 0.0), Tapped)


def test_a_bad_block_is_refused():
    loss, params, examples, mask = problem("dense")
    with pytest.raises(InputError, match="block"):
        BookKeeping(loss, 0).clip_sum(params, examples, mask, 1.0)


def size(tree):
    """The length of a tree in float64."""
    return np.sqrt(sum(np.sum(np.square(np.asarray(leaf, np.float64))) for leaf in jax.tree.leaves(tree)))


PATCHES = Sequential((Conv2D(64, 4, 4, "VALID"), AvgPool(2), Flatten(), Dense(10)))


def patches_that_cancel(pixels, count, seed=0):
    """8 x 8 x 3 images whose four 4 x 4 patches are ± one patch, to 1e-4: nearly nothing is left of their gradients."""
    rng = np.random.default_rng(seed)
    sign = np.ones((8, 8, 1))
    sign[:4, :4] = sign[4:, 4:] = -1
    one = np.tile(rng.standard_normal((count, 4, 4, 3)), (1, 2, 2, 1))
    return (pixels * (sign * one + 1e-4 * rng.standard_normal((count, 8, 8, 3)))).astype(np.float32)


def sums_of_one(loss, params, rule):
    """Records (n, …) to the sums of each alone, stacked, and their norms."""

    def one(x, y):
        return BookKeeping(loss).clip_sum(params, (x[None], y[None]), jnp.ones(1, bool), rule)

    return jax.jit(lambda x, y: jax.lax.map(lambda record: one(*record), (x, y)))


@pytest.mark.parametrize("pixels", [1.0, 255.0, 1e3, 1e4, 1e8])
def test_patches_that_cancel_move_the_sum_by_no_more_than_the_clip_norm(pixels):
    loss = ModelLoss(PATCHES, cross_entropy)
    params = PATCHES.init(jax.random.key(1), (8, 8, 3))
    x, y = jnp.asarray(patches_that_cancel(pixels, 40)), jnp.ones(40, int)
    for norm in (0.5, 0.01):  # by the Gram matrices: not a number at 0.5 and pixels 1; 440 C at 0.01 and pixels 1e4
        per_layer = tuple({"bias": norm, "kernel": norm} for _ in params)
        totals, norms = sums_of_one(loss, params, per_layer)(x, y)
        for record in range(40):
            parts = [size(leaf[record]) for leaf in jax.tree.leaves(totals)]
            assert max(parts) <= norm
            assert np.linalg.norm(parts) <= norms.clipped[record]
    totals, norms = sums_of_one(loss, params, 0.01)(x, y)
    for record in range(40):  # 1.2 C at pixels 1e3
        assert size(jax.tree.map(lambda leaf, record=record: leaf[record], totals)) <= 0.01
    assert np.isfinite(norms.raw).all()
    assert (np.asarray(norms.clipped) <= np.float32(0.01)).all()


@pytest.mark.parametrize(("inputs", "outputs"), [(1e-21, 1e18), (1e-25, 1e22), (1e22, 1e-25), (1e30, 1e-30)])
def test_factors_that_underflow_when_squared_are_clipped_all_the_same(inputs, outputs):
    model = Sequential((Dense(3),))
    loss = ModelLoss(model, lambda out, y: outputs * jnp.sum(out * jnp.asarray([1.0, -2.0, 1.0])))
    params = model.init(jax.random.key(0), (5,))
    x = jnp.asarray(inputs * np.linspace(1, 3, 5), jnp.float32)[None]
    exact = np.linalg.norm(np.asarray(x, np.float64)) * outputs * np.sqrt(6)
    parts = ({"bias": 1e30, "kernel": 1e-6},)
    total, norms = BookKeeping(loss).clip_sum(params, (x, jnp.zeros(1)), jnp.ones(1, bool), parts)
    finite = outputs <= 1e18
    # A bias longer than 2^63 counts as not finite, and the record adds nothing.
    assert size(total[0]["kernel"]) <= 1e-6
    assert size(total[0]["kernel"]) == (pytest.approx(1e-6, rel=1e-5) if finite else 0)
    assert norms.raw[0] >= exact * (1 - 1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_norms_are_upper_bounds_at_every_scale(name):
    loss, params, (x, y), _ = problem(name)
    subset = random_subset(jax.random.key(5), params, 0.3)

    @jax.jit
    def alone(scale):
        """Each record's sum without clipping, where nobody else is there: its gradient as it was computed."""
        scaled = ModelLoss(loss.model, lambda out, y: scale * jnp.sum(out * (1 + jnp.arange(4.0))))
        cases = [(BookKeeping(scaled, RECORDS), None), (BookKeeping(scaled, RECORDS), subset)]
        cases += [(PerExample(scaled, "vmap"), None)] if name == "lenet" else []
        return [
            jax.lax.map(
                lambda here, case=case: case[0].clip_sum(params, (x, y), here, None, case[1]), jnp.eye(RECORDS) > 0
            )
            for case in cases
        ]

    for scale in (1e-30, 1e-22, 1e-10, 1.0, 1e10, 1e15):
        for totals, norms in alone(np.float32(scale)):
            leaves = [np.asarray(leaf, np.float64).reshape(RECORDS, -1) for leaf in jax.tree.leaves(totals)]
            exact, said = np.linalg.norm(np.concatenate(leaves, axis=1), axis=1), np.diag(norms.raw)
            assert np.all(exact * (1 - 1e-7) <= said)
            assert np.all(said <= exact * (1 + 1e-5) + 1e-37)
