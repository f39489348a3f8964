"""Plain values as JSON: strict, tagged with a format and a version, with a checksum of themselves where asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from bayesdp import errors
from bayesdp.storage.files import refused, replace

CHECKSUM = "sha256"


@contextmanager
def reading(what: str | Path) -> Iterator[None]:
    """Turn whatever a malformed file provokes into one clear `InputError`."""
    try:
        yield
    except errors.InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as problem:
        raise errors.unfit(str(what), "to be well-formed", f"something that does not fit: {problem!r}") from None


def write_json(path: Path, value: Any, *, private: bool = True) -> Path:
    """Strict JSON."""
    return replace(path, json.dumps(value, allow_nan=False, indent=1).encode(), private=private)


def read_json(path: Path) -> Any:
    """What `write_json` wrote; an unreadable file gets `InputError`."""
    try:
        return parsed(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise refused(path, "to be a readable JSON file", problem) from None


def parsed(content: bytes) -> Any:
    """Strict JSON: no NaN, no infinities, no name twice. Anything else: `ValueError` or `RecursionError`."""
    return json.loads(content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)


def write_tagged(
    path: Path, kind: str, version: int, values: Mapping[str, Any], *, private: bool = True, checked: bool = False
) -> Path:
    """A JSON object that names its `format` and `version`; `checked`: and its own checksum."""
    note = {"format": kind, "version": version, **values}
    if checked:
        note[CHECKSUM] = checksum(note)
    return write_json(path, note, private=private)


def read_tagged(path: Path, kind: str, version: int, *, checked: bool = False) -> dict[str, Any]:
    """What `write_tagged` wrote, without the two; a file of another format or version gets `InputError`.

    `checked`: so does one whose checksum is not that of its content.
    """
    found = read_json(path)
    values = untagged(found, kind, version, of=str(path))
    if checked and values.pop(CHECKSUM, None) != checksum({k: v for k, v in found.items() if k != CHECKSUM}):
        raise errors.unfit(repr(str(path)), "to be as bayesdp wrote it", "another checksum", "It is damaged.")
    return values


def untagged(found: object, kind: str, version: int, *, of: str, tag: str = "format") -> dict[str, Any]:
    """The rest of an object whose `tag` and version are these; of another kind or release: `InputError`."""
    if not isinstance(found, Mapping) or found.get(tag) != kind:
        got = found.get(tag) if isinstance(found, Mapping) else type(found).__name__
        raise errors.unfit(f"{tag} of {of}", f"to be {kind!r}", repr(got))
    if found.get("version") != version:
        hint = "Another release of bayesdp wrote it."
        raise errors.unfit(f"version of {of}", f"to be {version}", repr(found.get("version")), hint)
    return {name: value for name, value in found.items() if name not in (tag, "version")}


def checksum(value: Any) -> str:
    """The sha256 of plain values, whatever the order of names and the spaces between them."""
    return hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: Any) -> bytes:
    """One spelling of plain values."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found
