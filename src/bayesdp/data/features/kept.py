"""Features that were computed once, by the content of what they were computed from: `kept`.

    file name = sha256 of (transform, shape, pixels),      <cache>/features/….npy, for its owner's eyes only

Data sets of the catalogue are public, so keeping theirs tells nothing. Features of a user's own records are as private
as the records, and are kept only where that was asked for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bayesdp.data.places import cache_folder

Floats = npt.NDArray[np.float32]

_LEAST = 1 << 20
"""Bytes of features that are worth a file."""


def kept(transform: str, images: Floats, compute: Callable[[Floats], Floats]) -> Floats:
    """`compute(images)`, from its file where there is one; `transform` names what is computed, with its version.

    A file that cannot be read is made anew; a cache that cannot be written to is done without.
    """
    path = _path(transform, images)
    with suppress(OSError, ValueError, EOFError):
        found = np.load(path, allow_pickle=False)
        if found.dtype == np.float32 and len(found) == len(images):
            return np.asarray(found, np.float32)
    result = compute(images)
    if result.nbytes >= _LEAST:
        with suppress(OSError):
            _write(path, result)
    return result


def _path(transform: str, images: Floats) -> Path:
    digest = hashlib.sha256(f"{transform} {images.shape} {images.dtype}".encode())
    digest.update(np.ascontiguousarray(images).data)
    return cache_folder() / "features" / f"{digest.hexdigest()}.npy"


def _write(path: Path, features: Floats) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Made for its owner alone from the first byte on.
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            np.save(file, features, allow_pickle=False)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
