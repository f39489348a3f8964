"""Tables and figures: the frame around a chart, its legend, its caption and its data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayesdp.report.html.chart import Chart, Mark, drawings, legend
from bayesdp.report.html.markup import Html, el

ROWS = 21
"""How many rows of a long array a data table shows; the JSON has them all."""


def table(name: str, heads: Sequence[object], rows: Iterable[Sequence[object]], *, cards: bool = False) -> Html:
    """A table whose first cell in each row is its heading; it scrolls inside its own box where it is too wide.

    `cards`: on a phone every row becomes a block of "heading: value" lines. The roles say that it still is a table,
    which some browsers forget when it is laid out as blocks.
    """
    top = el("tr", [el("th", head, scope="col", role="columnheader") for head in heads], role="row")
    body = [el("tr", _cells(heads if cards else None, row), role="row") for row in rows]
    grid = el(
        "table",
        el("caption", name),
        el("thead", top, role="rowgroup"),
        el("tbody", body, role="rowgroup"),
        role="table",
        class_="cards-on-phone" if cards else None,
    )
    return el("div", grid, class_="scroll", tabindex="0", role="region", aria_label=name)


def figure(chart: Chart, entries: Sequence[tuple[Mark, object]], caption: Sequence[object], data: Html) -> Html:
    """A chart with its legend, what it says in words, and its data for those who cannot or will not see it."""
    return el(
        "figure",
        el("div", drawings(chart), class_="picture"),
        el("figcaption", legend(entries), el("p", *caption)),
        el("details", el("summary", f"{chart.title}: the data as a table"), data),
        id=chart.name,
    )


def some(length: int, most: int = ROWS) -> list[int]:
    """Places spread evenly over an array, both ends among them."""
    if length <= most:
        return list(range(length))
    return sorted({round(place * (length - 1) / (most - 1)) for place in range(most)})


def pairs(rows: Iterable[tuple[object, object]]) -> Html:
    """A list of terms and what they are."""
    return el("dl", [el("div", el("dt", term), el("dd", meaning)) for term, meaning in rows])


def _cells(heads: Sequence[object] | None, row: Sequence[object]) -> list[Html]:
    first, *rest = row
    above = [None] * len(rest) if heads is None else heads[1:]
    return [
        el("th", first, scope="row", role="rowheader"),
        *(el("td", one, role="cell", data_head=head) for head, one in zip(above, rest, strict=True)),
    ]
