"""Steps for a whole batch, and per-record gradients of their weights, the way that a CPU is quick at.

Any step can be mapped over a batch by JAX. Of convolutions, whose batched per-record gradients would be grouped
convolutions, and of pooling a CPU is many times faster by what `patches` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from bayesdp.mechanism.patches import Window, convolve, few, first, last, patches, pull_back, window_maxima, window_sums
from bayesdp.mechanism.tapping.program import Step


def run(step: Step, inputs: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """The outputs for a batch; `batched` says which inputs have one along the first axis."""
    if step.name == "conv_general_dilated" and list(batched) == [True, False]:
        convolution = Convolution.of(step)
        if convolution is not None:
            return [convolution(*inputs)]
    if step.name in _POOLING:
        windows = _side_by_side(step)
        if windows is not None:
            return [_POOLING[step.name]((1, *windows), inputs[0])]
    if step.name == "dot_general" and list(batched) == [False, True]:
        return [_turned_product(step, *inputs)]
    mapped: list[Any] = jax.vmap(step, in_axes=tuple(0 if each else None for each in batched))(*inputs)
    return mapped


_POOLING: dict[str, Callable[[tuple[int, ...], jax.Array], jax.Array]] = {
    "reduce_window_sum": window_sums,
    "reduce_window_max": window_maxima,
}


def _side_by_side(step: Step) -> tuple[int, ...] | None:
    """The windows of a pooling step, if they lie side by side and nothing is padded."""
    settings = step.settings
    windows = tuple(settings["window_dimensions"])
    padded = any(before or after for before, after in settings["padding"])
    dilated = any(by != 1 for by in (*settings["base_dilation"], *settings["window_dilation"]))
    strides = tuple(settings["window_strides"])
    apart = any(stride != window for stride, window in zip(strides, windows, strict=True))
    return None if padded or dilated or apart else windows


def _turned_product(step: Step, weights: jax.Array, x: jax.Array) -> jax.Array:
    """W x of every record as x Wᵀ, whose result has the batch in front."""
    ((left, right), (left_batch, right_batch)), settings = step.settings["dimension_numbers"], step.settings
    numbers = ((tuple(d + 1 for d in right), left), (tuple(d + 1 for d in right_batch), left_batch))
    more = {"precision": settings["precision"], "preferred_element_type": settings["preferred_element_type"]}
    y = lax.dot_general(x, weights, numbers, **more)
    # y: the products' own batch axes, the records, what is left of x, what is left of W.
    own, rest = len(left_batch), x.ndim - 1 - len(right) - len(left_batch)
    order = [own, *range(own), *range(own + 1 + rest, y.ndim), *range(own + 1, own + 1 + rest)]
    return y.transpose(order)


class Convolution(NamedTuple):
    """A convolution of images or series, without dilation or groups: its window and where its axes are.

    `x`, `kernel` and `y` are the axes as JAX numbers them: (batch, channels, …), (outputs, inputs, …).
    """

    window: Window
    x: tuple[int, ...]
    kernel: tuple[int, ...]
    y: tuple[int, ...]

    @classmethod
    def of(cls, step: Step) -> Convolution | None:
        """What a step computes, if it is of this kind."""
        settings = step.settings
        numbers, strides, padding = settings["dimension_numbers"], settings["window_strides"], settings["padding"]
        plain = settings["feature_group_count"] == settings["batch_group_count"] == 1
        dilated = any(by != 1 for by in (*settings["lhs_dilation"], *settings["rhs_dilation"]))
        if not plain or dilated or len(strides) not in (1, 2) or any(min(sides) < 0 for sides in padding):
            return None
        shape = step.inputs[1].shape
        # A series is an image of one row.
        kernel = (*(2 - len(strides)) * (1,), *(shape[axis] for axis in numbers.rhs_spec[2:]))
        stride = (*(2 - len(strides)) * (1,), *strides)
        margins = (*(2 - len(strides)) * ((0, 0),), *(tuple(sides) for sides in padding))
        return cls(Window(kernel, stride, margins), numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec)  # type: ignore[arg-type]

    def __call__(self, x: jax.Array, kernel: jax.Array) -> jax.Array:
        """The outputs for a batch (records, …)."""
        images = self._images(x, self.x)
        turned = self._kernel(kernel)
        if few(turned.shape[-1]):
            y = _convolved(self.window, turned, images)
        else:
            y = first(_convolved(self.window, turned, last(images)))
        y = y.reshape(x.shape[0], -1, *y.shape[1:])
        if len(self.x) == 3:
            y = y[:, :, :, 0]
        back = [0] * len(self.y)
        for place, axis in enumerate(self.y):
            back[axis] = place
        return y.transpose(0, *(axis + 1 for axis in back))

    def gradients(self, x: jax.Array, g: jax.Array, like: tuple[int, ...]) -> jax.Array:
        """∂/∂W of every record, (records, *like), from the gradients of the outputs."""
        records, outputs = x.shape[0], like[self.kernel[0]]
        a = patches(self.window, self._images(x, self.x))
        a = a.reshape(records, -1, *a.shape[1:])
        g = self._images(g, self.y)
        g = g.reshape(records, -1, outputs, math.prod(g.shape[2:]))
        if a.shape[1] == 1:
            made = lax.dot_general(a[:, 0], g[:, 0], (((2,), (2,)), ((0,), (0,))))
        else:
            made = lax.dot_general(a, g, (((1, 3), (1, 3)), ((0,), (0,))))
        sides = [like[axis] for axis in self.kernel[2:]]
        made = made.reshape(records, *sides, like[self.kernel[1]], outputs)
        order = (*self.kernel[2:], self.kernel[1], self.kernel[0])
        return made.transpose(0, *(order.index(axis) + 1 for axis in range(len(order))))

    def _images(self, x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
        """(records, …) to (records · batch, channels, height, width)."""
        x = x.transpose(0, *(axis + 1 for axis in axes))
        x = x.reshape(-1, *x.shape[2:])
        return x[:, :, None] if len(axes) == 3 else x

    def _kernel(self, kernel: jax.Array) -> jax.Array:
        """To (height, width, inputs, outputs)."""
        turned = kernel.transpose(*self.kernel[2:], self.kernel[1], self.kernel[0])
        return turned[None] if len(self.kernel) == 3 else turned


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _convolved(window: Window, kernel: jax.Array, x: jax.Array) -> jax.Array:
    return convolve(window, kernel, x)


def _forwards(window: Window, kernel: jax.Array, x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return convolve(window, kernel, x), (kernel, x)


def _backwards(window: Window, kept: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    # Nobody differentiates by a kernel here: its gradients are taken record by record from the taps.
    return jnp.full_like(kept[0], jnp.nan), pull_back(window, kept[0], g, kept[1])


_convolved.defvjp(_forwards, _backwards)
