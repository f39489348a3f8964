"""The titles of docs/reference and docs/errata by code; run as a program it writes items.txt anew."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS, KEPT = ROOT / "docs", ROOT / "src" / "bayesdp" / "report" / "items.txt"
HEADING = re.compile(r'^#+ <a id="[^"]+"></a>(.*)$', re.M)


def found() -> dict[str, str]:
    """Code → title."""
    titles = {}
    for page in sorted((DOCS / "reference").glob("*.md")):
        for heading in HEADING.findall(page.read_text(encoding="utf-8")):
            code, _, title = heading.partition(" ")
            titles[code.rstrip(".:")] = title
    for heading in HEADING.findall((DOCS / "errata.md").read_text(encoding="utf-8")):
        number, title = re.match(r"(\w+) \([^:]*\): (.*)", heading).groups()
        titles[f"ERR {number}"] = title
    return titles


if __name__ == "__main__":
    KEPT.write_text("".join(f"{code}\t{title}\n" for code, title in sorted(found().items())), encoding="utf-8")
