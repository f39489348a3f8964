"""Book-keeping: clipped sums of a layered model from one backward pass, without per-record gradients of dense layers.

With a_x the input of a dense layer and g_x = ∂ loss / ∂ output, a record's gradient is the outer product a_x g_xᵀ:

    |∂W|² = |a_x|² |g_x|²,   |∂b|² = |g_x|²,   Σ_x f_x ∂W = Σ_x a_x (f_x g_x)ᵀ   (one matrix product).

For a convolution a and g have a column for each position (patches): ∂W = a gᵀ, and |∂W|² is either its squared entries
or, where positions are few, Σ_pq (aᵀ a)_pq (gᵀ g)_pq. So a clipped sum costs what an ordinary gradient costs
(Bu et al. 2022, "Differentially private optimization on large model at small cost").
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
from bayesdp.mechanism.blocks import fold_blocks, full_precision
from bayesdp.mechanism.clip_rule import Norms, apply_rule, clip_rule
from bayesdp.mechanism.clipping import Gradients, PerExample
from bayesdp.mechanism.layers import Activation, AvgPool, Conv2D, Dense, MaxPool, Sequential, Weights
from bayesdp.mechanism.patches import channels_first, convolve, first, last, patches, pool, pull_back
from bayesdp.mechanism.subset import restrict

Params = tuple[Weights, ...]
Examples = Any


@dataclass(frozen=True)
class ModelLoss:
    """loss(params, (x, y)) = example_loss(model(x), y): a loss of one record that shows its layers."""

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
class BookKeeping:
    """Per-record clipping of a `ModelLoss`, `block` records at a time (None: by platform)."""

    loss: ModelLoss
    block: int | None = None

    @full_precision
    def clip_sum(
        self, params: Params, examples: Examples, mask: jax.Array, clip_norm: Any, subset: Params | None = None
    ) -> tuple[Params, Norms]:
        """As `PerExample.clip_sum`, to float32 rounding, and with the same guarantee."""
        rule = clip_rule(clip_norm)

        def one(sums: Params, block: Examples, here: jax.Array) -> tuple[Params, Any]:
            books, squares, per_record = self._examine(params, block, subset)
            factors, norms = apply_rule(rule, squares, here)
            rows, new = [], []
            for entry, total, factor, gradients in zip(books, sums, factors, per_record, strict=True):
                if isinstance(entry.layer, Dense):
                    # Kept for one matrix product at the end: adding block by block would move all weights each time.
                    rows.append((_present(entry.inputs, factor["kernel"]), *_scaled(entry.outputs, factor)))
                    new.append(total)
                else:
                    new.append(jax.tree.map(jnp.add, total, _conv_sum(entry, factor, gradients)))
            return tuple(new), (norms, rows)

        zero = tuple(jax.tree.map(jnp.zeros_like, weights) for weights in params)
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
        rule = clip_rule(clip_norm)

        def one(nothing: None, block: Examples, here: jax.Array) -> tuple[None, Norms]:
            return nothing, apply_rule(rule, self._examine(params, block, subset)[1], here)[1]

        norms: Norms = fold_blocks(one, None, examples, mask, self._block(mask))[1]
        return norms

    def _block(self, mask: jax.Array) -> int:
        if self.block is not None:
            return whole("block", self.block, least=1)
        return 16 if jax.default_backend() == "cpu" else mask.shape[0]

    def _examine(
        self, params: Params, block: Examples, subset: Params | None
    ) -> tuple[list[Entry], tuple[Any, ...], list[Weights | None]]:
        books = _books(self.loss, params, block)
        squares: list[Weights] = []
        per_record: list[Weights | None] = []
        for i, entry in enumerate(books):
            chosen = None if subset is None else subset[i]
            if isinstance(entry.layer, Dense):
                squares.append(_dense_squares(entry, chosen))
                per_record.append(None)
            else:
                square, gradients = _conv_squares(entry, chosen)
                squares.append(square)
                per_record.append(gradients)
        return books, tuple(squares), per_record


def _books(loss: ModelLoss, params: Params, examples: Examples) -> list[Entry]:
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


def _dense_squares(entry: Entry, subset: Weights | None) -> Weights:
    """|a|² |g|² and |g|²; with a subset M of the weights a² M g², which is a matrix product because M is 0 or 1."""
    a, g = jnp.square(entry.inputs), jnp.square(entry.outputs)
    if subset is None:
        size = g.sum(1)
        return {"bias": size, "kernel": a.sum(1) * size}
    return {"bias": g @ subset["bias"], "kernel": jnp.sum((a @ subset["kernel"]) * g, axis=1)}


def _dense_sum(inputs: jax.Array, kernel_outputs: jax.Array, bias_outputs: jax.Array) -> Weights:
    return {"bias": bias_outputs.sum(0), "kernel": inputs.T @ kernel_outputs}


def _conv_squares(entry: Entry, subset: Weights | None) -> tuple[Weights, Weights | None]:
    """Squared norms, and the records' own gradients where these were the cheaper way to the norms."""
    a, g, o, p = entry.inputs, entry.outputs, *_axes(entry)
    bias = g.sum(p)
    inputs, positions, channels = a.shape[1], a.shape[2], g.shape[o]
    if subset is None and positions**2 * (inputs + channels) < 4 * inputs * channels:
        gram = lax.dot_general(g, g, (((o,), (o,)), ((0,), (0,))))
        kernel = jnp.sum(jnp.einsum("nip,niq->npq", a, a) * gram, axis=(1, 2))
        return {"bias": jnp.sum(bias**2, axis=1), "kernel": kernel}, None
    gradient = lax.dot_general(a, g, (((2,), (p,)), ((0,), (0,))))
    if subset is not None:
        bias, gradient = bias * subset["bias"], gradient * subset["kernel"].reshape(inputs, channels)
    squares = {"bias": jnp.sum(bias**2, axis=1), "kernel": jnp.sum(gradient**2, axis=(1, 2))}
    return squares, {"bias": bias, "kernel": gradient}


def _conv_sum(entry: Entry, factors: Weights, gradients: Weights | None) -> Weights:
    o, p = _axes(entry)
    if gradients is None:
        kernel_outputs, bias_outputs = _scaled(entry.outputs, factors)
        a = _present(entry.inputs, factors["kernel"])
        kernel = lax.dot_general(a, kernel_outputs, (((0, 2), (0, p)), ((), ())))
        bias = bias_outputs.sum((0, p))
    else:
        kernel, bias = (
            jnp.tensordot(factors[name], _present(gradients[name], factors[name]), axes=1)
            for name in ("kernel", "bias")
        )
    side = entry.layer.kernel if isinstance(entry.layer, Conv2D) else 1
    return {"bias": bias, "kernel": kernel.reshape(side, side, -1, entry.outputs.shape[o])}


def _axes(entry: Entry) -> tuple[int, int]:
    """Which axes of a convolution's output gradients are the channels and the positions."""
    return (1, 2) if isinstance(entry.layer, Conv2D) and channels_first(entry.layer) else (2, 1)


def _scaled(g: jax.Array, factors: Weights) -> tuple[jax.Array, jax.Array]:
    """f_x g_x for the kernel and for the bias (their factors differ when each has a clip norm of its own)."""
    both = [_present(g, factors[name]) * _rows(factors[name], g) for name in ("kernel", "bias")]
    return both[0], both[1]


def _present(values: jax.Array, factors: jax.Array) -> jax.Array:
    # A factor of 0 does not remove what is infinite: 0 · inf is not a number.
    return jnp.where(_rows(factors, values) > 0, values, 0)


def _rows(factors: jax.Array, like: jax.Array) -> jax.Array:
    return jnp.expand_dims(factors, range(1, like.ndim))


def gradients_of(loss: Callable[[Any, Any], jax.Array]) -> Gradients:
    """The fastest way to clipped gradients of `loss`: book-keeping if it shows its layers, else record by record."""
    return BookKeeping(loss) if isinstance(loss, ModelLoss) else PerExample(loss)
