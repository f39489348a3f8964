"""Cells of a CSV that a spreadsheet must not take for formulas: `=cmd|…` would run there.

A text that begins like a formula gets an apostrophe before it, as does one that begins with an apostrophe: so that what
was written is what is read. Numbers are numbers.
"""

from __future__ import annotations

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "'")


def escaped(cell: str) -> str:
    """A cell as it is to be written."""
    return f"'{cell}" if cell.startswith(_BEGINNINGS) and not _number(cell) else cell


def unescaped(cell: str) -> str:
    """The inverse of `escaped`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_BEGINNINGS) else cell


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
