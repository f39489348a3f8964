"""A disk that forgets what was not synced: what a loss of power would leave, after every sync of a program."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

View = dict[str, bytes]
"""Files by their path below the root."""


class Disk:
    """Watches `root`: `states` are what is left of it if the power fails just after each sync.

    Twice each: with the names that were synced, and with those that are there, which a file system may have written
    earlier. Content that was not synced is lost: the file is empty.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.states = root, []
        self._names: dict[str, dict[str, int]] = {}
        self._contents: dict[int, bytes] = {}
        self._real = os.fsync
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, handle: int) -> None:
        self._real(handle)
        about, path = os.fstat(handle), os.readlink(f"/proc/self/fd/{handle}")
        if stat.S_ISDIR(about.st_mode):
            self._names[path] = self._there(path)
        else:
            self._contents[about.st_ino] = Path(path).read_bytes()
        folders = [str(self.root), *(str(one) for one in self.root.rglob("*") if one.is_dir())]
        for names in (self._names, {folder: self._there(folder) for folder in folders}):
            view = {
                os.path.relpath(os.path.join(folder, name), self.root): self._contents.get(inode, b"")
                for folder, inside in names.items()
                for name, inode in inside.items()
                if Path(folder).is_relative_to(self.root)
            }
            if view not in self.states[-2:]:
                self.states.append(view)

    @staticmethod
    def _there(folder: str) -> dict[str, int]:
        with os.scandir(folder) as inside:
            return {one.name: one.inode() for one in inside if one.is_file(follow_symlinks=False)}

    def restore(self, view: View) -> None:
        """Put `root` in this state: the same folders, other files."""
        for path in [one for one in self.root.rglob("*") if one.is_file()]:
            path.unlink()
        for name, content in view.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
