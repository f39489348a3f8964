"""Where a study keeps what it has measured: unit by unit, each written whole or not at all; nothing is repeated.

study.json                        what the study is: digests of plan, data, records and start, its seed and its runs
units/NAME.npz                    the distances of one unit
result.json, result.npz           when everything is there (`StudyResult.save`)

All of it is sensitive, and readable by its owner only.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bayesdp import errors, storage
from bayesdp.errors import Argument, unfit
from bayesdp.learn.loop.fingerprint import digest, loss_digest, optimizer_digest
from bayesdp.learn.study.result import StudyResult
from bayesdp.learn.study.units import Distances, Material, Unit
from bayesdp.storage import lock
from bayesdp.storage.files import leftovers, sweep

NAME = "study.json"
FORMAT, VERSION = "bayesdp/study", 4


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
        found = storage.read_sealed(self._path(unit)).get("distances")
        if found is None or found.ndim != 3 or len(found) != unit.runs:
            raise errors.refuse("folder", str(self._path(unit)), "to hold the distances of a unit", "Remove the file.")
        return np.asarray(found, np.float32)

    def write(self, unit: Unit, distances: Distances) -> None:
        """Keep a finished unit."""
        if self.folder is not None:
            storage.write_sealed(self._path(unit), {"distances": distances})

    def finish(self, result: StudyResult) -> StudyResult:
        """Leave the result beside its units."""
        if self.folder is not None:
            result.save(self.folder)
        return result

    def _path(self, unit: Unit) -> Path:
        assert self.folder is not None
        return self.folder / "units" / f"{unit.name}.npz"


def claim(folder: str | Path | None, material: Material, fixed: Mapping[str, Any], *, seeded: bool) -> Kept:
    """Make `folder` this study's, or go on with it there. `fixed` is what else belongs to the study, by name.

    Bad input: a folder of another study or of something else → `InputError`, nothing overwritten.
    """
    if folder is None:
        return Kept(None, material)
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise errors.refuse("folder", str(folder), "to be a folder", "There is a file of that name.")
    what = _fingerprint(material, fixed)
    if not (target / NAME).exists():
        early = {"units", *(one.name for one in leftovers(target))}
        if target.exists() and not {one.name for one in target.iterdir()} <= early:
            raise errors.refuse("folder", str(folder), "to be new, empty or a study's", "It holds other files.")
        note = {"seed": material.entropy, **what}
        storage.make_folder(target, private=True)
        storage.make_folder(target / "units", private=True)
        storage.write_tagged(target / NAME, FORMAT, VERSION, note, checked=True)
        return Kept(target, material)
    found = storage.read_tagged(target / NAME, FORMAT, VERSION, checked=True)
    seed = found.pop("seed", None)
    if not isinstance(seed, int) or seed < 0:
        raise errors.refuse("seed", seed, f"in {NAME} to be a whole number", "The file is damaged.")
    if seeded and seed != material.entropy:
        found["seed"] = seed
    for part in sorted(what.keys() | found.keys()):
        if found.get(part) != what.get(part):
            raise unfit(
                Argument("folder", str(folder)),
                "to hold the same study",
                f"one with another {part}",
                "Choose another folder; nothing in this one was changed.",
            )
    return Kept(target, dataclasses.replace(material, entropy=seed))


@contextmanager
def locked(folder: str | Path | None) -> Iterator[None]:
    """Nobody else works on the study meanwhile. Bad input: another process does, or the folder cannot be written to."""
    if folder is None:
        yield
        return
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise errors.refuse("folder", str(folder), "to be a folder", "There is a file of that name.")
    with lock.locked(storage.make_folder(target, private=True)):
        sweep(target)
        if (target / "units").is_dir():
            sweep(target / "units")
        yield


def _fingerprint(material: Material, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """What two parts of one study must share."""
    plan, course = material.plan, material.plan.course(material.loss, material.params)
    what = {
        "plan": plan.describe(),
        "optimizer": optimizer_digest(course.objective, material.params),
        "loss": loss_digest(course.objective, material.params, material.data, plan.clip_norm),
        "start": digest(material.params),
        "data": digest(material.data),
        "records": digest(material.records),
        "rows": list(material.rows),
        "every": material.every,
        **fixed,
        "devices": jax.local_device_count(),
    }
    result: dict[str, Any] = json.loads(json.dumps(what, allow_nan=False))  # as a file gives it back
    return result
