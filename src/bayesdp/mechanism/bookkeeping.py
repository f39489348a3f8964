"""Book-keeping: clipped sums of a layered model from one backward pass, without per-record gradients of dense layers.

With a_x the input of a dense layer and g_x = ∂ loss / ∂ output, a record's gradient is the outer product a_x g_xᵀ:

    |∂W| = |a_x| |g_x|,   |∂b| = |g_x|,   Σ_x f_x ∂W = Σ_x a_x (f_x g_x)ᵀ   (one matrix product).

So a clipped sum costs what an ordinary gradient costs (Bu et al. 2022, "Differentially private optimization on large
model at small cost"). For a convolution a and g have a column for each position (patches), and ∂W = a gᵀ is computed
for each record. Where positions are few, |∂W|² = Σ_pq (aᵀ a)_pq (gᵀ g)_pq would cost less, but its terms cancel, and so
do those of the sum: in float32 neither is known to better than rounding errors of |a|² |g|², which for some records are
hundreds of clip norms (H20). The norm of what was computed and is added bounds it whatever was lost before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.errors import whole
from bayesdp.mechanism import lattice
from bayesdp.mechanism.blocks import fold_blocks, full_precision
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.layers import Activation, AvgPool, Conv2D, Dense, MaxPool, Sequential, Weights
from bayesdp.mechanism.lengths import UNIT, balanced, length
from bayesdp.mechanism.patches import channels_first, convolve, first, last, patches, pool, pull_back
from bayesdp.mechanism.per_example import Gradients, adding, empty, norms_by_block
from bayesdp.mechanism.subset import restrict

Params = tuple[Weights, ...]
Examples = Any


@dataclass(frozen=True)
class ModelLoss:
    """loss(params, (x, y)) = example_loss(model(x), y): a loss of one record that shows its layers.

    Args:
        model: layers of `bayesdp.mechanism.layers`.
        example_loss: of one record's output and label, such as `cross_entropy` of `bayesdp.learn.models.networks`.

    Examples:
        >>> from bayesdp.learn.models.networks import cross_entropy
        >>> from bayesdp.mechanism.layers import Activation, Dense, Sequential
        >>> loss = bd.ModelLoss(Sequential((Dense(8), Activation("tanh"), Dense(2))), cross_entropy)
    """

    model: Sequential
    example_loss: Callable[[jax.Array, Any], jax.Array]

    def __call__(self, params: Params, example: tuple[jax.Array, Any]) -> jax.Array:
        """The loss of one record."""
        x, y = example
        return self.example_loss(self.model.apply(params, x[None])[0], y)


class Entry(NamedTuple):
    """What the books hold of one layer with weights: its inputs (patches for a convolution) and output gradients.

    Those of a convolution are (records, channels, positions), or with many channels (records, positions, channels).
    """

    layer: Dense | Conv2D
    inputs: jax.Array
    outputs: jax.Array


@dataclass(frozen=True)
class BookKeeping(Gradients):
    """Per-record clipping of a `ModelLoss`, `block` records at a time (None: by platform)."""

    loss: ModelLoss
    block: int | None = None

    @full_precision
    def clip_sum(
        self,
        params: Params,
        examples: Examples,
        mask: jax.Array,
        clip_norm: Any,
        subset: Params | None = None,
        per_unit: jax.Array | None = None,
    ) -> tuple[Params, Norms]:
        """As `PerExample.clip_sum`, to float32 rounding, and with the same guarantee (H20).

        On a lattice a dense layer's kernels are cut off in their factors, others themselves (H26).
        """
        rule, records = clip_rule(clip_norm), mask.shape[0]
        add = adding(per_unit, records)

        def one(sums: Params, block: Examples, here: jax.Array) -> tuple[Params, Any]:
            books, sizes, per_record = self._examine(params, block, subset)
            factors, norms = apply_rule(rule, sizes, here)
            rows, new = [], []
            for entry, total, factor, gradients in zip(books, sums, factors, per_record, strict=True):
                if gradients is None:
                    # Kept for one matrix product at the end: adding block by block would move all weights each time.
                    rows.append(_dense_rows(entry, factor, per_unit, records))
                    new.append(total)
                else:
                    shaped = {name: leaf.reshape(-1, *total[name].shape) for name, leaf in gradients.items()}
                    new.append(jax.tree.map(add, total, shaped, factor))
            return tuple(new), (norms, rows)

        zero = empty(tuple(params), per_unit)
        sums, (norms, rows) = fold_blocks(one, zero, examples, mask, self._block(mask))
        kept = iter(rows)
        dense = [layer for layer in self.loss.model.layers if isinstance(layer, Dense | Conv2D)]
        done = tuple(
            _dense_sum(*next(kept)) if isinstance(layer, Dense) else total
            for layer, total in zip(dense, sums, strict=True)
        )
        return restrict(done, subset), norms

    @full_precision
    def norms(
        self, params: Params, examples: Examples, mask: jax.Array, clip_norm: Any, subset: Params | None = None
    ) -> Norms:
        """`Norms` of shape (records,), 0 where the mask is false; what only the sum needs is not computed."""

        def sizes(block: Examples) -> Params:
            return self._examine(params, block, subset)[1]

        return norms_by_block(sizes, examples, mask, clip_norm, self._block(mask))

    def _block(self, mask: jax.Array) -> int:
        if self.block is not None:
            return whole("block", self.block, least=1)
        return 16 if jax.default_backend() == "cpu" else mask.shape[0]

    def _examine(
        self, params: Params, block: Examples, subset: Params | None
    ) -> tuple[list[Entry], tuple[Any, ...], list[Weights | None]]:
        books = books_of(self.loss, params, block)
        sizes: list[Weights] = []
        per_record: list[Weights | None] = []
        for i, entry in enumerate(books):
            chosen = None if subset is None else subset[i]
            if isinstance(entry.layer, Dense):
                sizes.append(_dense_sizes(entry, chosen))
                per_record.append(None)
            else:
                gradients = conv_gradients(entry, chosen)
                sizes.append({name: length(leaf) for name, leaf in gradients.items()})
                per_record.append(gradients)
        return books, tuple(sizes), per_record


def books_of(loss: ModelLoss, params: Params, examples: Examples) -> list[Entry]:
    """Forwards keeping the inputs of layers with weights, then backwards once to their outputs."""
    x, targets = examples
    trace: list[tuple[Dense | Conv2D, Weights, jax.Array] | Callable[[jax.Array], tuple[jax.Array]]] = []
    in_front = False  # where the channels are

    def act(function: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
        x, back = jax.vjp(function, x)
        trace.append(back)
        return x

    for layer, weights in loss.model.paired(params):
        if in_front and isinstance(layer, AvgPool | MaxPool):
            x = act(partial(pool, layer), x)
            continue
        wanted = channels_first(layer) if isinstance(layer, Conv2D) else in_front and isinstance(layer, Activation)
        if wanted != in_front:
            x, in_front = act(first if wanted else last, x), wanted
        if isinstance(layer, Dense | Conv2D):
            assert weights is not None
            trace.append((layer, weights, x))
            x = layer.apply(weights, x) if isinstance(layer, Dense) else convolve(layer, weights, x)
        else:
            x = act(partial(layer.apply, None), x)
    g = jax.vmap(jax.grad(loss.example_loss))(x, targets)
    books: list[Entry] = []
    for item in reversed(trace):
        if not isinstance(item, tuple):
            (g,) = item(g)
            continue
        layer, weights, inputs = item
        # Below the first layer with weights nobody asks for g any more, and the compiler drops it.
        if isinstance(layer, Dense):
            books.append(Entry(layer, inputs, g))
            # The barrier keeps XLA's CPU compiler from fusing the product with what follows, several times slower.
            g = lax.optimization_barrier(g @ weights["kernel"].T)
        elif channels_first(layer):
            books.append(Entry(layer, patches(layer, inputs), g.reshape(*g.shape[:2], -1)))
            g = pull_back(layer, weights, g, inputs)
        else:
            books.append(Entry(layer, patches(layer, first(inputs)), g.reshape(g.shape[0], -1, g.shape[-1])))
            g = pull_back(layer, weights, g, inputs)
    return books[::-1]


def _dense_sizes(entry: Entry, subset: Weights | None) -> Weights:
    """|a| |g| and |g|; with a subset M of the weights sqrt(a² M g²), a matrix product because M is 0 or 1."""
    if subset is None:
        outputs = length(entry.outputs)
        return {"bias": outputs, "kernel": length(entry.inputs) * outputs}
    (a, a_scale), (g, g_scale) = balanced(entry.inputs), balanced(entry.outputs)
    squares = jnp.sum((jnp.square(a) @ subset["kernel"]) * jnp.square(g), axis=1)
    # The subset may leave out the largest entries, and squares of others be below 2^-126: a product of such a one and
    # one of at most 16 was lost, for each weight and each factor. All roundings of a product's sum count: its order is
    # not known.
    lost, terms = 2**5 * 2.0**-126 * a.shape[1] * g.shape[1], a.shape[1] + g.shape[1] + 4
    kernel = a_scale * jnp.sqrt(squares * (1 + terms * UNIT) + lost) * g_scale * (1 + 4 * UNIT)
    return {"bias": length(entry.outputs * subset["bias"]), "kernel": kernel}


def _dense_rows(
    entry: Entry, factors: Weights, per_unit: jax.Array | None, records: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """a_x / s_x, f_x s_x g_x for the kernel and f_x g_x for the bias, whose factor may be another.

    s_x is a power of two near the largest entry of a_x: where one of a_x and g_x is huge and the other tiny, f_x g_x
    would lose its digits to underflow. On a lattice: whole numbers in the place of the first two, and f_x g_x in steps.
    """
    a, scale = balanced(entry.inputs)
    g, factor = entry.outputs, factors["kernel"]
    if per_unit is not None:
        a, g = _present(a, factor), _present(g, factor) * _rows(scale, g)
        whole_ = lattice.factors_of(a, g, (length(a), length(g)), factor * per_unit, records)
        return *whole_, lattice.steps(_present(entry.outputs, factors["bias"]), factors["bias"], per_unit, records)
    outputs = _present(g, factor) * _rows(scale, g) * _rows(factor, g)
    return _present(a, factor), outputs, _present(g, factors["bias"]) * _rows(factors["bias"], g)


def _dense_sum(inputs: jax.Array, kernel_outputs: jax.Array, bias_outputs: jax.Array) -> Weights:
    if bias_outputs.dtype == jnp.int32:
        kernel = lattice.products(lattice.Factors(inputs, kernel_outputs))
        return {"bias": lattice.total(bias_outputs), "kernel": kernel}
    return {"bias": bias_outputs.sum(0), "kernel": inputs.T @ kernel_outputs}


def conv_gradients(entry: Entry, subset: Weights | None) -> Weights:
    """The records' own gradients, M ∘ a gᵀ and M ∘ Σ_p g; kernels as (records, inputs, channels)."""
    a, g, p = entry.inputs, entry.outputs, _positions(entry)
    bias, kernel = g.sum(p), lax.dot_general(a, g, (((2,), (p,)), ((0,), (0,))))
    if subset is not None:
        bias, kernel = bias * subset["bias"], kernel * subset["kernel"].reshape(kernel.shape[1:])
    return {"bias": bias, "kernel": kernel}


def _positions(entry: Entry) -> int:
    """Which axis of a convolution's output gradients is that of the positions."""
    return 2 if isinstance(entry.layer, Conv2D) and channels_first(entry.layer) else 1


def _present(values: jax.Array, factors: jax.Array) -> jax.Array:
    # A factor of 0 does not remove what is infinite: 0 · inf is not a number.
    return jnp.where(_rows(factors, values) > 0, values, 0)


def _rows(factors: jax.Array, like: jax.Array) -> jax.Array:
    return jnp.expand_dims(factors, range(1, like.ndim))
