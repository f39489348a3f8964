"""HTML and SVG written so that nothing gets in unescaped: a plain `str` is text, only `Html` is markup."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

Child = "str | Html | None | Iterable[Child]"

VOID = frozenset({"meta", "link", "br", "hr", "img"})
"""Elements of HTML that have no end tag."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def el(name: str, /, *children: Any, **attributes: Any) -> Html:
    """The element `name` with these children and attributes.

    Children: text, which is escaped, `Html`, None, or iterables of them. Attributes: `class_` is class, `data_key` is
    data-key; True writes the name alone, False and None nothing.
    """
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(start if name in VOID else f"{start}{join(*children)}</{name}>")


def join(*children: Any, between: str = "") -> Html:
    """The children one after another."""
    return Html(html.escape(between).join(_flat(children)))


def script_json(document: Any, **attributes: Any) -> Html:
    """A `<script type="application/json">` that no text in the document can leave."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return el("script", Html(text), type="application/json", **attributes)


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def _flat(children: Iterable[Any]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        elif isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield html.escape(child, quote=False)
        else:
            yield from _flat(child)
