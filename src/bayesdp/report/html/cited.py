"""Numbers and texts of the page, each marked with where it stands in the JSON.

    <span data-key="report/guarantees/0/epsilon" data-round="up">2.004</span>

`Cited.loss(key)` and its siblings look the value up in the document, so that a number on the page cannot be another
than the one in the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bayesdp.report import items, rounding
from bayesdp.report.html.markup import Html, el


def step(name: str) -> str:
    """A name of the user's as one step of a key, escaped as in a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


class Cited:
    """The document and the ways of writing what stands in it. A key is a path: "derived/curve/most"."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def value(self, key: str) -> Any:
        """What stands at `key`; numbers written as "inf" stay so."""
        found: Any = self.document
        for word in key.split("/"):
            name = word.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found

    def number(self, key: str) -> float:
        """The number at `key`."""
        found = self.value(key)
        return math.inf if found == "inf" else float(found)

    def loss(self, key: str) -> Html:
        """An ε, rounded up; infinite is "no guarantee"."""
        return self._mark(key, "up", rounding.number(self.number(key), "up"))

    def least(self, key: str) -> Html:
        """An ε that is at least this, rounded down."""
        return self._mark(key, "down", rounding.number(self.number(key), "down"))

    def most(self, key: str) -> Html:
        """A probability in percent that is at most this, rounded up."""
        return self._mark(key, "up", rounding.percent(self.number(key), "up"))

    def share(self, key: str) -> Html:
        """A share in percent that is at least this, rounded down."""
        return self._mark(key, "down", rounding.percent(self.number(key), "down"))

    def small(self, key: str) -> Html:
        """A small probability as a power of ten, rounded up."""
        return self._mark(key, "up", rounding.power(self.number(key)))

    def near(self, key: str) -> Html:
        """A setting or measurement, to the nearest."""
        return self._mark(key, "near", rounding.number(self.number(key), "near"))

    def percent(self, key: str) -> Html:
        """A measurement in percent, to the nearest."""
        return self._mark(key, "near", rounding.percent(self.number(key), "near", 4))

    def count(self, key: str) -> Html:
        """A whole number."""
        return self._mark(key, "near", rounding.count(self.number(key)))

    def text(self, key: str) -> Html:
        """A text, as it is."""
        return el("span", str(self.value(key)), data_key=key, data_round="text")

    def sentence(self, key: str) -> Html:
        """A text whose codes, such as H12, lead to what they stand for."""
        parts = [
            el("a", one, href=f"#{items.anchor(one)}") if code else one
            for one, code in items.pieces(str(self.value(key)))
        ]
        return el("span", parts, data_key=key, data_round="text")

    def _mark(self, key: str, how: str, shown: str) -> Html:
        return el("span", shown, class_="num", data_key=key, data_round=how)
