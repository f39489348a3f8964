"""How raw images become features: value / divisor, a constant not taken from the data; then features if asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bayesdp.data.features.extractor import Extractor
from bayesdp.errors import refuse

SCATTERING_NORM = 3.0
"""`scattering.NORM`: that module loads JAX."""

SCATTERING_VERSION = 2
"""To be raised with every change of what `scattering` computes."""

ImageFeatures: TypeAlias = str
"""A name of `IMAGE_FEATURES`, or a function in a file of the user's own (`features.extractor`)."""

IMAGE_FEATURES = ("scattering",)


@dataclass(frozen=True)
class ImageRecipe:
    """Images of shape (height, width, channels), divided by a constant; with `features`, scattering features (H13), or
    those of an extractor of the user's own.
    """

    shape: tuple[int, ...]
    divisor: float
    features: ImageFeatures | None = None
    extractor: Extractor | None = None

    @property
    def norm(self) -> float | None:
        """The length that no record's features exceed, where there is one by design."""
        if self.features is None:
            return None
        return SCATTERING_NORM if self.extractor is None else self.extractor.norm

    @property
    def transform_name(self) -> str:
        """What is computed, for `features.kept`."""
        return f"scattering {SCATTERING_VERSION}" if self.extractor is None else repr(self.extractor)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of one record of features."""
        if self.features is None:
            return self.shape
        if self.extractor is not None:
            return (self.extractor.size(self.shape),)
        from bayesdp.data.scattering import shape_of

        return shape_of(self.shape)

    def apply(self, images: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """(n, height, width, channels) or, with one channel, (n, height, width) as float32 features.

        Bad input: another shape, no numbers, or numbers that are not finite: `InputError`.
        """
        if images.ndim == 3 and self.shape[-1] == 1:
            images = images[..., None]
        if images.shape[1:] != self.shape or images.dtype.kind not in "fiub":
            raise refuse(
                "images",
                images.shape[1:],
                f"of numbers of shape {self.shape}",
                got=f"{images.shape[1:]} of {images.dtype}",
            )
        with np.errstate(over="ignore"):  # too large for single precision: infinite, and refused below
            pixels = images.astype(np.float32)  # a copy, which may be divided in place
        pixels /= np.float32(self.divisor)
        good = np.isfinite(pixels).reshape(len(pixels), -1).all(axis=1)
        if not good.all():
            raise refuse("images", None, "of finite numbers", got=f"another in image {int(np.argmin(good))}")
        return self.transform(pixels)

    def transform(self, pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """What comes after the division."""
        if self.features is None:
            return pixels
        if self.extractor is not None:
            return self.extractor(pixels)
        from bayesdp.data.scattering import scattering  # JAX is not loaded for data that do without

        return scattering(pixels)

    def to_dict(self) -> dict[str, Any]:
        extractor = {} if self.extractor is None else {"extractor": asdict(self.extractor)}
        return {
            "kind": "image",
            "shape": list(self.shape),
            "divisor": self.divisor,
            "features": self.features,
            **extractor,
        }
