"""Writing a report and reading it back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from bayesdp import errors
from bayesdp.report.derived import FORMAT, VERSION, document
from bayesdp.report.page import page
from bayesdp.report.schema import Report


def write(report: Report, path: str | Path) -> Path:
    """Write `report` to `path`: the page for ".html" or ".htm", the JSON document for ".json".

    Whole or not at all: a reader never sees half a file, and an interrupted write leaves the old one.
    Bad input: another ending, or a path that cannot be written to, gets `InputError`.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending in (".html", ".htm"):
        text = page(report)
    elif ending == ".json":
        text = json.dumps(document(report), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
    else:
        raise errors.refuse("path", str(path), "to end in .html or .json")
    return replace(target, text.encode())


def replace(path: Path, content: bytes, *, private: bool = False) -> Path:
    """Write beside and rename, so that nobody ever sees half a file; `private`: readable by its owner only.

    Bad input: a path that cannot be written to gets `InputError`, and what was there stays.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.unlink(missing_ok=True)  # one that a crash left may be readable by others
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        beside.replace(path)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise errors.refuse("path", str(path), "to be writable", str(problem)) from None
    return path


def read(path: str | Path) -> Report:
    """The report that `write` wrote as JSON.

    Bad input: an unreadable file, another format or version, or values that make no report get `InputError`.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise errors.refuse("path", str(path), "to be a readable report in JSON", str(problem)) from None
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        raise errors.refuse("path", str(path), f"to be a JSON file of format {FORMAT!r}")
    if found.get("version") != VERSION:
        raise errors.refuse("version", found.get("version"), f"to be {VERSION}", "Another release wrote it.")
    return Report.from_dict(found.get("report", {}))
