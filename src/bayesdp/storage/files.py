"""Bytes on a disk: a file is there whole or not at all, for its owner only, and synced before anybody relies on it.

    replace     beside, under a name that nobody can guess; synced; renamed; the folder synced
    wipe        overwritten, synced, and only then unlinked

What a journalling or copy-on-write file system, a snapshot, a backup or the wear levelling of a flash disk keeps of
overwritten bytes is beyond any program: who must withstand somebody with the raw disk encrypts it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

from bayesdp import errors

PART = ".part"
"""How names end that a file has before it is whole."""

_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.part")


def replace(path: Path, content: bytes, *, private: bool = True) -> Path:
    """Write beside and rename, so that nobody ever sees half a file; `private`: readable by its owner only.

    When this returns, file and name survive a loss of power. Bad input: a path that cannot be written to gets
    `InputError`, and what was there stays.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
    try:
        _write_new(beside, content, 0o600 if private else 0o666)
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as problem:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise refused(path, "to be writable", problem) from None
    return path


def make_folder(path: str | Path, argument: str = "folder", *, private: bool = False) -> Path:
    """The folder, made where it is not there, then for its owner only if `private`. Bad input: one that cannot be."""
    folder = Path(path)
    try:
        made = not folder.is_dir()
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700 if private else 0o777, exist_ok=True)
        if made:
            sync_folder(folder.parent)
    except OSError as problem:
        raise errors.refuse(argument, str(path), "to be a folder that can be made", str(problem)) from None
    return folder


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a loss of power, where the system can promise that."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot sync a folder
            os.fsync(handle)
    finally:
        os.close(handle)


def wipe(path: Path) -> None:
    """Overwrite a secret where it stands, sync that, and unlink the file; nothing where there is none.

    See the module for what may be left of it. Bad input: a file that cannot be overwritten.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise refused(path, "to be writable, so that it can be wiped", problem) from None
    try:
        length = os.fstat(handle).st_size
        for filling in (secrets.token_bytes(length), bytes(length)):
            os.lseek(handle, 0, os.SEEK_SET)
            _write_all(handle, filling)
            os.fsync(handle)
    except OSError as problem:
        raise refused(path, "to be writable, so that it can be wiped", problem) from None
    finally:
        os.close(handle)
    path.unlink()
    sync_folder(path.parent)


def leftovers(folder: Path) -> list[Path]:
    """What interrupted writes have left in a folder."""
    return [path for path in folder.iterdir() if _LEFTOVER.fullmatch(path.name)] if folder.is_dir() else []


def sweep(folder: Path) -> None:
    """Take away what interrupted writes have left: for who holds the folder's lock."""
    for path in leftovers(folder):
        path.unlink(missing_ok=True)


def content_of(path: Path, expected: str) -> bytes:
    """All bytes of a file. Bad input: one that cannot be read."""
    try:
        return path.read_bytes()
    except OSError as problem:
        raise refused(path, expected, problem) from None


def refused(path: Path, expected: str, problem: Exception | str) -> errors.InputError:
    """With the path as it is: of a long one the end says which file."""
    return errors.refuse("path", str(path), expected, str(problem), got=str(errors.Argument("path", str(path))))


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """A file that was not there, synced."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        _write_all(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
