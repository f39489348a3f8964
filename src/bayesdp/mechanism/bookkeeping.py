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
from jax import lax

from bayesdp.errors import whole
from bayesdp.mechanism import lattice
from bayesdp.mechanism.blocks import fold_blocks, full_precision
from bayesdp.mechanism.clipping import Norms, apply_rule, clip_rule
from bayesdp.mechanism.layers import Activation, AvgPool, Conv2D, Dense, MaxPool, Sequential, Weights
from bayesdp.mechanism.lengths import length
from bayesdp.mechanism.patches import Window, convolve, few, first, last, patches, pool, pull_back
from bayesdp.mechanism.per_example import Gradients, adding, empty, norms_by_block
from bayesdp.mechanism.subset import restrict
from bayesdp.mechanism.tapping import outer

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
            _dense_sum(next(kept), per_unit) if isinstance(layer, Dense) else total
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

    def act(function: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
        x, back = jax.vjp(function, x)
        trace.append(back)
        return x

    x = _through(loss.model, params, x, act, lambda layer, weights, x: trace.append((layer, weights, x)))
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
            continue
        window = Window.of(layer, inputs.shape[2:] if few(layer.channels) else inputs.shape[1:3])
        if few(layer.channels):
            books.append(Entry(layer, patches(window, inputs), g.reshape(*g.shape[:2], -1)))
        else:
            books.append(Entry(layer, patches(window, first(inputs)), g.reshape(g.shape[0], -1, g.shape[-1])))
        g = pull_back(window, weights["kernel"], g, inputs)
    return books[::-1]


def outputs(model: Sequential, params: Params, x: jax.Array, at_once: int = 50) -> jax.Array:
    """`model.apply`, the way that a CPU is quick at: `at_once` records at a time, which divide those of `x`."""
    parts = x.reshape(-1, at_once, *x.shape[1:])
    y: jax.Array = lax.map(lambda part: _through(model, params, part, lambda f, x: f(x), lambda *_: None), parts)
    return y.reshape(-1, *y.shape[2:])


def _through(
    model: Sequential,
    params: Params,
    x: jax.Array,
    act: Callable[[Callable[[jax.Array], jax.Array], jax.Array], jax.Array],
    meet: Callable[[Dense | Conv2D, Weights, jax.Array], None],
) -> jax.Array:
    """Forwards: `act` does what has no weights, `meet` is told what comes to a layer that has some."""
    in_front = False  # where the channels are
    for layer, weights in model.paired(params):
        if in_front and isinstance(layer, AvgPool | MaxPool):
            x = act(partial(pool, layer), x)
            continue
        wanted = few(layer.channels) if isinstance(layer, Conv2D) else in_front and isinstance(layer, Activation)
        if wanted != in_front:
            x, in_front = act(first if wanted else last, x), wanted
        if isinstance(layer, Dense | Conv2D):
            assert weights is not None
            meet(layer, weights, x)
            x = layer.apply(weights, x) if isinstance(layer, Dense) else _convolved(layer, weights, x)
        else:
            x = act(partial(layer.apply, None), x)
    return act(last, x) if in_front else x


def _convolved(layer: Conv2D, weights: Weights, x: jax.Array) -> jax.Array:
    """The layer's output, y = x * W + b."""
    if not few(layer.channels):
        return layer.apply(weights, x)
    return convolve(Window.of(layer, x.shape[2:]), weights["kernel"], x) + weights["bias"][:, None, None]


def _dense_sizes(entry: Entry, subset: Weights | None) -> Weights:
    """Of the kernel and of the bias, whose gradient is g."""
    a, g = entry.inputs, entry.outputs
    if subset is None:
        return {"bias": length(g), "kernel": outer.size(a, g, None)}
    return {"bias": length(g * subset["bias"]), "kernel": outer.size(a, g, subset["kernel"])}


def _dense_rows(
    entry: Entry, factors: Weights, per_unit: jax.Array | None, records: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What is kept of the kernel, and f_x g_x for the bias, whose factor may be another; in steps on a lattice."""
    kernel = outer.rows(entry.inputs, entry.outputs, factors["kernel"], per_unit, records)
    bias, factor = outer.present(entry.outputs, factors["bias"]), factors["bias"]
    if per_unit is not None:
        return *kernel, lattice.steps(bias, factor, per_unit, records)
    return *kernel, bias * outer.along(factor, bias)


def _dense_sum(kept: tuple[jax.Array, jax.Array, jax.Array], per_unit: jax.Array | None) -> Weights:
    inputs, kernel_outputs, bias_outputs = kept
    bias = bias_outputs.sum(0) if per_unit is None else lattice.total(bias_outputs)
    return {"bias": bias, "kernel": outer.total((inputs, kernel_outputs), per_unit)}


def conv_gradients(entry: Entry, subset: Weights | None) -> Weights:
    """The records' own gradients, M ∘ a gᵀ and M ∘ Σ_p g; kernels as (records, inputs, channels)."""
    a, g, p = entry.inputs, entry.outputs, _positions(entry)
    bias, kernel = g.sum(p), lax.dot_general(a, g, (((2,), (p,)), ((0,), (0,))))
    if subset is not None:
        bias, kernel = bias * subset["bias"], kernel * subset["kernel"].reshape(kernel.shape[1:])
    return {"bias": bias, "kernel": kernel}


def _positions(entry: Entry) -> int:
    """Which axis of a convolution's output gradients is that of the positions."""
    return 2 if isinstance(entry.layer, Conv2D) and few(entry.layer.channels) else 1
