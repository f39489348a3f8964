"""The key of a run's noise: in one small file, for its owner only, written once and wiped when training is done.

Checkpoints name the key and do not hold it: the 64 bits that undo all noise are in one place on the disk, and we never
copy them. See `storage.files` for what a file system may keep of them nevertheless.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesdp import errors
from bayesdp.storage.files import wipe
from bayesdp.storage.values import read_tagged, reading, write_tagged

FORMAT, VERSION = "bayesdp/noise-key", 1

Keys = npt.NDArray[np.uint32]


def write(path: Path, keys: Keys) -> str:
    """Put the keys of a run's trajectories (runs, words) into a file of their own: the name of what was written."""
    name = secrets.token_hex(8)
    wipe(path)  # of a run that was claimed and never begun
    write_tagged(path, FORMAT, VERSION, {"name": name, "keys": np.asarray(keys).tolist()}, checked=True)
    return name


def read(path: Path, name: str) -> Keys:
    """The keys that `write` called `name`. Bad input: no such file, a damaged one, or one of another run."""
    if not path.is_file():
        hint = "Without it the noise of this run is lost: begin anew in another folder, and pay for both."
        raise errors.refuse("folder", str(path.parent), f"to have the key of its noise, {path.name}", hint)
    found: dict[str, Any] = read_tagged(path, FORMAT, VERSION, checked=True)
    if found.get("name") != name:
        raise errors.unfit(repr(str(path)), "to be the key that the checkpoint names", "that of another run")
    with reading(path):
        return np.array(found["keys"], np.uint32)
