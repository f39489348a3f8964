"""Convolutions as matrix products of patches: on a CPU the fast way to per-record gradients of a kernel.

    patches(x)[(d, c), p] = x[c, p stride + d]:   y = Wᵀ patches(x),   ∂/∂W = patches(x) gᵀ

Layers with few channels work on images with the channels first, (records, channels, height, width): rows of pixels are
then copied and added as a whole, several times faster than pixels of six channels. Where channels are many, XLA's own
convolution, which wants them last, is the faster one.
"""

from __future__ import annotations

from functools import partial, reduce

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.layers import LAYOUT, AvgPool, Conv2D, MaxPool, Weights

_MANY = 32


def first(x: jax.Array) -> jax.Array:
    """(records, height, width, channels) to (records, channels, height, width)."""
    return x.transpose(0, 3, 1, 2)


def last(x: jax.Array) -> jax.Array:
    """(records, channels, height, width) to (records, height, width, channels)."""
    return x.transpose(0, 2, 3, 1)


def channels_first(layer: Conv2D) -> bool:
    """Whether `convolve` and `pull_back` take and give images with the channels first."""
    return layer.channels < _MANY


def patches(layer: Conv2D, x: jax.Array) -> jax.Array:
    """(records, c, height, width) to (records, kernel² c, positions)."""
    (rows, columns), k, stride = (layer.output_size(size) for size in x.shape[2:]), layer.kernel, layer.stride
    x = jnp.pad(x, [(0, 0), (0, 0), *(layer.margins(size) for size in x.shape[2:])])
    # One axis after the other: twice as fast as slicing both at once, and far faster than a gather.
    x = jnp.stack([x[..., j : j + (columns - 1) * stride + 1 : stride] for j in range(k)], axis=1)
    if stride == 1:  # all rows in one piece
        x = x.reshape(*x.shape[:3], -1)
        x = jnp.stack([x[..., i * columns : (i + rows) * columns] for i in range(k)], axis=1)
    else:
        x = jnp.stack([x[..., i : i + (rows - 1) * stride + 1 : stride, :] for i in range(k)], axis=1)
    return x.reshape(x.shape[0], -1, rows * columns)


def convolve(layer: Conv2D, weights: Weights, x: jax.Array) -> jax.Array:
    """The layer's output, y = x * W + b."""
    if not channels_first(layer):
        return layer.apply(weights, x)
    kernel = weights["kernel"]
    y = _each(kernel.reshape(-1, kernel.shape[-1]).T, patches(layer, x)) + weights["bias"][:, None]
    return y.reshape(*y.shape[:2], *(layer.output_size(size) for size in x.shape[2:]))


def pull_back(layer: Conv2D, weights: Weights, g: jax.Array, x: jax.Array) -> jax.Array:
    """∂/∂x[q] = Σ_d W[d] g[(q - d) / stride] from g = ∂/∂y; of x only the shape counts."""
    kernel, k, stride = weights["kernel"], layer.kernel, layer.stride
    side = slice(2, 4) if channels_first(layer) else slice(1, 3)
    around = []
    for size, out in zip(x.shape[side], g.shape[side], strict=True):
        before = k - 1 - layer.margins(size)[0]
        around.append((before, size + k - 1 - before - ((out - 1) * stride + 1)))
    if not channels_first(layer):
        # Written out: of the transpose that JAX would derive, XLA's CPU compiler does not see that it is a convolution.
        turned, apart = jnp.flip(kernel, (0, 1)).transpose(0, 1, 3, 2), (stride, stride)
        return lax.conv_general_dilated(g, turned, (1, 1), around, lhs_dilation=apart, dimension_numbers=LAYOUT)
    # Columns are gathered before the matrix product and rows scattered after it, which copies least.
    (records, outputs, rows, _), (_, inputs, height, width) = g.shape, x.shape
    g = lax.pad(g, jnp.zeros((), g.dtype), [*3 * [(0, 0, 0)], (*around[1], stride - 1)])
    g = jnp.stack([g[..., k - 1 - j : k - 1 - j + width] for j in range(k)], axis=1)
    turned = kernel.transpose(0, 2, 1, 3).reshape(k * inputs, k * outputs)
    moved = _each(turned, g.reshape(records, k * outputs, rows * width))
    top = layer.margins(height)[0]
    return _scatter_rows(moved.reshape(records, k, inputs, rows, width), stride, top + height)[:, :, top:]


def pool(layer: MaxPool | AvgPool, x: jax.Array) -> jax.Array:
    """`layer.apply` for images with the channels first."""
    if isinstance(layer, AvgPool):
        return _means(layer.window, x)
    rows = reduce(jnp.maximum, _every(layer.window, x, 2))
    return reduce(jnp.maximum, _every(layer.window, rows, 3))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _means(window: int, x: jax.Array) -> jax.Array:
    rows = reduce(jnp.add, _every(window, x, 2))
    return reduce(jnp.add, _every(window, rows, 3)) / window**2


def _spread_means(window: int, like: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    # Repeated, where the gradient that JAX derives adds up padded pieces, five times slower.
    g = jnp.repeat(jnp.repeat(g / window**2, window, axis=2), window, axis=3)
    return (jnp.pad(g, [(0, whole - part) for whole, part in zip(like.shape, g.shape, strict=True)]),)


_means.defvjp(lambda window, x: (_means(window, x), x), _spread_means)


def _every(window: int, x: jax.Array, axis: int) -> list[jax.Array]:
    """Entries 0, window, …; 1, window+1, …; and so on, of the windows that are full."""
    full = x.shape[axis] // window * window
    return [lax.slice_in_dim(x, i, full, window, axis) for i in range(window)]


def _each(matrix: jax.Array, columns: jax.Array) -> jax.Array:
    """`matrix` times every record's columns. As a batch of products: one product would transpose the columns first."""
    many = jnp.broadcast_to(matrix, (columns.shape[0], *matrix.shape))
    return lax.dot_general(many, columns, (((2,), (1,)), ((0,), (0,))))


def _scatter_rows(moved: jax.Array, stride: int, height: int) -> jax.Array:
    """x[c, r stride + i] = Σ moved[i, c, r], for `height` rows: each i is added in place."""
    records, k, inputs, rows, width = moved.shape
    moved = moved.reshape(records, k, inputs, rows, 1, width)
    reach = max(-(-height // stride), rows + (k - 1) // stride)
    x = jnp.zeros((records, inputs, reach, stride, width), moved.dtype)
    for i in range(k):
        at = (0, 0, i // stride, i % stride, 0)
        old = lax.slice(x, at, [a + size for a, size in zip(at, moved[:, i].shape, strict=True)])
        x = lax.dynamic_update_slice(x, old + moved[:, i], at)
    return x.reshape(records, inputs, reach * stride, width)[:, :, :height]
