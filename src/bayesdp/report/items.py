"""What codes such as H12 in a report's sentences stand for: the titles of docs/reference and docs/errata.

"(H3, H12)" in a sentence  →  two links on the page, to a list of these titles at its end
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

_GROUP = re.compile(r"\([^()]*\)")
"""Codes count inside of parentheses only: elsewhere a letter and a number may be anybody's word."""
CODE = re.compile(r"(?<![\w-])(?:(?:[B-FHJ-MS]|I-)[0-9]{1,2}[a-z]?|ERR [0-9]+[a-z]?)(?!\w)")


@cache
def titles() -> Mapping[str, str]:
    """Code → title."""
    text = resources.files("bayesdp.report").joinpath("items.txt").read_text(encoding="utf-8")
    return dict(line.split("\t", 1) for line in text.splitlines() if line)


def pieces(sentence: str) -> Iterator[tuple[str, bool]]:
    """The sentence cut into parts, each with whether it is a code that has a title."""
    at = 0
    for group in _GROUP.finditer(sentence):
        for code in CODE.finditer(sentence, group.start(), group.end()):
            if code.group() in titles():
                yield sentence[at : code.start()], False
                yield code.group(), True
                at = code.end()
    yield sentence[at:], False


def named(document: Any) -> list[dict[str, str]]:
    """The codes that occur in the sentences of plain values, with their titles, in order."""
    found = {part for one in _texts(document) for part, code in pieces(one) if code}
    return [{"code": code, "title": titles()[code]} for code in sorted(found, key=_order)]


def anchor(code: str) -> str:
    """The id of a code's line on the page."""
    return f"item-{code.lower().replace(' ', '-')}"


def _order(code: str) -> tuple[str, int, str]:
    letters, number, rest = re.fullmatch(r"([A-Z]+[- ]?)(\d+)(\w*)", code).groups()  # type: ignore[union-attr]
    return letters, int(number), rest


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for one in document.values():
            yield from _texts(one)
    elif isinstance(document, list | tuple):
        for one in document:
            yield from _texts(one)
