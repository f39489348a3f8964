"""One file with the checksum of each file of a folder: no file is believed for itself alone.

    checksums.json     {"files": {"plan.json": sha256, …}, "sha256": of the manifest itself}

It notices accidents: a flipped bit, half a copy, files of two runs side by side, an edit by hand. It is no signature:
who can write to the folder can write the manifest too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from bayesdp import errors
from bayesdp.storage.files import content_of
from bayesdp.storage.values import read_tagged, write_tagged

NAME = "checksums.json"
FORMAT, VERSION = "bayesdp/checksums", 1

BUNDLE, BUNDLE_FORMAT = "manifest.json", "bayesdp/bundle"
"""What a published bundle has in its place, with the checksums under "sha256"."""

_CHANGED = "It was changed or damaged since it was written: nothing in this folder can be relied on."


def seal(folder: Path, names: Iterable[str]) -> None:
    """Write down the checksums of these files as they are now; those of other files stay. Files must be there."""
    known = _read(folder) if (folder / NAME).exists() else {}
    known |= {name: _digest(folder / name) for name in names}
    write_tagged(folder / NAME, FORMAT, VERSION, {"files": dict(sorted(known.items()))}, checked=True)


def check(path: Path) -> Path:
    """`path` if it is the file that its folder's manifest lists. Bad input: no manifest, or another file."""
    if not any((path.parent / name).is_file() for name in (NAME, BUNDLE)):
        hint = "It is half a copy, or of an older release: make the run anew."
        raise errors.unfit(repr(str(path.parent)), f"to have a {NAME}", "none", hint)
    known = _read(path.parent).get(path.name)
    if known is None:
        raise errors.unfit(repr(str(path)), f"to be listed in {NAME}", "a file that is not")
    if _digest(path) != known:
        raise errors.unfit(repr(str(path)), f"to have the checksum that {NAME} says", "another", _CHANGED)
    return path


def lists(path: Path) -> bool:
    """Whether the manifest beside a file knows it. Bad input: a damaged manifest."""
    return (path.parent / NAME).is_file() and path.name in _read(path.parent)


def listed(folder: Path) -> tuple[str, ...]:
    """The names of all files that a folder's manifest lists. Bad input: a folder without one, or a damaged one."""
    return tuple(_read(folder))


def _read(folder: Path) -> dict[str, str]:
    if (folder / NAME).exists() or not (folder / BUNDLE).exists():
        found = read_tagged(folder / NAME, FORMAT, VERSION, checked=True).get("files")
    else:
        found = read_tagged(folder / BUNDLE, BUNDLE_FORMAT, 1).get("sha256")
    if not isinstance(found, dict):
        raise errors.unfit(repr(str(folder / NAME)), "to list files", type(found).__name__)
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(content_of(path, "to be a readable file")).hexdigest()
