"""Where the files of a data set are: the folder given, `BAYESDP_DATA`, the user's cache, else their source."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesdp.data.download import DownloadError, Original, download, sha256_of
from bayesdp.errors import Argument, InputError, named, refuse, unmet

VARIABLE = "BAYESDP_DATA"


@dataclass(frozen=True)
class Places:
    """The folders to look in, in this order, and whether a file that is in none of them may be downloaded."""

    data_dir: str | os.PathLike[str] | None = None
    download: bool = True

    def folders(self) -> list[Path]:
        """Bad input: a `data_dir` or `BAYESDP_DATA` that is no folder gets `InputError`."""
        given: list[tuple[str, str | os.PathLike[str]]] = []
        if self.data_dir is not None:
            given.append(("data_dir", self.data_dir))
        if os.environ.get(VARIABLE):
            given.append((VARIABLE, os.environ[VARIABLE]))
        found = []
        for argument, folder in given:
            path = Path(folder).expanduser()
            if not path.is_dir():
                raise refuse(argument, str(folder), "to be a folder with data sets", "Make it, or leave it out.")
            found.append(path)
        return [*found, cache_folder()]

    def find(self, names: Sequence[str]) -> Path | None:
        """The first file of these names, any of them in the first folder before all of them in the second."""
        for folder in self.folders():
            for name in names:
                if (folder / name).is_file():
                    return folder / name
        return None

    def get(self, data_set: str, originals: Sequence[Original]) -> tuple[list[Path], str]:
        """The files, found or downloaded into the cache, and a sentence on whether they are the originals.

        Bad input: files that are not there and cannot be downloaded: `InputError` that says which to put where.
        """
        paths = [self.find(_names(original)) for original in originals]
        missing = [original for original, path in zip(originals, paths, strict=True) if path is None]
        if missing and not self.download:
            raise self._put(data_set, missing, "The download is switched off.")
        for original in missing:
            try:
                download(original, cache_folder() / original.path)
            except DownloadError as problem:
                raise self._put(data_set, missing, f"The download failed: {problem}.") from None
        there = [path or cache_folder() / original.path for path, original in zip(paths, originals, strict=True)]
        return there, _origin(there, originals)

    def _put(self, data_set: str, missing: Sequence[Original], reason: str) -> InputError:
        folders = self.folders()
        files = ", ".join(original.path for original in missing)
        sources = ", ".join(original.urls[0] for original in missing)
        where = " or ".join(repr(str(folder)) for folder in folders)
        unset = "" if os.environ.get(VARIABLE) else f" ({VARIABLE} is not set)"
        return unmet(
            "data",
            data_set,
            f"the files of {Argument('data', data_set)} in {where}{unset}",
            f"no {files}",
            f"{reason} Get {sources} and save as {files} in {str(folders[0])!r}, or in another folder and give "
            f"{named('data_dir')}.",
        )


def cache_folder() -> Path:
    """The user's cache: `XDG_CACHE_HOME` or `~/.cache`, `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows.

    Bad input: no home folder gets `InputError`.
    """
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData" / "Local") / "bayesdp" / "Cache"
        # The standard asks to ignore a path that is not absolute.
        given = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if given.is_absolute():
            return given / "bayesdp"
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "bayesdp"
    except RuntimeError:
        raise unmet(
            "data_dir",
            None,
            "a home folder for the cache",
            "none",
            f"Set {VARIABLE} or give {named('data_dir')}.",
        ) from None


def _names(original: Original) -> list[str]:
    """Where the file may be below a data folder: packed or unpacked, in one of its folders or directly."""
    files = dict.fromkeys((original.file, original.file.removesuffix(".gz")))
    return [f"{folder}/{file}" if folder else file for folder in (*original.folders, "") for file in files]


def _origin(paths: Sequence[Path], originals: Sequence[Original]) -> str:
    verdicts: dict[str, list[str]] = {}
    for path, original in zip(paths, originals, strict=True):
        if path.name != original.file:
            verdict = "unpacked, not checked"
        elif path.stat().st_size == original.size and sha256_of(path) == original.sha256:
            verdict = "the original, by sha256"
        else:
            verdict = "not the original, by sha256"
        verdicts.setdefault(verdict, []).append(path.name)
    return "; ".join(f"{', '.join(names)} ({verdict})" for verdict, names in verdicts.items())
