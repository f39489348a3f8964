"""Iterates of a run kept on disk, so that what a record cost can be asked after the run (ex-post, H3).

iterates.npy holds the parameters before every k-th step, a row each: they are what the run is accounted as
releasing, no more secret than the model. How far a record moved the steps in between is not known; the clip norm
stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bayesdp import errors, storage
from bayesdp.errors import unfit
from bayesdp.learn.loop.objective import Params
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.trajectories import Observer
from bayesdp.storage import manifest


class Iterates(Observer):
    """The kept iterates of one run; `every` k-th of `steps`."""

    def __init__(self, folder: str | Path, every: int, steps: int) -> None:
        self.folder = RunFolder(Path(folder))
        self.every, self.steps = errors.whole("keep_iterates", every, least=1), steps

    @property
    def count(self) -> int:
        """How many there are in the end."""
        return -(-self.steps // self.every)

    def before_steps(self, start: int, stop: int, params: Params) -> None:
        """Write the parameters before step `start` if it is one of those kept; `params` (1, …)."""
        del stop
        if start % self.every:
            return
        only = jax.tree.map(lambda leaf: leaf[0], jax.device_get(params))
        row = np.asarray(ravel_pytree(only)[0])
        if start == 0:
            place = RunFolder.make(self.folder.path)
            storage.write_json(place.iterates_note, {"every": self.every, "steps": self.steps})
            storage.replace(place.iterates, b"")  # for its owner only from the start
            file = np.lib.format.open_memmap(place.iterates, "w+", row.dtype, (self.count, row.size))
            file[:] = np.nan  # so that rows that were never written are not taken for iterates
        else:
            file = self._mapped("r+")
        file[start // self.every] = row
        file.flush()

    @classmethod
    def of(cls, folder: str | Path) -> Iterates | None:
        """Those of a run's folder; None where none were kept. Bad input: a damaged note gets `InputError`."""
        note = RunFolder(Path(folder)).iterates_note
        if not note.is_file():
            return None
        try:
            found = storage.read_json(_checked(note))
            return cls(folder, found["every"], errors.whole("steps", found["steps"], least=1))
        except (ValueError, KeyError, TypeError) as problem:
            raise errors.refuse("run", str(folder), f"to have a readable {note.name}", str(problem)) from None

    def _mapped(self, mode: Literal["r", "r+"]) -> np.memmap[Any, np.dtype[Any]]:
        """The file. Bad input: an empty, damaged or crafted one."""
        path = self.folder.iterates
        try:
            return np.lib.format.open_memmap(path, mode)
        except Exception as problem:  # NumPy promises no one kind of error
            raise errors.refuse("path", str(path), "to be a readable NPY file", str(problem)) from None

    def read(self, like: Params) -> Iterator[tuple[int, Params]]:
        """(step, parameters) of each, in the form of `like`. Bad input: iterates of another model."""
        flat, back = ravel_pytree(like)
        _checked(self.folder.iterates)
        file, name = self._mapped("r"), self.folder.iterates.name
        if file.shape != (self.count, flat.size) or file.dtype != flat.dtype:
            got = f"shape {file.shape} of {file.dtype}"
            raise unfit(name, f"to hold {self.count} iterates of {flat.size} parameters", got)
        for place in range(self.count):
            if not np.isfinite(file[place]).all():
                raise unfit(name, f"to hold an iterate before step {place * self.every}", "none")
            yield place * self.every, back(jnp.asarray(file[place]))


def _checked(path: Path) -> Path:
    """`path` if it is the file that the manifest lists, which it does once the run has ended."""
    folder = RunFolder(path.parent)
    under_way = folder.checkpoint.exists() and not manifest.lists(path)
    return path if under_way else manifest.check(path)
