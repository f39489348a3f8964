"""Checkpoints: parameters, optimiser, key and tallies in one file, so that they can never disagree.

The key of the noise is in there until training is done: the file is readable by its owner only, and the key is
wiped from it at the end.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.accountant import state as states
from bayesdp.errors import InputError
from bayesdp.learn import files
from bayesdp.learn.look import Look

if TYPE_CHECKING:
    from bayesdp.learn.training import Training

NAME = "checkpoint.npz"
PLAN = "fingerprint.json"
VERSION = 1


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds; `key` is None once training is done."""

    fingerprint: dict[str, Any]
    done: int
    seeded: bool
    key: Any
    members: npt.NDArray[np.int64]
    params: list[Any]
    optimizer: list[Any]
    tallies: dict[str, Any]
    looks: list[Look]


def claim(folder: str | Path, fingerprint: Mapping[str, Any]) -> None:
    """Make `folder` this run's. Bad input: it holds another run → `InputError`, nothing overwritten."""
    target = Path(folder) / PLAN
    if target.exists() and files.read_json(target) != _plain(fingerprint):
        raise errors.refuse("folder", str(folder), "to be empty or to hold this very run", "Choose another folder.")
    # Its digests let anybody who knows all records but one test a guess at that one.
    files.write_json(target, _plain(fingerprint), private=True)


def write(folder: str | Path, training: Training) -> None:
    """Everything needed to go on, in one file."""
    large: dict[str, Any] = {}
    note = {
        "version": VERSION,
        "done": training.done,
        "seeded": training.seeded,
        "looks": [_finite(asdict(look)) for look in training.looks],
        "tallies": states.pack(training.tallies.state(), large),
    }
    arrays = {f"tally:{name}": value for name, value in large.items()}
    arrays |= {f"params:{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(training.params))}
    arrays |= {f"optimizer:{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(training.state))}
    arrays["key"] = np.asarray(jax.random.key_data(training.key))
    arrays["members"] = training.members
    arrays["note"] = np.frombuffer(json.dumps(note, allow_nan=False).encode(), np.uint8)
    files.write_arrays(Path(folder) / NAME, arrays, private=True)


def read(folder: str | Path, *, finished: bool = False) -> Saved:
    """What `write` wrote. A missing or foreign checkpoint gets `InputError`, and a finished one unless asked for."""
    arrays = files.read_arrays(Path(folder) / NAME)
    with states.reading():
        note = json.loads(arrays["note"].tobytes())
        if note["version"] != VERSION:
            raise errors.refuse("checkpoint version", note["version"], f"to be {VERSION}")
        if "key" not in arrays and not finished:
            raise errors.refuse("folder", str(folder), "to hold an unfinished run", "This one has finished.")
        stored = {name.removeprefix("tally:"): value for name, value in arrays.items() if name.startswith("tally:")}
        return Saved(
            fingerprint=files.read_json(Path(folder) / PLAN),
            done=int(note["done"]),
            seeded=bool(note["seeded"]),
            key=arrays.get("key"),
            members=arrays["members"],
            params=_numbered(arrays, "params:"),
            optimizer=_numbered(arrays, "optimizer:"),
            tallies=states.unpack(note["tallies"], stored),
            looks=[Look(**{**look, "norms": tuple(look["norms"])}) for look in _infinite(note["looks"])],
        )


def forget_key(folder: str | Path) -> None:
    """Wipe the key of the noise once it is not needed any more."""
    path = Path(folder) / NAME
    if path.exists():
        arrays = files.read_arrays(path)
        arrays.pop("key", None)
        files.write_arrays(path, arrays, private=True)


def check(saved: Saved, fingerprint: Mapping[str, Any]) -> None:
    """Refuse to go on with another plan or other data."""
    for part, value in _plain(fingerprint).items():
        if saved.fingerprint.get(part) != value:
            raise InputError(f"Expected the same {part} as the checkpoint was made with, got another.")


def digest(tree: Any) -> str | None:
    """What data were trained on, as a fingerprint; None for none."""
    if tree is None:
        return None
    total = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.ascontiguousarray(np.asarray(leaf))
        total.update(f"{array.dtype}{array.shape}".encode())
        total.update(array.data if array.size else b"")
    return total.hexdigest()


def like(tree: Any, leaves: list[Any]) -> Any:
    """`leaves` in the form of `tree`."""
    return files.fill(tree, leaves)


def _numbered(arrays: Mapping[str, Any], prefix: str) -> list[Any]:
    count = sum(name.startswith(prefix) for name in arrays)
    return [arrays[f"{prefix}{i}"] for i in range(count)]


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return result


def _finite(value: Any) -> Any:
    """Numbers that strict JSON cannot carry, as of a run that diverged, in words."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _infinite(value: Any) -> Any:
    """The inverse of `_finite`."""
    if isinstance(value, dict):
        return {name: _infinite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_infinite(one) for one in value]
    return float(value) if isinstance(value, str) else value
