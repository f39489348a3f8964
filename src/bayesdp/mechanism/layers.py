"""Small layer objects: frozen descriptions with `init` and `apply`, whose gradients `bookkeeping` knows by heart.

    y = x W + b,   y = x * W + b (convolution),   activations, pooling, flattening;   Sequential is their composition.

`apply` takes a batch, (records, …), and no layer lets one record see another. Images are (height, width, channels).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.errors import one_of, unmet, whole

Weights = dict[str, jax.Array]
Shape = tuple[int, ...]

LAYOUT = ("NHWC", "HWIO", "NHWC")
"""How images, kernels and outputs of a convolution lie in memory."""

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "selu": jax.nn.selu,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
}


class Layer(Protocol):
    """What Sequential asks of a layer."""

    def init(self, key: jax.Array, shape: Shape) -> tuple[Weights | None, Shape]:
        """Weights for inputs of `shape` (None when there are none), and the shape of the outputs."""
        ...

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """Outputs for a batch."""
        ...


@dataclass(frozen=True)
class Dense:
    """y = x W + b."""

    units: int

    def init(self, key: jax.Array, shape: Shape) -> tuple[Weights, Shape]:
        """Glorot's normal weights, zero bias."""
        if len(shape) != 1:
            raise unmet("shape", shape, "flat inputs for Dense", f"shape {shape}", "Put Flatten() before it.")
        units = whole("units", self.units, least=1)
        return _glorot(key, (shape[0], units), shape[0], units), (units,)

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """(records, inputs) to (records, units)."""
        assert weights is not None
        return x @ weights["kernel"] + weights["bias"]


@dataclass(frozen=True)
class Conv2D:
    """y[p] = Σ_d x[p stride + d] W[d] + b over a window of `kernel` x `kernel` pixels."""

    channels: int
    kernel: int
    stride: int = 1
    padding: Literal["SAME", "VALID"] = "SAME"

    def __post_init__(self) -> None:
        one_of("padding", self.padding, ["SAME", "VALID"])

    def init(self, key: jax.Array, shape: Shape) -> tuple[Weights, Shape]:
        """Glorot's normal weights, zero bias."""
        if len(shape) != 3:
            raise unmet("shape", shape, "images (height, width, channels) for Conv2D", f"shape {shape}")
        k, channels = whole("kernel", self.kernel, least=1), whole("channels", self.channels, least=1)
        whole("stride", self.stride, least=1)
        height, width = (self.output_size(size) for size in shape[:2])
        if min(height, width) < 1:
            raise unmet("shape", shape, f"images of at least {k} x {k} pixels", f"shape {shape}")
        weights = _glorot(key, (k, k, shape[2], channels), k * k * shape[2], k * k * channels)
        return weights, (height, width, channels)

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """(records, height, width, inputs) to (records, height', width', channels)."""
        assert weights is not None
        strides = (self.stride, self.stride)
        y = lax.conv_general_dilated(x, weights["kernel"], strides, self.padding, dimension_numbers=LAYOUT)
        return y + weights["bias"]

    def output_size(self, size: int) -> int:
        """Pixels along one side of the output."""
        return -(-size // self.stride) if self.padding == "SAME" else (size - self.kernel) // self.stride + 1

    def margins(self, size: int) -> tuple[int, int]:
        """Zeros before and after one side of the input, as XLA's "SAME" and "VALID" put them."""
        if self.padding == "VALID":
            return 0, 0
        missing = max((self.output_size(size) - 1) * self.stride + self.kernel - size, 0)
        return missing // 2, missing - missing // 2


@dataclass(frozen=True)
class Activation:
    """y = φ(x), entry by entry."""

    name: str

    def __post_init__(self) -> None:
        one_of("activation", self.name, ACTIVATIONS)

    def init(self, key: jax.Array, shape: Shape) -> tuple[None, Shape]:
        """Nothing to learn."""
        del key
        return None, shape

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """Same shape."""
        del weights
        return ACTIVATIONS[self.name](x)


@dataclass(frozen=True)
class _Pool:
    """Windows of `window` x `window` pixels side by side; pixels that do not fill a window are left out."""

    window: int = 2

    def init(self, key: jax.Array, shape: Shape) -> tuple[None, Shape]:
        """Nothing to learn."""
        del key
        window = whole("window", self.window, least=1)
        if len(shape) != 3 or min(shape[:2]) < window:
            raise unmet("shape", shape, f"images of at least {window} x {window} pixels to pool", f"shape {shape}")
        return None, (shape[0] // window, shape[1] // window, shape[2])

    def _windows(self, x: jax.Array) -> jax.Array:
        # A reshape in place of `reduce_window`, whose gradient is slow on a CPU.
        records, height, width, channels = x.shape
        rows, columns = height // self.window, width // self.window
        x = x[:, : rows * self.window, : columns * self.window]
        return x.reshape(records, rows, self.window, columns, self.window, channels)


@dataclass(frozen=True)
class MaxPool(_Pool):
    """y = max over a window."""

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """(records, height, width, channels) to (records, height/window, width/window, channels)."""
        del weights
        windows = self._windows(x)
        # One pair after the other: the gradient of a maximum over axes counts ties, three times slower.
        rows = reduce(jnp.maximum, [windows[:, :, i] for i in range(self.window)])
        return reduce(jnp.maximum, [rows[:, :, :, j] for j in range(self.window)])


@dataclass(frozen=True)
class AvgPool(_Pool):
    """y = mean over a window."""

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """(records, height, width, channels) to (records, height/window, width/window, channels)."""
        del weights
        return self._windows(x).mean((2, 4))


@dataclass(frozen=True)
class Flatten:
    """y = x in one row."""

    def init(self, key: jax.Array, shape: Shape) -> tuple[None, Shape]:
        """Nothing to learn."""
        del key
        return None, (math.prod(shape),)

    def apply(self, weights: Weights | None, x: jax.Array) -> jax.Array:
        """(records, …) to (records, entries)."""
        del weights
        return x.reshape(x.shape[0], -1)


@dataclass(frozen=True)
class Sequential:
    """y = layer_n(… layer_1(x)). The parameters are a tuple with one {"kernel", "bias"} per layer that has weights."""

    layers: tuple[Layer, ...]

    def init(self, key: jax.Array, shape: Shape) -> tuple[Weights, ...]:
        """Parameters for single records of `shape`.

        Bad input: layers that do not fit each other or the shape get `InputError`.
        """
        params: tuple[Weights, ...] = _initial(self.layers, key, tuple(shape))
        return params

    def apply(self, params: tuple[Weights, ...], x: jax.Array) -> jax.Array:
        """Outputs for a batch."""
        for layer, weights in self.paired(params):
            x = layer.apply(weights, x)
        return x

    def paired(self, params: tuple[Weights, ...]) -> list[tuple[Layer, Weights | None]]:
        """Each layer with its weights."""
        own = iter(params)
        return [(layer, next(own) if isinstance(layer, Dense | Conv2D) else None) for layer in self.layers]


# Compiled as a whole, and once for every model: op by op, a call would take seconds.
@partial(jax.jit, static_argnums=(0, 2))
def _initial(layers: tuple[Layer, ...], key: jax.Array, shape: Shape) -> tuple[Weights, ...]:
    params: list[Weights] = []
    for layer, own in zip(layers, jax.random.split(key, max(len(layers), 1)), strict=False):
        weights, shape = layer.init(own, shape)
        if weights is not None:
            params.append(weights)
    return tuple(params)


def _glorot(key: jax.Array, shape: Shape, inputs: int, outputs: int) -> Weights:
    scale = math.sqrt(2 / (inputs + outputs))
    return {"kernel": scale * jax.random.normal(key, shape), "bias": jnp.zeros(shape[-1])}
