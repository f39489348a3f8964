"""Scattering features: two layers of fixed wavelets, so that nobody's data has a part in them (SPEC H13).

    S0 = x * φ        S1[j, θ] = |x * ψ_jθ| * φ        S2[θ, θ'] = ||x * ψ_0θ| * ψ_1θ'| * φ        at every 4th pixel

    ψ_jθ(u) = (exp(iξ u_θ) − κ) exp(−(u_θ² + (u_θ⊥/2)²)/2σ²) / 4πσ²,   σ = 0.8·2^j,   ξ = (3π/4)/2^j   (Morlet, Σψ = 0)

with J = 2 scales and 8 angles (Bruna and Mallat 2013): 1 + 16 + 64 = 81 channels, 8 x 8 for images of 28 x 28. They
form ten families of eight channels that turning the image permutes: S1[0, ·], S1[1, ·] and S2[θ, θ + ρ] for each ρ.

What all images share is mostly that they have strokes at all, whatever their direction. So each family goes through a
discrete Fourier transform over its angles (orthonormal): the first channel is then the family's mean over directions,
the other seven its contrasts. Every image is standardised by itself in 21 groups: S0, ten means, ten times seven
contrasts. On MNIST the mean image makes up 0.23 of what is left, 0.58 where channels are grouped by threes as they
come: private noise has to cover that much less. No statistic of the data set is used anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array

ANGLES = 8
CHANNELS = 1 + 2 * ANGLES + ANGLES**2
"""Channels of the result for each channel of the image."""

NORM = 3.0
"""The length of an image's features: so long that a bias, whose input is 1, has a small part in a gradient's norm."""

_STRIDE = 4
_MARGIN = 2
"""Images are continued by at least this many pixels on each side, by reflection."""

_LEAST = 1e-7
"""Added to variances: a blank image gets zeros. Pixels are from 0 to 1."""

_BATCH = 256
_WIDTH = 0.8
_PEAK = 0.75 * np.pi
_SLANT = 0.5


def shape_of(image: tuple[int, ...]) -> tuple[int, int, int]:
    """(height, width, channels) of the features of an image of that shape."""
    height, width, channels = image
    return len(_centres(height)), len(_centres(width)), CHANNELS * channels


def scattering(images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Features of images (n, height, width, channels) with values about 0 … 1; each colour by itself.

    Guarantee: a record's features depend on that record alone. They are float32 of shape (n, *shape_of(image)).
    """
    n, height, width, colours = images.shape
    transform = _compiled(height, width)
    rows, columns, channels = shape_of(images.shape[1:])
    result = np.empty((n, rows, columns, channels), np.float32)
    for start in range(0, n, _BATCH):
        part = images[start : start + _BATCH]
        # The last batch is filled up, so that there is one program for all.
        full = np.concatenate([part, np.zeros((_BATCH - len(part), *part.shape[1:]), np.float32)])
        planes = np.moveaxis(full, 3, 1).reshape(-1, height, width)
        maps = np.asarray(transform(planes)).reshape(_BATCH, channels, rows, columns)
        result[start : start + len(part)] = np.moveaxis(maps, 1, 3)[: len(part)] / np.sqrt(colours)
    return result


@lru_cache(maxsize=4)
def _compiled(height: int, width: int) -> Callable[[Any], Any]:
    """The transform of planes (n, height, width) to (n, 81, rows, columns)."""
    sides = [(_padding(side), _centres(side)) for side in (height, width)]
    padded = tuple(side + sum(pad) for side, (pad, _) in zip((height, width), sides, strict=True))
    fine, coarse = (_wavelets(padded, scale) for scale in (0, 1))
    whole = [_low_pass(size, centres, 1) for size, (_, centres) in zip(padded, sides, strict=True)]
    half = [_low_pass(size, centres, 2) for size, (_, centres) in zip(padded, sides, strict=True)]

    def transform(planes: Any) -> Any:
        x = jnp.pad(planes, ((0, 0), *(pad for pad, _ in sides)), mode="symmetric")
        spectrum = jnp.fft.fft2(x)[:, None]
        first = jnp.abs(jnp.fft.ifft2(spectrum * fine))
        second = jnp.abs(jnp.fft.ifft2(_every_other(spectrum * coarse)))
        third = jnp.abs(jnp.fft.ifft2(_every_other(jnp.fft.fft2(first)[:, :, None] * coarse)))
        angles = np.arange(ANGLES)
        crossed = third[:, angles, (angles + angles[:, None]) % ANGLES]  # (n, ρ, θ): S2[θ, θ + ρ]
        families = [_smooth(first, *whole)[:, None], _smooth(second, *half)[:, None], _smooth(crossed, *half)]
        return _standardised(_smooth(x, *whole), jnp.concatenate(families, axis=1))

    return jax.jit(transform)


def _standardised(low: Any, families: Any) -> Any:
    """S0 (n, rows, columns) and families (n, 10, 8, rows, columns) as channels (n, 81, rows, columns)."""
    turned = jnp.einsum("kt,nftij->nfkij", _fourier(), families)
    means = jnp.concatenate([low[:, None], turned[:, :, 0]], axis=1)
    means = means - means.mean((2, 3), keepdims=True)
    means = means / jnp.sqrt(jnp.square(means).mean((2, 3), keepdims=True) + _LEAST)
    contrasts = turned[:, :, 1:]
    contrasts = contrasts / jnp.sqrt(jnp.square(contrasts).mean((2, 3, 4), keepdims=True) + _LEAST)
    result = jnp.concatenate([means, contrasts.reshape(len(low), -1, *low.shape[1:])], axis=1)
    return result * (NORM / np.sqrt(np.prod(result.shape[1:])))


def _fourier() -> npt.NDArray[np.float32]:
    """The orthonormal real Fourier transform over the angles, (frequencies, angles)."""
    turn = 2 * np.pi * np.arange(ANGLES) / ANGLES
    waves = [wave(k * turn) for k in range(1, ANGLES // 2) for wave in (np.cos, np.sin)]
    basis = np.array([np.ones(ANGLES), *waves, np.cos(ANGLES // 2 * turn)])
    normed: npt.NDArray[np.float32] = (basis / np.linalg.norm(basis, axis=1, keepdims=True)).astype(np.float32)
    return normed


def _smooth(maps: Any, rows: Any, columns: Any) -> Any:
    return jnp.einsum("ia,...ab,jb->...ij", rows, maps, columns)


def _every_other(spectrum: Any) -> Any:
    """The spectrum of every other pixel: it repeats itself twice along each side."""
    *rest, height, width = spectrum.shape
    return spectrum.reshape(*rest, 2, height // 2, 2, width // 2).mean((-4, -2))


def _padding(side: int) -> tuple[int, int]:
    """Pixels before and after: up to a multiple of 8."""
    more = -(-(side + 2 * _MARGIN) // 8) * 8 - side
    return more // 2, more - more // 2


def _centres(side: int) -> npt.NDArray[np.int64]:
    """Pixels of the padded side at which the features are taken: those of the image, and of a small margin before."""
    before, _ = _padding(side)
    pixels = np.arange(0, side + sum(_padding(side)), _STRIDE)
    return pixels[(pixels >= before - _MARGIN) & (pixels < before + side)]


def _wavelets(size: tuple[int, ...], scale: int) -> npt.NDArray[np.float32]:
    """The Fourier transforms of ψ_jθ for all angles, periodic on that many pixels; they are real."""
    sigma, xi = _WIDTH * 2**scale, _PEAK / 2**scale
    # Three periods to each side: the longest wavelet has then fallen below 1e-12 on images of 8 pixels already.
    y, x = (np.arange(-3 * side, 4 * side).astype(np.float64) for side in size)
    result = []
    for angle in np.pi * np.arange(ANGLES) / ANGLES:
        along = np.cos(angle) * x + np.sin(angle) * y[:, None]
        across = -np.sin(angle) * x + np.cos(angle) * y[:, None]
        bump = np.exp(-(along**2 + (_SLANT * across) ** 2) / (2 * sigma**2)) * _SLANT / (2 * np.pi * sigma**2)
        wave = bump * np.exp(1j * xi * along)
        wave -= bump * (wave.sum() / bump.sum())
        result.append(np.fft.fft2(_periodic(_periodic(wave, size[0], 0), size[1], 1)).real)
    return np.array(result, np.float32)


def _low_pass(size: int, centres: npt.NDArray[np.int64], step: int) -> npt.NDArray[np.float32]:
    """(centres, pixels): φ along one side for maps given at every `step`-th pixel, a Gaussian of width 1.6."""
    sigma = 2 * _WIDTH
    x = np.arange(-3 * size, 4 * size).astype(np.float64)
    bump = _periodic(np.exp(-(x**2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma), size, 0)
    return np.asarray(step * bump[(centres[:, None] - np.arange(0, size, step)) % size], np.float32)


def _periodic(values: Any, size: int, axis: int) -> Any:
    """Values at −3·size … 4·size − 1 added up over the periods."""
    shape = list(values.shape)
    shape[axis : axis + 1] = [7, size]
    summed: Array = values.reshape(shape).sum(axis)
    return summed
