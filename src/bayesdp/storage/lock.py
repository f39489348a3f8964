"""One process at a time: a lock that the system takes back when its holder dies, so that none is ever left behind.

POSIX only (`flock`). Where there is none, as on Windows, nothing is locked.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bayesdp import errors
from bayesdp.storage.files import refused

if sys.platform != "win32":
    import fcntl

_held: dict[tuple[int, int, int], int] = {}
"""How often a thread of this process holds a file, by device, inode and thread."""

_guard = threading.Lock()


@contextmanager
def locked(path: Path, *, wait: bool = False, hint: str = "Wait until the other is done.") -> Iterator[None]:
    """Hold the folder or file at `path`, a file being made where there is none; again and again within one thread.

    `wait`: until another process lets go, else it is refused: `InputError` with a `hint`, as is a path that cannot be
    written to.
    """
    handle = _opened(path)
    try:
        about = os.fstat(handle)
        key = (about.st_dev, about.st_ino, threading.get_ident())
        with _guard:
            nested = key in _held
        if not nested:
            _take(handle, path, wait, hint)
        with _guard:
            _held[key] = _held.get(key, 0) + 1
        try:
            yield
        finally:
            with _guard:
                _held[key] -= 1
                if not _held[key]:
                    del _held[key]
    finally:
        os.close(handle)  # and the lock with it


def _opened(path: Path) -> int:
    how = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        return os.open(path, how | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise refused(path, "to be writable", problem) from None


def _take(handle: int, path: Path, wait: bool, hint: str) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise errors.unfit(repr(str(path)), "to be free", "one that another process is working on", hint) from None
    except OSError as problem:  # a file system without locks
        raise refused(path, "to be on a file system that knows locks", problem) from None
