"""Convolutions as matrix products of patches: on a CPU the fast way to per-record gradients of a kernel.

    patches(x)[(d, c), p] = x[c, p stride + d]:   y = Wᵀ patches(x),   ∂/∂W = patches(x) gᵀ

Layers with few channels work on images with the channels first, (records, channels, height, width): rows of pixels are
then copied and added as a whole, several times faster than pixels of six channels. Where channels are many, XLA's own
convolution, which wants them last, is the faster one.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.layers import LAYOUT, AvgPool, Conv2D, MaxPool

_MANY = 32


class Window(NamedTuple):
    """What a convolution looks at: along each side its pixels, its stride, and the zeros before and after."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    margins: tuple[tuple[int, int], tuple[int, int]]

    @classmethod
    def of(cls, layer: Conv2D, sizes: tuple[int, ...]) -> Window:
        """That of a layer for images of this height and width."""
        height, width = (layer.margins(size) for size in sizes)
        return cls((layer.kernel, layer.kernel), (layer.stride, layer.stride), (height, width))

    def outputs(self, sizes: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of the output for an image of this height and width."""
        sides = zip(sizes, self.kernel, self.stride, self.margins, strict=True)
        rows, columns = ((size + sum(margin) - k) // stride + 1 for size, k, stride, margin in sides)
        return rows, columns


def first(x: jax.Array) -> jax.Array:
    """(records, height, width, channels) to (records, channels, height, width)."""
    return x.transpose(0, 3, 1, 2)


def last(x: jax.Array) -> jax.Array:
    """(records, channels, height, width) to (records, height, width, channels)."""
    return x.transpose(0, 2, 3, 1)


def few(channels: int) -> bool:
    """Whether `convolve` and `pull_back` for so many output channels take and give images with the channels first."""
    return channels < _MANY


def patches(window: Window, x: jax.Array) -> jax.Array:
    """(records, c, height, width) to (records, kernel² c, positions)."""
    (rows, columns), (height, width), (down, right) = window.outputs(x.shape[2:]), window.kernel, window.stride
    x = jnp.pad(x, [(0, 0), (0, 0), *window.margins])
    # One axis after the other: twice as fast as slicing both at once, and far faster than a gather.
    x = jnp.stack([x[..., j : j + (columns - 1) * right + 1 : right] for j in range(width)], axis=1)
    if down == 1:  # all rows in one piece
        x = x.reshape(*x.shape[:3], -1)
        x = jnp.stack([x[..., i * columns : (i + rows) * columns] for i in range(height)], axis=1)
    else:
        x = jnp.stack([x[..., i : i + (rows - 1) * down + 1 : down, :] for i in range(height)], axis=1)
    return x.reshape(x.shape[0], -1, rows * columns)


def convolve(window: Window, kernel: jax.Array, x: jax.Array) -> jax.Array:
    """The output of a convolution without a bias, y = x * W."""
    if not few(kernel.shape[-1]):
        return lax.conv_general_dilated(x, kernel, window.stride, window.margins, dimension_numbers=LAYOUT)
    y = _each(kernel.reshape(-1, kernel.shape[-1]).T, patches(window, x))
    return y.reshape(*y.shape[:2], *window.outputs(x.shape[2:]))


def pull_back(window: Window, kernel: jax.Array, g: jax.Array, x: jax.Array) -> jax.Array:
    """∂/∂x[q] = Σ_d W[d] g[(q - d) / stride] from g = ∂/∂y; of x only the shape counts."""
    tall, wide, inputs, outputs = kernel.shape
    side = slice(2, 4) if few(outputs) else slice(1, 3)
    around = []
    for axis, (size, out) in enumerate(zip(x.shape[side], g.shape[side], strict=True)):
        before = window.kernel[axis] - 1 - window.margins[axis][0]
        reach = (out - 1) * window.stride[axis] + 1
        around.append((before, size + window.kernel[axis] - 1 - before - reach))
    if not few(outputs):
        # Written out: of the transpose that JAX would derive, XLA's CPU compiler does not see that it is a convolution.
        turned = jnp.flip(kernel, (0, 1)).transpose(0, 1, 3, 2)
        return lax.conv_general_dilated(g, turned, (1, 1), around, lhs_dilation=window.stride, dimension_numbers=LAYOUT)
    # Columns are gathered before the matrix product and rows scattered after it, which copies least.
    (records, _, rows, _), (height, width) = g.shape, x.shape[2:]
    g = lax.pad(g, jnp.zeros((), g.dtype), [*3 * [(0, 0, 0)], (*around[1], window.stride[1] - 1)])
    g = jnp.stack([g[..., wide - 1 - j : wide - 1 - j + width] for j in range(wide)], axis=1)
    turned = kernel.transpose(0, 2, 1, 3).reshape(tall * inputs, wide * outputs)
    moved = _each(turned, g.reshape(records, wide * outputs, rows * width))
    top = window.margins[0][0]
    return _scatter_rows(moved.reshape(records, tall, inputs, rows, width), window.stride[0], top + height)[:, :, top:]


def pool(layer: MaxPool | AvgPool, x: jax.Array) -> jax.Array:
    """`layer.apply` for images with the channels first."""
    if isinstance(layer, AvgPool):
        return window_sums((1, 1, layer.window, layer.window), x) / layer.window**2
    rows = reduce(jnp.maximum, _every(layer.window, x, 2))
    return reduce(jnp.maximum, _every(layer.window, rows, 3))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def window_sums(windows: tuple[int, ...], x: jax.Array) -> jax.Array:
    """Sums over windows side by side, of so many entries along each axis; what fills no window is left out."""
    for axis, window in enumerate(windows):
        x = reduce(jnp.add, _every(window, x, axis))
    return x


def _spread_sums(windows: tuple[int, ...], like: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    # Repeated, where the gradient that JAX derives adds up padded pieces, five times slower.
    for axis, window in enumerate(windows):
        g = g if window == 1 else jnp.repeat(g, window, axis=axis)
    return (jnp.pad(g, [(0, whole - part) for whole, part in zip(like.shape, g.shape, strict=True)]),)


window_sums.defvjp(lambda windows, x: (window_sums(windows, x), x), _spread_sums)


def window_maxima(windows: tuple[int, ...], x: jax.Array) -> jax.Array:
    """The largest entry of windows side by side; the gradient is that of the first of several, in the order of memory.

    As XLA's own does, and many times faster on a CPU; what is not a number stays one.
    """
    for axis in reversed(range(x.ndim)):
        x = reduce(_first_larger, _every(windows[axis], x, axis))
    return x


def _first_larger(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where((a >= b) | jnp.isnan(a), a, b)


def _every(window: int, x: jax.Array, axis: int) -> list[jax.Array]:
    """Entries 0, window, …; 1, window+1, …; and so on, of the windows that are full."""
    if window == 1:
        return [x]
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
