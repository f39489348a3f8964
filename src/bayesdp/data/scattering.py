"""Scattering features: two layers of fixed wavelets, so that nobody's data has a part in them (H13).

    s0 = x * φ        s1[j, θ] = |x * ψ_jθ| * φ        s2[θ, θ'] = ||x * ψ_0θ| * ψ_1θ'| * φ        at every 4th pixel

    ψ_jθ(u) = (exp(iξ u_θ) − κ) exp(−(u_θ² + (u_θ⊥/2)²)/2σ²) / 4πσ²,   σ = 0.8·2^j,   ξ = (3π/4)/2^j   (Morlet, Σψ = 0)

with J = 2 scales and 8 angles (Bruna and Mallat 2013): 1 + 16 + 64 = 81 channels, 8 x 8 for images of 28 x 28. They
form ten families of eight channels that turning the image permutes: s1[0, ·], s1[1, ·] and s2[θ, θ + ρ] for each ρ.

What all images share is mostly that they have strokes at all, whatever their direction. So each family goes through a
discrete Fourier transform over its angles (orthonormal): the first channel is then the family's mean over directions,
the other seven its contrasts. Every image is standardised by itself in 21 groups: s0, ten means, ten times seven
contrasts. On MNIST the mean image makes up 0.23 of what is left, 0.58 where channels are grouped by threes as they
come: private noise has to cover that much less. No statistic of the data set is used anywhere.

Of images in colour the grey (R + G + B)/3 goes through all of this, and the two colour differences (R − B)/√2 and
(2G − R − B)/√6 through s0 and s1 alone: 81 + 2 · 17 = 115 channels. Which colour there is says much, so their means
stay in, and a picture that is nearly grey keeps short ones: `_LEAST_COLOUR` is added to variances.
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

COLOUR_CHANNELS = CHANNELS + 2 * (1 + 2 * ANGLES)
"""Channels of the result for an image in colour."""

NORM = 3.0
"""The length of an image's features: so long that a bias, whose input is 1, has a small part in a gradient's norm."""

_STRIDE = 4
_MARGIN = 2
"""Images are continued by at least this many pixels on each side, by reflection."""

_LEAST = 1e-7
"""Added to variances: a blank image gets zeros. Pixels are from 0 to 1."""

_LEAST_COLOUR = (1e-3, 1e-5)
"""The same for colour differences: of s0, and of s1, whose moduli are smaller."""

_SIDES = 0.4
"""What is left of the difference between a photograph and its mirror image, which are mostly of the same kind: 0 would
not tell left from right at all, as house numbers must. On 3,000 validation records of CIFAR-10 (12,000 to
train on, the noise of 47,500 at ε = 3, two clip norms): 57.4 and 58.9 % right with 1, 60.1 and 60.1 with this, 60.4 and
60.7 with 0."""

_OPPONENT = np.array([[1 / 3] * 3, [0.5**0.5, 0, -(0.5**0.5)], [-(6**-0.5), 2 * 6**-0.5, -(6**-0.5)]], np.float32)
"""Grey and two colour differences of red, green and blue."""

_BATCH = 256
_WIDTH = 0.8
_PEAK = 0.75 * np.pi
_SLANT = 0.5


def shape_of(image: tuple[int, ...]) -> tuple[int, int, int]:
    """(height, width, channels) of the features of an image of that shape."""
    height, width, colours = image
    channels = COLOUR_CHANNELS if colours == len(_OPPONENT) else CHANNELS * colours
    return len(_centres(height)), len(_centres(width)), channels


def scattering(images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Features of images (n, height, width, channels) with values about 0 … 1.

    Of three channels, taken to be red, green and blue, see above; others go each by itself.

    Guarantee: a record's features depend on that record alone. They are float32 of shape (n, *shape_of(image)).
    """
    n, height, width, colours = images.shape
    colour = colours == len(_OPPONENT)
    transform = _compiled(height, width, colour)
    rows, columns, channels = shape_of(images.shape[1:])
    result = np.empty((n, rows, columns, channels), np.float32)
    for start in range(0, n, _BATCH):
        part = images[start : start + _BATCH]
        # The last batch is filled up, so that there is one program for all.
        full = np.concatenate([part, np.zeros((_BATCH - len(part), *part.shape[1:]), np.float32)])
        planes = np.moveaxis(full @ _OPPONENT.T if colour else full, 3, 1)
        maps = np.asarray(transform(planes if colour else planes.reshape(-1, height, width)))
        maps = maps.reshape(_BATCH, channels, rows, columns) / (1 if colour else np.sqrt(colours))
        result[start : start + len(part)] = np.moveaxis(maps, 1, 3)[: len(part)]
    return result


@lru_cache(maxsize=4)
def _compiled(height: int, width: int, colour: bool) -> Callable[[Any], Any]:
    """The transform of planes (n, height, width) to (n, 81, rows, columns), of (n, 3, height, width) to 115 maps."""
    sides = [(_padding(side), _centres(side)) for side in (height, width)]
    padded = tuple(side + sum(pad) for side, (pad, _) in zip((height, width), sides, strict=True))
    fine, coarse = (_wavelets(padded, scale) for scale in (0, 1))
    seen = [centres for _, centres in sides]
    # The same places of the mirror image, as places of the image.
    turned = [seen[0], 2 * sides[1][0][0] + width - 1 - seen[1]]
    plain, mirror = (
        {step: [_low_pass(size, at, step) for size, at in zip(padded, places, strict=True)] for step in (1, 2)}
        for places in (seen, turned)
    )
    back = -np.arange(ANGLES) % ANGLES

    def smooth(maps: Any, step: int, *angles: int) -> Any:
        """Maps at every `step`-th pixel at the centres; of colour images mixed with those of the mirror image, whose
        directions, along the axes `angles`, run the other way.
        """
        direct = _smooth(maps, *plain[step])
        if not colour:
            return direct
        for axis in angles:
            maps = jnp.take(maps, back, axis=axis)
        return ((1 + _SIDES) * direct + (1 - _SIDES) * _smooth(maps, *mirror[step])) / 2

    def first_order(planes: Any) -> tuple[Any, Any, Any]:
        """s0, the families of s1, and |x * ψ_0θ|."""
        x = jnp.pad(planes, ((0, 0), *(pad for pad, _ in sides)), mode="symmetric")
        spectrum = jnp.fft.fft2(x)[:, None]
        first = jnp.abs(jnp.fft.ifft2(spectrum * fine))
        second = jnp.abs(jnp.fft.ifft2(_every_other(spectrum * coarse)))
        families = jnp.stack([smooth(first, 1, 1), smooth(second, 2, 1)], axis=1)
        return smooth(x, 1), families, first

    def grey(planes: Any) -> Any:
        low, families, first = first_order(planes)
        third = jnp.abs(jnp.fft.ifft2(_every_other(jnp.fft.fft2(first)[:, :, None] * coarse)))
        angles = np.arange(ANGLES)
        crossed = third[:, angles, (angles + angles[:, None]) % ANGLES]  # (n, ρ, θ): s2[θ, θ + ρ]
        return _standardised(low, jnp.concatenate([families, smooth(crossed, 2, 1, 2)], axis=1))

    def in_colour(images: Any) -> Any:
        differences = [_standardised(*first_order(images[:, i])[:2], colour=True) for i in (1, 2)]
        return jnp.concatenate([grey(images[:, 0]), *differences], axis=1)

    def transform(planes: Any) -> Any:
        maps = in_colour(planes) if colour else grey(planes)
        return maps * (NORM / np.sqrt(np.prod(maps.shape[1:])))

    return jax.jit(transform)


def _standardised(low: Any, families: Any, *, colour: bool = False) -> Any:
    """s0 (n, rows, columns) and families (n, f, 8, rows, columns) as channels (n, 1 + 8 f, rows, columns).

    Each group has the mean square 1, or less where a colour difference is faint.
    """
    of_low, of_families = _LEAST_COLOUR if colour else (_LEAST, _LEAST)
    turned = jnp.einsum("kt,nftij->nfkij", _fourier(), families)
    means = jnp.concatenate([low[:, None], turned[:, :, 0]], axis=1)
    if not colour:
        means = means - means.mean((2, 3), keepdims=True)
    least = np.array([of_low, *[of_families] * families.shape[1]], np.float32)[:, None, None]
    means = means / jnp.sqrt(jnp.square(means).mean((2, 3), keepdims=True) + least)
    contrasts = turned[:, :, 1:]
    contrasts = contrasts / jnp.sqrt(jnp.square(contrasts).mean((2, 3, 4), keepdims=True) + of_families)
    return jnp.concatenate([means, contrasts.reshape(len(low), -1, *low.shape[1:])], axis=1)


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
