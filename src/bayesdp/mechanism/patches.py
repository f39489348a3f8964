"""Convolutions as matrix products of patches: on a CPU the fast way to per-record gradients of a kernel.

patches(x)[p, d, c] = x[p stride + d, c]:   y = patches(x) W,   ∂/∂W = patches(x)ᵀ g,   ∂/∂x = patches(spread g) flip(W)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.layers import Conv2D, Weights


def patches(layer: Conv2D, x: jax.Array) -> jax.Array:
    """(records, height, width, c) to (records, positions, kernel² c)."""
    margins = [layer.margins(size) for size in x.shape[1:3]]
    rows, columns = (layer.output_size(size) for size in x.shape[1:3])
    return _windows(x, margins, rows, columns, layer.kernel, layer.stride)


def convolve(layer: Conv2D, weights: Weights, x: jax.Array) -> jax.Array:
    """The layer's output, y = x * W + b, by the faster of two ways."""
    if _wide(layer):
        return layer.apply(weights, x)
    kernel = weights["kernel"]
    y = patches(layer, x) @ kernel.reshape(-1, kernel.shape[-1]) + weights["bias"]
    return y.reshape(x.shape[0], *(layer.output_size(size) for size in x.shape[1:3]), -1)


def pull_back(layer: Conv2D, weights: Weights, g: jax.Array, x: jax.Array) -> jax.Array:
    """∂/∂x from g = ∂/∂y: a convolution of g, zeros put between for a stride, with the kernel turned."""
    if _wide(layer):
        # Of x only the shape matters, the map being linear in it.
        back: jax.Array = jax.linear_transpose(lambda v: layer.linear(weights["kernel"], v), x)(g)[0]
        return back
    kernel, stride = weights["kernel"], layer.stride
    margins = []
    for size, out in zip(x.shape[1:3], g.shape[1:3], strict=True):
        before = layer.kernel - 1 - layer.margins(size)[0]
        margins.append((before, size + layer.kernel - 1 - before - ((out - 1) * stride + 1)))
    if stride > 1:
        g = lax.pad(g, jnp.zeros((), g.dtype), [(0, 0, 0), (0, 0, stride - 1), (0, 0, stride - 1), (0, 0, 0)])
    turned = jnp.flip(kernel, (0, 1)).transpose(0, 1, 3, 2).reshape(-1, x.shape[-1])
    return (_windows(g, margins, x.shape[1], x.shape[2], layer.kernel, 1) @ turned).reshape(x.shape)


def _wide(layer: Conv2D) -> bool:
    # XLA's own convolution is slow for few channels on a CPU (5 times at 6) and the better one for many.
    return layer.channels >= 32


def _windows(
    x: jax.Array, margins: list[tuple[int, int]], rows: int, columns: int, kernel: int, stride: int
) -> jax.Array:
    # `lax.pad` also cuts where a margin is negative, as a stride may leave pixels that no window sees.
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((*m, 0) for m in margins), (0, 0, 0)])
    # One axis after the other: twice as fast as slicing both at once, and far faster than a gather.
    x = jnp.stack([x[:, :, j : j + (columns - 1) * stride + 1 : stride] for j in range(kernel)], axis=3)
    x = jnp.stack([x[:, i : i + (rows - 1) * stride + 1 : stride] for i in range(kernel)], axis=3)
    return x.reshape(x.shape[0], rows * columns, -1)
