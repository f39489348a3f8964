"""Iterates of a run kept on disk, so that what a record cost can be asked after the run (SPEC E3, H3).

iterates.npy holds the parameters before every k-th step, a row each: they are what the run is accounted as
releasing, no more secret than the model. How far a record moved the steps in between is not known; the clip norm
stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bayesdp import errors
from bayesdp.errors import InputError

NAME = "iterates.npy"
NOTE = "iterates.json"


class Iterates:
    """The kept iterates of one run; `every` k-th of `steps`."""

    def __init__(self, folder: str | Path, every: int, steps: int) -> None:
        self.path = Path(folder) / NAME
        self.every, self.steps = errors.whole("keep_iterates", every, least=1), steps

    @property
    def count(self) -> int:
        """How many there are in the end."""
        return -(-self.steps // self.every)

    def keep(self, step: int, params: Any) -> None:
        """Write the parameters before step `step` if it is one of those kept."""
        if step % self.every:
            return
        row = np.asarray(ravel_pytree(jax.device_get(params))[0])
        if step == 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            note = {"every": self.every, "steps": self.steps}
            self.path.with_name(NOTE).write_text(json.dumps(note), encoding="utf-8")
            file = np.lib.format.open_memmap(self.path, "w+", row.dtype, (self.count, row.size))
            file[:] = np.nan  # so that rows that were never written are not taken for iterates
        else:
            file = np.load(self.path, mmap_mode="r+")
        file[step // self.every] = row
        file.flush()

    @classmethod
    def of(cls, folder: str | Path) -> Iterates | None:
        """Those of a run's folder; None where none were kept. Bad input: a damaged note gets `InputError`."""
        note = Path(folder) / NOTE
        if not note.is_file():
            return None
        try:
            found = json.loads(note.read_text(encoding="utf-8"))
            return cls(folder, found["every"], errors.whole("steps", found["steps"], least=1))
        except (ValueError, KeyError, TypeError) as problem:
            raise errors.refuse("run", str(folder), f"to have a readable {NOTE}", str(problem)) from None

    def read(self, like: Any) -> Iterator[tuple[int, Any]]:
        """(step, parameters) of each, in the form of `like`. Bad input: iterates of another model."""
        flat, back = ravel_pytree(like)
        file = np.load(self.path, mmap_mode="r")
        if file.shape != (self.count, flat.size):
            raise InputError(
                f"Expected {NAME} to hold {self.count} iterates of {flat.size} parameters, got shape {file.shape}."
            )
        for place in range(self.count):
            if not np.isfinite(file[place]).all():
                raise InputError(f"Expected {NAME} to hold an iterate before step {place * self.every}, got none.")
            yield place * self.every, back(jnp.asarray(file[place]))
