"""Checkpoints: parameters, optimiser and tallies in one file, so that they can never disagree.

The key of the noise is not in there: it is named, and in a file of its own (`storage.noise_key`). What the run costs
stands in the journal of the folder before its first step, and so does how often it was taken up again, and where it
lies.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesdp import errors, storage
from bayesdp.accountant import state as states
from bayesdp.errors import Array, unmet
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.snapshot import Snapshot
from bayesdp.learn.records import Rows
from bayesdp.ledger import Charge, Ledger
from bayesdp.storage import noise_key
from bayesdp.storage.files import wipe

VERSION = 3


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run at a snapshot, as plain arrays and values: everything needed to go on.

    `key` is the name of the key, None once training is done; `carry` the leaves of what the runs carry.
    """

    done: int
    seeded: bool
    key: str | None
    members: Rows
    carry: list[Array]
    tallies: dict[str, Any]
    snapshots: tuple[Snapshot, ...]


def claim(folder: str | Path, fingerprint: Mapping[str, Any], keys: noise_key.Keys) -> str:
    """Make `folder` this run's, and leave the keys of its noise there: the name of these.

    Bad input: it holds another run, or this one under way → `InputError`, nothing overwritten.
    """
    place, own = RunFolder.make(folder), _whole(folder, fingerprint)
    if place.fingerprint.exists() and storage.read_json(place.fingerprint) != own:
        raise errors.refuse("folder", str(folder), "to be empty or to hold this very run", "Choose another folder.")
    if place.checkpoint.exists():
        hint = "It holds this very run, under way or done: resume it, or choose another folder."
        raise errors.refuse("folder", str(folder), "to be empty", hint)
    # Its digests let anybody who knows all records but one test a guess at that one.
    storage.write_json(place.fingerprint, own)
    Ledger.open(place.journal).note({"place": place.path.stat().st_ino})  # before there is a key to be copied
    return noise_key.write(place.key, keys)


def check(folder: str | Path, fingerprint: Mapping[str, Any]) -> None:
    """Refuse to go on with anything else than the run in `folder` began with, naming what is another."""
    found = storage.read_json(RunFolder(Path(folder)).fingerprint)
    for part, value in _whole(folder, fingerprint).items():
        if not isinstance(found, dict) or found.get(part) != value:
            hint = "Going on would use the same noise twice. Bring back what it was, or begin anew."
            raise unmet("folder", None, f"the same {part} as the checkpoint was made with", "another", hint)


def charge(folder: str | Path, charged: Charge) -> None:
    """Write down what the run may cost, before its first step; or, where that stands, that it is taken up again.

    Bad input: a folder that is not where it was: two copies that go on share their noise.
    """
    place = RunFolder(Path(folder))
    ledger, here = Ledger.open(place.journal), place.path.stat().st_ino
    places = [note["place"] for note in ledger.notes() if "place" in note]
    if not places or places[-1] != here:
        raise errors.unmet(
            "folder",
            str(folder),
            "the folder to be where the run began",
            "a copy, or one that was moved to another disk",
            "If both go on they share their noise, and who sees both subtracts it. If this is the only one, say so: "
            f"bayesdp resume {folder} --moved.",
        )
    if ledger.charged(charged.run):
        ledger.resumed(charged.run, ledger.times_resumed(charged.run))
    else:
        ledger.charge(charged)


def moved(folder: str | Path) -> None:
    """Take the word of whoever moved the folder that no copy of it goes on elsewhere."""
    place = RunFolder(Path(folder))
    Ledger.existing(place.journal).note({"place": place.path.stat().st_ino, "moved": True})


def check_current(folder: str | Path, done: int, key: str | None) -> None:
    """Refuse a checkpoint that another process has gone on from since it was read."""
    place = RunFolder(Path(folder))
    now = read(folder, finished=True) if place.checkpoint.exists() else None
    if now is None or (now.done, now.key) != (done, key):
        hint = "Another process has gone on with it: look again."
        raise errors.refuse("folder", str(folder), "to be as it was when it was read", hint)


def write(folder: str | Path, reached: Checkpoint) -> None:
    """Everything in one file."""
    large: dict[str, Any] = {}
    note = {
        "version": VERSION,
        "done": reached.done,
        "seeded": reached.seeded,
        "key": reached.key,
        "snapshots": [_finite(asdict(one)) for one in reached.snapshots],
        "tallies": states.pack(reached.tallies, large),
    }
    arrays = {f"tally:{name}": value for name, value in large.items()}
    arrays |= {f"carry:{i}": leaf for i, leaf in enumerate(reached.carry)}
    arrays["members"] = reached.members
    arrays["note"] = np.frombuffer(json.dumps(note, allow_nan=False).encode(), np.uint8)
    storage.write_sealed(RunFolder(Path(folder)).checkpoint, arrays)


def read(folder: str | Path, *, finished: bool = False) -> Checkpoint:
    """What `write` wrote. A missing or foreign checkpoint gets `InputError`, and a finished one unless asked for."""
    arrays = storage.read_sealed(RunFolder(Path(folder)).checkpoint)
    with states.reading():
        note = json.loads(arrays["note"].tobytes())
        if note["version"] != VERSION:
            raise errors.refuse("checkpoint version", note["version"], f"to be {VERSION}")
        if note["key"] is None and not finished:
            raise errors.refuse("folder", str(folder), "to hold an unfinished run", "This one has finished.")
        stored = {name.removeprefix("tally:"): value for name, value in arrays.items() if name.startswith("tally:")}
        return Checkpoint(
            done=int(note["done"]),
            seeded=bool(note["seeded"]),
            key=None if note["key"] is None else str(note["key"]),
            members=arrays["members"],
            carry=[arrays[f"carry:{i}"] for i in range(sum(name.startswith("carry:") for name in arrays))],
            tallies=states.unpack(note["tallies"], stored),
            snapshots=tuple(Snapshot(**{**one, "norms": tuple(one["norms"])}) for one in _infinite(note["snapshots"])),
        )


def forget_key(folder: str | Path) -> None:
    """Wipe the key of the noise once it is not needed any more."""
    path = RunFolder(Path(folder)).checkpoint
    if path.exists():
        write(folder, dataclasses.replace(read(folder, finished=True), key=None))
    wipe(RunFolder(Path(folder)).key)


def _whole(folder: str | Path, fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """The fingerprint with the files that say what is to be done."""
    place = RunFolder(Path(folder))
    files = {"job": place.job, "file of the model": place.model_code}
    known = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()}
    return _plain({**fingerprint, **known})


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
