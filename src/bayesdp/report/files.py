"""Writing a report and reading it back."""

from __future__ import annotations

import json
from pathlib import Path

from bayesdp import errors, storage
from bayesdp.report.derived import FORMAT, VERSION, document
from bayesdp.report.html.page import page
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
    return storage.replace(target, text.encode())


def read(path: str | Path) -> Report:
    """The report that `write` wrote as JSON.

    Bad input: an unreadable file, another format or version, or values that make no report get `InputError`.
    """
    return Report.from_dict(storage.read_tagged(Path(path), FORMAT, VERSION).get("report", {}))
