"""The files of CIFAR-10, python version: pickles, which are read without running anything they ask for.

A pickle can name any function to be called. The reader here knows those that rebuild a NumPy array, answers them
with stand-ins that only keep what they are given, and refuses all others.
"""

from __future__ import annotations

import gzip
import io
import lzma
import pickle
import tarfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bayesdp.errors import InputError, unfit

Batch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]
"""Images (n, 32, 32, 3) and labels (n,)."""

FOLDER = "cifar-10-batches-py"
TRAINING = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
_ENDINGS = ("", ".xz", ".gz")
NAMES = tuple(f"{folder}{TEST}{ending}" for folder in (f"{FOLDER}/", "") for ending in _ENDINGS)
"""Where the test batch may be below a data folder; the training batches are beside it."""

_LARGEST = 1 << 26
"""A batch file has 31 MB; nothing larger is read."""

_BROKEN = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, tarfile.TarError, MemoryError)


def read_folder(folder: Path) -> tuple[Batch, Batch, str]:
    """Training and test records from a folder of batch files, and a sentence on which there are."""
    found = {name: path for name in (*TRAINING, TEST) if (path := _batch_path(folder, name)) is not None}
    batches = {}
    for name, path in found.items():
        try:
            with _OPENERS[path.suffix](path) as file:
                batches[name] = _read_batch(file)
        except _BROKEN as problem:
            raise _damaged(path, problem) from None
    return *_joined(batches, str(folder)), f"{folder.name}{_part(batches)}"


def read_archive(path: Path) -> tuple[Batch, Batch, str]:
    """Training and test records from the official archive; nothing is unpacked to disk."""
    batches = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                if folder.endswith(FOLDER) and name in (*TRAINING, TEST) and member.isfile():
                    file = archive.extractfile(member)
                    assert file is not None  # a plain file has content
                    batches[name] = _read_batch(file)
    except _BROKEN as problem:
        raise _damaged(path, problem) from None
    return *_joined(batches, str(path)), _part(batches)


def _read_batch(file: IO[bytes]) -> Batch:
    content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError("too large")
    try:
        batch = _Inert(io.BytesIO(content), encoding="bytes").load()
        named = {key.encode() if isinstance(key, str) else key: value for key, value in batch.items()}
        data, labels = named[b"data"].bytes(), np.asarray(named[b"labels"], np.uint8)
        good = data.shape == (len(labels), 3072) and labels.ndim == 1 and len(labels) > 0 and int(labels.max()) < 10
    except _Forbidden:
        raise
    except Exception as problem:  # a damaged pickle raises whatever comes
        raise ValueError(str(problem)) from None
    if not good:
        raise ValueError("other arrays")
    return np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), labels


class _Forbidden(ValueError):
    pass


class _Array:
    """Stands in for a NumPy array: keeps what the pickle says of it."""

    def __init__(self, *_: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def bytes(self) -> npt.NDArray[np.uint8]:
        _, shape, kind, in_columns, values = self.state
        if kind.name not in (b"u1", "u1") or in_columns:
            raise ValueError("other numbers than bytes")
        return np.frombuffer(values, np.uint8).reshape(shape)


class _Type:
    """Stands in for a NumPy dtype: keeps its name."""

    def __init__(self, name: object, *_: object) -> None:
        self.name = name

    def __setstate__(self, state: object) -> None:
        pass


def _as_bytes(text: str, _: object) -> bytes:
    """How Python 3 writes bytes into an old pickle: `_codecs.encode(text, "latin1")`."""
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): object,
    ("numpy", "dtype"): _Type,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("_codecs", "encode"): _as_bytes,
}


class _Inert(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise _Forbidden(f"it asks for {module}.{name}")
        return _KNOWN[module, name]


def _joined(batches: dict[str, Batch], source: str) -> tuple[Batch, Batch]:
    training = [batches[name] for name in TRAINING if name in batches]
    if not training or TEST not in batches:
        raise unfit(
            repr(source),
            f"to hold {TRAINING[0]} to {TRAINING[-1]} (or some of them) and {TEST} of CIFAR-10",
            ", ".join(batches) or "none of them",
        )
    images, labels = zip(*training, strict=True)
    return (np.concatenate(images), np.concatenate(labels)), batches[TEST]


def _part(batches: dict[str, Batch]) -> str:
    here = [name for name in TRAINING if name in batches]
    return "" if len(here) == len(TRAINING) else f" (in part: only {', '.join(here)} of five training batches)"


def _batch_path(folder: Path, name: str) -> Path | None:
    return next((path for ending in _ENDINGS if (path := folder / f"{name}{ending}").is_file()), None)


def _damaged(path: Path, problem: BaseException) -> InputError:
    why = f"one that is refused because {problem}" if isinstance(problem, _Forbidden) else "a damaged or another file"
    return unfit(
        f"the file {str(path)!r}",
        "to hold CIFAR-10 (python version)",
        why,
        "Delete it to have the archive downloaded anew, or get the original.",
    )


_OPENERS: dict[str, Any] = {"": lambda path: path.open("rb"), ".xz": lzma.open, ".gz": gzip.open}
