"""How an accountant is put on disk and read back: versioned JSON, large arrays in an NPZ file beside it.

A state is a dict of plain values and NumPy arrays with a "kind" and a "version". Reading refuses another kind
or version, a malformed file, and an NPZ file that is not the one the JSON was written with.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from bayesdp import errors, storage
from bayesdp.errors import Array, InputError

INLINE = 1024
"""Arrays of up to this many entries are written into the JSON itself."""


class Saved(ABC):
    """An accountant that can be put on disk and read back the same."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything, as plain values and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The accountant that `state` describes. Another kind or version, or malformed: `InputError`."""

    def save(self, path: str | Path) -> None:
        """Write the state to `path` (JSON), large arrays beside it (NPZ)."""
        write(path, self.state())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote. An unreadable, malformed or foreign file gets `InputError`."""
        return cls.from_state(read(path))

    def report(self, path: str | Path, *, delta: float = 1e-5, **details: Any) -> Path:
        """Write what it promises at δ as an HTML page that opens offline, or JSON: see `bayesdp.write_report`."""
        import bayesdp  # by the front door: reports are made of accountants, not the other way round

        return bayesdp.write_report(path, self, delta=delta, **details)  # type: ignore[arg-type]  # each is one of three


def write(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write `state` to `path`, and its large arrays beside it: "run.npz" for "run.json", "run.1.npz" for "run.1".

    The NPZ file is written first and the JSON, which carries its digest, last, each by renaming a finished
    file: a crash leaves a pair that reading refuses, never half a state.
    """
    path = Path(path)
    large: dict[str, Array] = {}
    plain = {key: pack(value, large, key) for key, value in state.items()}
    storage.make_folder(path.parent)
    if large:
        content = storage.packed(large, compressed=True)
        plain["arrays"] = {"file": _beside(path).name, "sha256": hashlib.sha256(content).hexdigest()}
        storage.replace(_beside(path), content)
    storage.write_json(path, plain)


def read(path: str | Path) -> dict[str, Any]:
    """What `write` wrote. An unreadable, malformed or mismatched file gets `InputError`."""
    path = Path(path)
    plain = storage.read_json(path)
    if not isinstance(plain, dict):
        raise errors.refuse("path", str(path), "to hold a JSON object")
    arrays = plain.pop("arrays", None)
    stored = _arrays(path, arrays) if arrays is not None else {}
    with reading():
        return {key: unpack(value, stored) for key, value in plain.items()}


def check(state: Any, kind: str, version: int, keys: set[str]) -> None:
    """Refuse a state of another kind or version, or with other keys than `keys` (besides those two)."""
    if set(storage.untagged(state, kind, version, of="the state", tag="kind")) != keys:
        raise errors.refuse("state", sorted(state), f"to have the keys {', '.join(sorted(keys))}")


def pack(value: Any, large: dict[str, Array], key: str = "state") -> Any:
    """Plain JSON values for `value`; arrays that are large or not finite go into `large` by name."""
    if isinstance(value, np.ndarray):
        if value.size > INLINE or not np.isfinite(value).all():
            large[key] = value
            return {"array": key}
        return {"values": value.tolist(), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {k: pack(v, large, f"{key}.{k}") for k, v in value.items()}
    return value


def unpack(value: Any, stored: Mapping[str, Array]) -> Any:
    """What `pack` was given."""
    if isinstance(value, dict):
        if set(value) == {"array"}:
            if value["array"] not in stored:
                raise errors.refuse("state", value, "to name an array that its NPZ file holds")
            return stored[value["array"]]
        if set(value) == {"values", "shape"}:
            array = np.asarray(value["values"], dtype=np.float64)
            if list(array.shape) != value["shape"] and array.size:
                raise errors.refuse("state", value["shape"], f"to be the shape {array.shape} of its values")
            return array.reshape(value["shape"])
        return {k: unpack(v, stored) for k, v in value.items()}
    return value


def _arrays(path: Path, note: Any) -> dict[str, Array]:
    beside = _beside(path)
    try:
        raw = beside.read_bytes()
    except OSError as problem:
        raise errors.refuse("path", str(beside), "to hold the arrays of the state", str(problem)) from None
    if not isinstance(note, dict) or hashlib.sha256(raw).hexdigest() != note.get("sha256"):
        raise InputError(
            f"Expected {beside.name} to be the file that {path.name} was saved with; its digest differs.",
            argument="path",
            value=str(path),
            expected=f"to be the file that {path.name} was saved with",
        )
    return storage.unpacked(raw, beside)


def _beside(path: Path) -> Path:
    # Another ending stays: "run.1" and "run.2" must not share one file.
    return path.with_suffix(".npz") if path.suffix == ".json" else path.with_name(path.name + ".npz")


@contextmanager
def reading() -> Iterator[None]:
    """Turn whatever a malformed state provokes into one clear `InputError`."""
    with storage.reading("the accountant's state"):
        yield


def shaped(value: Any, shape: tuple[int, ...]) -> Array:
    """A tally of the given shape, without NaN or negative entries."""
    result = errors.array("state tally", value, least=0, infinite=True)
    if result.shape != shape:
        raise errors.refuse("state tally", result.shape, f"to have shape {shape}")
    return result.copy()
