"""A file from its original source: checked by size and sha256 before it gets its name.

The bytes go to a temporary file beside the destination, which is renamed when all is right: whoever finds the
destination finds the whole file, and an interrupted or wrong download leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bayesdp.errors import InputError, named

_CHUNK = 1 << 18
_SILENCE = 30.0
"""Seconds without a byte after which a source is given up."""


@dataclass(frozen=True)
class Original:
    """A published file: where it belongs below a data folder, what it is, and where it can be had.

    `folders` are the places to look in; the first is where a download goes.
    """

    folders: tuple[str, ...]
    file: str
    size: int
    sha256: str
    urls: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"{self.folders[0]}/{self.file}"


class DownloadError(Exception):
    """Why a file could not be had, in words."""


def download(original: Original, destination: Path) -> None:
    """Write the file to `destination` from the first source that has it, with a progress bar on standard error.

    Raises `DownloadError` if no source has the right file, saying what each answered, and `InputError` if
    `destination` cannot be written.
    """
    problems = []
    with _unwritable(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{original.file}.", suffix=".part")
        os.close(handle)
    part = Path(name)
    try:
        for url in original.urls:
            try:
                _fetch(url, original, part)
            except DownloadError as problem:
                problems.append(str(problem))
                continue
            with _unwritable(destination):
                part.chmod(0o644)
                part.replace(destination)
            return
        raise DownloadError("; ".join(problems))
    finally:
        part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(url: str, original: Original, part: Path) -> None:
    """The bytes behind `url` into `part`, whatever it held before."""
    digest = hashlib.sha256()
    got = 0
    request = urllib.request.Request(url, headers={"User-Agent": "bayesdp"})
    with _unwritable(part):
        file = part.open("wb")
    try:
        with file, urllib.request.urlopen(request, timeout=_SILENCE) as answer, _bar(original) as advance:
            # One byte beyond the size is enough to know that this is another file.
            while got <= original.size and (chunk := answer.read(min(_CHUNK, original.size + 1 - got))):
                digest.update(chunk)
                got += len(chunk)
                with _unwritable(part):
                    file.write(chunk)
                advance(len(chunk))
            with _unwritable(part):
                file.flush()
                os.fsync(file.fileno())
    except urllib.error.HTTPError as problem:
        with problem:
            raise DownloadError(f"{url} answered {problem.code} {problem.reason}") from None
    except urllib.error.URLError as problem:
        raise DownloadError(f"{url} was not reached ({problem.reason})") from None
    except (OSError, http.client.HTTPException) as problem:
        raise DownloadError(f"{url} broke off after {got:,} bytes ({problem or type(problem).__name__})") from None
    if got != original.size:
        more = "more than " if got > original.size else ""
        raise DownloadError(f"{url} gave {more}{min(got, original.size):,} bytes instead of {original.size:,}")
    if digest.hexdigest() != original.sha256:
        raise DownloadError(
            f"{url} gave another file: its sha256 is {digest.hexdigest()}, that of the original {original.sha256}"
        )


@contextlib.contextmanager
def _bar(original: Original) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"Downloading {original.file}", total=original.size)
        yield lambda count: progress.advance(task, count)


@contextlib.contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"Expected {str(path.parent)!r} to be a folder that can be written to, got: {problem.strerror}. "
            f"Set XDG_CACHE_HOME to another cache folder, or put the files into a folder and give {named('data_dir')}.",
            argument="data_dir",
            value=str(path.parent),
            expected="to be a folder that can be written to",
        ) from None
