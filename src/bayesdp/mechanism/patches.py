"""Convolutions as matrix products of patches: on a CPU the fast way to per-record gradients of a kernel.

patches(x)[p, d, c] = x[p stride + d, c]:   y = patches(x) W,   ∂/∂W = patches(x)ᵀ g,   ∂/∂x = patches(spread g) flip(W)
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.layers import LAYOUT, Conv2D, Weights


def patches(layer: Conv2D, x: jax.Array) -> jax.Array:
    """(records, height, width, c) to (records, positions, kernel² c)."""
    (rows, columns), k, stride = (layer.output_size(size) for size in x.shape[1:3]), layer.kernel, layer.stride
    x = jnp.pad(x, [(0, 0), *(layer.margins(size) for size in x.shape[1:3]), (0, 0)])
    # One axis after the other: twice as fast as slicing both at once, and far faster than a gather.
    x = jnp.stack([x[:, :, j : j + (columns - 1) * stride + 1 : stride] for j in range(k)], axis=3)
    x = jnp.stack([x[:, i : i + (rows - 1) * stride + 1 : stride] for i in range(k)], axis=3)
    return x.reshape(x.shape[0], rows * columns, -1)


def convolve(layer: Conv2D, weights: Weights, x: jax.Array) -> jax.Array:
    """The layer's output, y = x * W + b, by the faster of two ways."""
    if _wide(layer):
        return layer.apply(weights, x)
    kernel = weights["kernel"]
    y = patches(layer, x) @ kernel.reshape(-1, kernel.shape[-1]) + weights["bias"]
    return y.reshape(x.shape[0], *(layer.output_size(size) for size in x.shape[1:3]), -1)


def pull_back(layer: Conv2D, weights: Weights, g: jax.Array, x: jax.Array) -> jax.Array:
    """∂/∂x from g = ∂/∂y; of x only the shape counts. A convolution with the kernel turned, or patches added up."""
    kernel = weights["kernel"]
    if not _wide(layer):
        windows = g.reshape(g.shape[0], -1, g.shape[-1]) @ kernel.reshape(-1, kernel.shape[-1]).T
        back: jax.Array = jax.linear_transpose(partial(patches, layer), x)(windows)[0]
        return back
    margins = []
    for size, out in zip(x.shape[1:3], g.shape[1:3], strict=True):
        before = layer.kernel - 1 - layer.margins(size)[0]
        margins.append((before, size + layer.kernel - 1 - before - ((out - 1) * layer.stride + 1)))
    # Written out: of the transpose that JAX would derive, XLA's CPU compiler does not see that it is a convolution.
    turned, apart = jnp.flip(kernel, (0, 1)).transpose(0, 1, 3, 2), (layer.stride, layer.stride)
    return lax.conv_general_dilated(g, turned, (1, 1), margins, lhs_dilation=apart, dimension_numbers=LAYOUT)


def _wide(layer: Conv2D) -> bool:
    # XLA's own convolution is slow for few channels on a CPU (5 times at 6) and the better one for many.
    return layer.channels >= 32
