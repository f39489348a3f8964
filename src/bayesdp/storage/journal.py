"""Lines that are only ever added: each is on the disk before anybody acts on it, and holds the checksum of all before.

    line n        {"n": n, "before": checksum of line n−1, "value": …, "sha256": checksum of this line}
    FILE.head     how many lines there are, and the checksum of the last: written after each

What is noticed, and named: an edited line, a line taken out or put in, lines cut off at the end (the head says how many
there were), a head of another file. What a crash can leave is one line of which the head does not know yet: whole, it
counts; half, it was never acted on and is cut off. A file *and* its head put back together from a copy look like
what they are a copy of: who keeps the checksum of a line elsewhere (`Journal.has`) notices that too.

An own format and no data base: an entry is a line that a person can read and check with any tool, nothing is ever
overwritten in place, no second file holds half of the truth until it is merged (SQLite's write-ahead log), and
copying the file is a backup.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bayesdp import errors
from bayesdp.storage.files import content_of, refused, replace, sync_folder
from bayesdp.storage.lock import locked
from bayesdp.storage.values import canonical, checksum, parsed

FIRST = "0" * 64
"""What stands before the first line."""


def names_of(path: Path) -> tuple[str, ...]:
    """The names of all files that belong to the journal at `path`."""
    return path.name, f"{path.name}.head"


class Line(NamedTuple):
    """A line: its number from 0, its checksum, and what it says."""

    number: int
    checksum: str
    value: Any


@dataclass(frozen=True)
class Journal:
    """The journal in the file at `path`, which need not be there yet."""

    path: Path

    @property
    def _head(self) -> Path:
        return self.path.with_name(f"{self.path.name}.head")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else adds a line meanwhile: waits for whoever does."""
        with locked(self.path, wait=True):  # which is never replaced by another
            yield

    def lines(self) -> tuple[Line, ...]:
        """All lines, checked. Bad input: whatever the module says is noticed gets `InputError` that names it."""
        return self._read()[0]

    def add(self, value: Any) -> Line:
        """Add a line; when this returns it survives a loss of power. Bad input: a damaged file, a full disk."""
        with self.locked():
            known, end = self._read()
            before = known[-1].checksum if known else FIRST
            note = {"n": len(known), "before": before, "value": value}
            line = Line(len(known), checksum(note), value)
            text = canonical({**note, "sha256": line.checksum}) + b"\n"
            self._append(text, end)
            replace(self._head, json.dumps({"lines": line.number + 1, "sha256": line.checksum}).encode())
            return line

    def has(self, line: tuple[int, str]) -> bool:
        """Whether the line of this number still has this checksum: False after a rollback, or for another file."""
        number, known = line
        lines = self.lines()
        return number < len(lines) and lines[number].checksum == known

    def _append(self, text: bytes, end: int) -> None:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                os.ftruncate(handle, end)  # half a line that a crash left
                os.lseek(handle, end, os.SEEK_SET)
                if os.write(handle, text) != len(text):
                    os.ftruncate(handle, end)
                    raise OSError("the disk is full")
                os.fsync(handle)
            finally:
                os.close(handle)
            if not end:  # the name may be as new as the first line
                sync_folder(self.path.parent)
        except OSError as problem:
            raise refused(self.path, "to be writable", problem) from None

    def _read(self) -> tuple[tuple[Line, ...], int]:
        """All lines, and where the last whole one ends."""
        content = content_of(self.path, "to be a readable journal") if self.path.exists() else b""
        whole, newline, half = content.rpartition(b"\n")
        lines, before = [], FIRST
        for number, text in enumerate(whole.split(b"\n") if newline else ()):
            line = self._line(number, text, before)
            lines.append(line)
            before = line.checksum
        self._check_end(lines, bool(half))
        return tuple(lines), len(content) - len(half)

    def _line(self, number: int, text: bytes, before: str) -> Line:
        try:
            found = parsed(text)
            own = {"n": found["n"], "before": found["before"], "value": found["value"]}
            good = found["sha256"] == checksum(own) and text == canonical(found) and len(found) == 4
        except (ValueError, KeyError, TypeError, RecursionError):
            good, found = False, {}
        if not good:
            raise self._damaged(f"line {number + 1} to be as it was written", "one that was changed")
        if found["n"] != number or found["before"] != before:
            raise self._damaged(f"line {number + 1} to follow the one before it", "lines taken out or put in")
        return Line(number, found["sha256"], found["value"])

    def _check_end(self, lines: list[Line], half: bool) -> None:
        if not self._head.exists():
            # A crash between the first line and its head leaves one line, or half of it.
            if len(lines) > 1:
                raise self._damaged(f"its {self._head.name} beside it", "none")
            return
        try:
            head = parsed(content_of(self._head, "to be readable"))
            count, last = head["lines"], head["sha256"]
            if type(count) is not int or count < 1 or not isinstance(last, str):
                raise ValueError(count)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damaged(f"its {self._head.name} to say how many lines there are", "something else") from None
        if len(lines) < count:
            got = f"{len(lines)}{' and half of one' if half else ''}: lines were cut off, or an older copy was put back"
            raise self._damaged(f"{count} lines or more", got)
        if lines[count - 1].checksum != last:
            raise self._damaged(f"line {count} to be the one that {self._head.name} knows", "that of another file")
        if len(lines) > count + 1:
            raise self._damaged(
                f"{count} lines, as {self._head.name} says", f"{len(lines)}: an older head was put back"
            )

    def _damaged(self, expected: str, got: str) -> errors.InputError:
        return errors.unmet(
            "path", str(self.path), f"{str(self.path)!r} with {expected}", got, "It cannot be relied on."
        )
