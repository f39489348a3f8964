"""Arrays by name as an NPZ file, never pickles; a sealed one ends in a checksum of itself."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp.storage.files import content_of, refused, replace

Arrays = dict[str, npt.NDArray[Any]]

MOST_BYTES = 2**35
"""What arrays may unpack to: a small file can claim to be any size."""

_SEAL = b"bayesdp-sha256:"


def write_arrays(path: Path, arrays: Mapping[str, npt.ArrayLike], *, private: bool = True) -> Path:
    """An NPZ file."""
    return replace(path, packed(arrays), private=private)


def read_arrays(path: Path) -> Arrays:
    """What `write_arrays` wrote; an unreadable file gets `InputError`."""
    return unpacked(content_of(path, "to be a readable NPZ file"), path)


def write_sealed(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> Path:
    """An NPZ file with a checksum behind it, for files that no manifest lists while they change."""
    content = packed(arrays)
    return replace(path, content + _seal(content))


def read_sealed(path: Path) -> Arrays:
    """What `write_sealed` wrote; one that differs in a single bit gets `InputError`."""
    whole = content_of(path, "to be a readable NPZ file")
    content, seal = whole[: -len(_seal(b""))], whole[-len(_seal(b"")) :]
    if seal != _seal(content):
        raise refused(path, "to be as bayesdp wrote it", "It is damaged: its checksum is another.")
    return unpacked(content, path)


def packed(arrays: Mapping[str, npt.ArrayLike], *, compressed: bool = False) -> bytes:
    """The content of an NPZ file."""
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)  # type: ignore[arg-type]  # arrays by name
    return buffer.getvalue()


def unpacked(content: bytes, path: Path) -> Arrays:
    """The arrays in the content of the NPZ file at `path`; a damaged or crafted one gets `InputError`."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if sum(one.file_size for one in archive.infolist()) > MOST_BYTES:
                raise ValueError(f"it unpacks to more than {MOST_BYTES:,} bytes")
            if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
                raise ValueError("it holds something else than arrays, each once")
            return {name.removesuffix(".npy"): _array(archive.read(name)) for name in names}
    # NumPy, zipfile and the parsers below them promise no one kind of error for a damaged file.
    except Exception as problem:
        raise refused(path, "to be a readable NPZ file", f"{problem}" or type(problem).__name__) from None


def _array(content: bytes) -> npt.NDArray[Any]:
    """An array of the content of a .npy file, all of it."""
    file = io.BytesIO(content)
    found = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):
        raise ValueError("bytes are left over behind an array")
    return found


def _seal(content: bytes) -> bytes:
    return _SEAL + hashlib.sha256(content).hexdigest().encode()
