"""ResNet-20 for photographs of 32 x 32 pixels (He et al. 2015), the network of S3's experiments on CIFAR-10.

    3 x 3 convolution, 16 channels; three stages of three blocks with 16, 32, 64 channels; mean over the picture; dense
    a block: x + conv(relu(norm(conv(relu(norm(x))))))

Batch normalisation lets records see each other, so that no clip norm bounds a record: group normalisation stands in for
it. A tree of arrays and functions of it, taken record by record: `bd.SGD` needs no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.errors import unmet
from bayesdp.learn.models.networks import cross_entropy

CHANNELS = (16, 32, 64)
BLOCKS = 3
GROUPS = 8

Params = dict[str, Any]


@dataclass(frozen=True)
class ResNet20:
    """The network with `outputs` classes: `init` and `apply` as those of `mechanism.Sequential`."""

    outputs: int

    def init(self, key: jax.Array, shape: tuple[int, ...]) -> Params:
        """Parameters for pictures of `shape`, (height, width, channels). Bad input: another shape."""
        if len(shape) != 3 or min(shape[:2]) < 4:
            raise unmet("shape", shape, "pictures (height, width, channels) of at least 4 x 4 pixels", f"shape {shape}")
        keys = iter(jax.random.split(key, 2 * BLOCKS * len(CHANNELS) + 2))
        blocks, before = [], CHANNELS[0]
        for channels in CHANNELS:
            for _ in range(BLOCKS):
                first, second = _conv(next(keys), before, channels), _conv(next(keys), channels, channels)
                blocks.append({"first": first, "norm": _norm(before), "second": second, "later": _norm(channels)})
                before = channels
        return {
            "conv": _conv(next(keys), shape[2], CHANNELS[0]),
            "blocks": blocks,
            "norm": _norm(before),
            "dense": jax.random.normal(next(keys), (before, self.outputs)) / math.sqrt(before),
            "bias": jnp.zeros(self.outputs),
        }

    def apply(self, params: Params, x: jax.Array) -> jax.Array:
        """(records, height, width, channels) to (records, outputs)."""
        x = _convolve(x, params["conv"], 1)
        for place, block in enumerate(params["blocks"]):
            stride = 2 if place and place % BLOCKS == 0 else 1
            inner = _convolve(jax.nn.relu(_normalise(x, block["norm"])), block["first"], stride)
            inner = _convolve(jax.nn.relu(_normalise(inner, block["later"])), block["second"], 1)
            more = inner.shape[-1] - x.shape[-1]
            # Where a stage begins the shortcut leaves out pixels and has zeros for the new channels: no weights.
            x = jnp.pad(x[:, ::stride, ::stride], ((0, 0), (0, 0), (0, 0), (0, more))) + inner
        pooled = jax.nn.relu(_normalise(x, params["norm"])).mean(axis=(1, 2))
        outputs: jax.Array = pooled @ params["dense"] + params["bias"]
        return outputs


@dataclass(frozen=True)
class PictureLoss:
    """-log softmax of one record, for any network with `apply`."""

    model: Any

    def __call__(self, params: Params, example: tuple[jax.Array, jax.Array]) -> jax.Array:
        """The loss of (picture, label)."""
        picture, label = example
        return cross_entropy(self.model.apply(params, picture[None])[0], label)


def _conv(key: jax.Array, inputs: int, outputs: int) -> jax.Array:
    return jax.random.normal(key, (3, 3, inputs, outputs)) * math.sqrt(2 / (9 * inputs))


def _norm(channels: int) -> Params:
    return {"scale": jnp.ones(channels), "shift": jnp.zeros(channels)}


def _convolve(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _normalise(x: jax.Array, weights: Params) -> jax.Array:
    """Each group of channels of each record to mean 0 and variance 1."""
    records, height, width, channels = x.shape
    grouped = x.reshape(records, height, width, GROUPS, channels // GROUPS)
    mean, variance = (part(grouped, axis=(1, 2, 4), keepdims=True) for part in (jnp.mean, jnp.var))
    scaled: jax.Array = ((grouped - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * weights["scale"]
    shifted: jax.Array = scaled + weights["shift"]
    return shifted
