"""Trees of arrays and plain values on disk, written whole or not at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import errors
from bayesdp.errors import InputError


def write_json(path: Path, value: Any, *, private: bool = False) -> None:
    """Strict JSON; `private`: readable by its owner only."""
    replace(path, json.dumps(value, allow_nan=False, indent=1).encode(), private=private)


def read_json(path: Path) -> Any:
    """What `write_json` wrote; an unreadable file gets `InputError`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise errors.refuse("path", str(path), "to be a readable JSON file", str(problem)) from None


def read_tagged(path: Path, kind: str, version: int) -> dict[str, Any]:
    """A JSON object that names its `format` and `version`, without the two; another kind gets `InputError`."""
    found = read_json(path)
    if not isinstance(found, dict) or found.pop("format", None) != kind:
        raise InputError(f"Expected {str(path)!r} to be a JSON file of format {kind!r}, got something else.")
    if found.pop("version", None) != version:
        raise InputError(f"Expected {str(path)!r} to be of version {version}, got another. Another release wrote it.")
    return found


def write_tree(path: Path, tree: Any) -> None:
    """The leaves of a tree, named by their place in it."""
    named = {jax.tree_util.keystr(place) or "value": leaf for place, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    write_arrays(path, {name: np.asarray(leaf) for name, leaf in named.items()})


def read_tree(path: Path, like: Any) -> Any:
    """The tree that `write_tree` wrote, in the form of `like`; other names or shapes get `InputError`."""
    stored = read_arrays(path)
    places = jax.tree_util.tree_leaves_with_path(like)
    names = [jax.tree_util.keystr(place) or "value" for place, _ in places]
    if set(names) != set(stored):
        raise InputError(
            f"Expected {path.name} to hold the parameters of this model, got others: {sorted(stored)[:4]}."
        )
    return fill(like, [stored[name] for name in names])


def fill(like: Any, leaves: list[Any]) -> Any:
    """A tree of the form of `like` with other leaves of the same shapes."""
    own, structure = jax.tree.flatten(like)
    if [np.shape(leaf) for leaf in own] != [np.shape(leaf) for leaf in leaves]:
        raise InputError("Expected a checkpoint of the same model and optimiser, got arrays of other shapes.")
    return jax.tree.unflatten(structure, [jnp.asarray(new, old.dtype) for old, new in zip(own, leaves, strict=True)])


def write_arrays(path: Path, arrays: dict[str, Any], *, private: bool = False) -> None:
    """An NPZ file; `private`: readable by its owner only."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    replace(path, buffer.getvalue(), private=private)


def read_arrays(path: Path) -> dict[str, Any]:
    """What `write_arrays` wrote; an unreadable file gets `InputError`."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, KeyError) as problem:
        raise errors.refuse("path", str(path), "to be a readable NPZ file", str(problem)) from None


def replace(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write beside and rename: a crash leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    unfinished.replace(path)
