"""Arrays of an NPY or NPZ file, read a block of rows at a time: the file may be larger than memory.

Nothing pickled is loaded. An array that was written column by column (Fortran order) is read whole.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_BLOCK = 2**23
"""Bytes of a block, about."""

Header = tuple[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class ArrayFiles:
    """The arrays of an open file: an archive, or the one array of `single`."""

    archive: zipfile.ZipFile | None
    single: Path

    @property
    def names(self) -> list[str]:
        """What there is in the file; an NPY file holds one called "array"."""
        if self.archive is None:
            return ["array"]
        return [one.removesuffix(".npy") for one in self.archive.namelist()]

    def is_array(self, name: str) -> bool:
        """Whether that is an array, by its ending."""
        return self.archive is None or f"{name}.npy" in self.archive.namelist()

    def header(self, name: str) -> Header:
        """Shape and type. What is no array raises ValueError."""
        with self._open(name) as file:
            shape, _, dtype = _header(file)
        return shape, dtype

    def whole(self, name: str) -> npt.NDArray[Any]:
        """All of a small array."""
        with self._open(name) as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

    def blocks(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """Its rows, some at a time. A file that ends early raises ValueError."""
        with self._open(name) as file:
            shape, fortran, dtype = _header(file)
            if dtype.hasobject:
                raise ValueError("pickled")
            if fortran:
                yield self.whole(name)
                return
            row = dtype.itemsize * int(np.prod(shape[1:]))
            for start in range(0, shape[0], many := max(1, _BLOCK // max(row, 1))):
                count = min(many, shape[0] - start)
                content = file.read(count * row)
                if len(content) != count * row:
                    raise ValueError("ends early")
                yield np.frombuffer(content, dtype).reshape(count, *shape[1:])
            file.read(1)  # an archive compares its checksum at the end

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        with self.single.open("rb") if self.archive is None else self.archive.open(f"{name}.npy") as file:
            yield file


@contextmanager
def open_arrays(path: Path) -> Iterator[ArrayFiles]:
    """The arrays of a file, by its content: an archive or a single array."""
    with path.open("rb") as file:
        archived = file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")  # the second of an archive without anything
    if not archived:
        yield ArrayFiles(None, path)
        return
    with zipfile.ZipFile(path) as archive:
        yield ArrayFiles(archive, path)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)
