"""Where a study keeps what it has measured: unit by unit, each written whole or not at all; nothing is repeated.

study.json                        what the study is: digests of plan, data, records and start, and its seed
units/NAME.npz                    the distances of one unit
result.json, result.npz           when everything is there (`StudyResult.save`)

All of it is sensitive, and readable by its owner only.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax

from bayesdp import errors
from bayesdp.errors import InputError
from bayesdp.learn import checkpoint, files
from bayesdp.learn.study_result import StudyResult
from bayesdp.learn.study_units import Distances, Material, Unit

NAME = "study.json"
FORMAT, VERSION = "bayesdp/study", 1


@dataclass(frozen=True)
class Kept:
    """A study's folder, or none; `material` has the seed of the study that the folder holds."""

    folder: Path | None
    material: Material

    def has(self, unit: Unit) -> bool:
        """Whether this unit was finished before."""
        return self.folder is not None and self._path(unit).exists()

    def read(self, unit: Unit) -> Distances:
        """What was measured. Bad input: a damaged file gets `InputError`."""
        found = files.read_arrays(self._path(unit)).get("distances")
        if found is None or found.ndim != 3 or len(found) != unit.runs:
            raise errors.refuse("folder", str(self._path(unit)), "to hold the distances of a unit", "Remove the file.")
        return np.asarray(found, np.float32)

    def write(self, unit: Unit, distances: Distances) -> None:
        """Keep a finished unit."""
        if self.folder is not None:
            files.write_arrays(self._path(unit), {"distances": distances}, private=True)

    def finish(self, result: StudyResult) -> StudyResult:
        """Leave the result beside its units."""
        if self.folder is not None:
            result.save(self.folder)
        return result

    def _path(self, unit: Unit) -> Path:
        assert self.folder is not None
        return self.folder / "units" / f"{unit.name}.npz"


def claim(folder: str | Path | None, material: Material, block: int, *, seeded: bool) -> Kept:
    """Make `folder` this study's, or go on with it there.

    Bad input: a folder of another study or of something else → `InputError`, nothing overwritten.
    """
    if folder is None:
        return Kept(None, material)
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise errors.refuse("folder", str(folder), "to be a folder", "There is a file of that name.")
    what = _fingerprint(material, block)
    if not (target / NAME).exists():
        if target.exists() and any(target.iterdir()):
            raise errors.refuse("folder", str(folder), "to be new, empty or a study's", "It holds other files.")
        note = {"format": FORMAT, "version": VERSION, "seed": material.entropy, **what}
        files.write_json(target / NAME, note, private=True)
        return Kept(target, material)
    found = files.read_tagged(target / NAME, FORMAT, VERSION)
    seed = found.pop("seed", None)
    if not isinstance(seed, int) or seed < 0:
        raise errors.refuse("seed", seed, f"in {NAME} to be a whole number", "The file is damaged.")
    if seeded and seed != material.entropy:
        found["seed"] = seed
    for part in sorted(what.keys() | found.keys()):
        if found.get(part) != what.get(part):
            raise InputError(
                f"Expected folder={str(folder)!r} to hold the same study, got one with another {part}. Choose another "
                "folder; nothing in this one was changed."
            )
    return Kept(target, dataclasses.replace(material, entropy=seed))


def _fingerprint(material: Material, block: int) -> dict[str, Any]:
    """What two parts of one study must share. A loss cannot be compared; an optimiser is, by what it does."""
    what = {
        "plan": material.plan.describe(),
        "optimizer": _first_updates(material.plan.optimizer, material.params),
        "start": checkpoint.digest(material.params),
        "data": checkpoint.digest(material.data),
        "records": checkpoint.digest(material.records),
        "rows": list(material.rows),
        "every": material.every,
        "block": block,
        "devices": jax.local_device_count(),
    }
    result: dict[str, Any] = json.loads(json.dumps(what, allow_nan=False))  # as a file gives it back
    return result


def _first_updates(optimizer: optax.GradientTransformation, params: Any) -> list[str]:
    """How far an optimiser goes for gradients of ones: twice, so that momentum shows."""
    state, ones = optimizer.init(params), jax.tree.map(np.ones_like, params)
    lengths = []
    for _ in range(2):
        updates, state = optimizer.update(ones, state, params)
        total = sum(float(np.sum(np.asarray(leaf, np.float64) ** 2)) for leaf in jax.tree.leaves(updates))
        lengths.append(f"{total:.4g}")
    return lengths
