"""Charts as inline SVG: a few marks on two axes, drawn once wide and once narrow.

Text in an SVG shrinks with it, so a phone gets a drawing of its own (CSS shows one of the two). Colours and dashes
come from the style sheet by the mark's `role`, so that light, dark and paper differ; a dash or a fill tells apart
what colour alone would not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bayesdp.report.html.axis import Axis, Names
from bayesdp.report.html.markup import Html, el, join

WIDE, NARROW = (640, 320), (340, 270)
"""Width and height in CSS pixels."""

_TOP, _BOTTOM, _RIGHT = 26, 40, 14
_DIGIT = 7.2
"""The width of a digit in the charts' type, about."""

_LETTER = 8.2
"""The width of a letter of a name, in words with many wide ones."""

_ROW = 24
"""The height of a row with a name."""

_NEAR = 0.7
"""Points closer together than this many pixels are drawn as one."""


@dataclass(frozen=True)
class Line:
    """y over x; where y is infinite or None the line has a gap. `step`: between points the value of the next holds."""

    role: str
    x: Sequence[float]
    y: Sequence[float | None]
    step: bool = False


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    role: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Bars:
    """One bar from each edge to the next; `outline` draws their skyline over others instead of filling."""

    role: str
    edges: Sequence[float]
    heights: Sequence[float]
    outline: bool = False


@dataclass(frozen=True)
class Across:
    """A straight line across the chart: at a height, or upright."""

    role: str
    at: float
    upright: bool = False


@dataclass(frozen=True)
class Whiskers:
    """A dot at each of `middle`, in the row of the same place, and a line from `low` to `high` where there are both.

    `shift` moves them within the row, in pixels, so that two can be told apart; `open` draws rings for dots.
    """

    role: str
    rows: Sequence[float]
    middle: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    shift: float = 0.0
    open: bool = False


Mark = Line | Band | Bars | Across | Whiskers


@dataclass(frozen=True)
class Chart:
    """What is drawn. `name` is unique on the page; `about` is the text alternative; `y` may be a list of names."""

    name: str
    title: str
    about: Html
    x: Axis
    y: Axis | Names
    marks: tuple[Mark, ...]


def drawings(chart: Chart) -> Html:
    """The chart twice: CSS shows the one that fits. Rows with names are as many as there are, one below the other."""
    tall = _TOP + _BOTTOM + _ROW * len(chart.y.names) if isinstance(chart.y, Names) else None
    return join(
        *(draw(chart, width, tall or height, size) for (width, height), size in ((WIDE, "wide"), (NARROW, "narrow")))
    )


def draw(chart: Chart, width: int, height: int, size: str) -> Html:
    """The chart as one `<svg role="img">` with title and description; marks outside of the axes are cut off."""
    name = f"{chart.name}-{size}"
    frame = _Frame(chart.x, chart.y, width, height)
    clip = el(
        "clipPath",
        el("rect", x=_f(frame.left - 4), y=_f(frame.top - 4), width=_f(frame.w + 8), height=_f(frame.h + 8)),
        id=f"{name}-clip",
    )
    return el(
        "svg",
        el("title", chart.title, id=f"{name}-title"),
        el("desc", chart.about, id=f"{name}-desc"),
        el("defs", clip),
        _axes(frame),
        el("g", [_mark(frame, mark) for mark in chart.marks], clip_path=f"url(#{name}-clip)"),
        class_=f"chart {size}",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )


def swatch(mark: Mark) -> Html:
    """The sample of a mark that stands in a legend."""
    body = {
        Line: lambda: el("path", d="M1 7H27", class_=f"line {mark.role}"),
        Across: lambda: el(
            "path", d="M14 1V13" if getattr(mark, "upright", False) else "M1 7H27", class_=f"line {mark.role}"
        ),
        Band: lambda: el("rect", x=1, y=2, width=26, height=10, class_=f"band {mark.role}"),
        Bars: lambda: (
            el("path", d="M1 12V3H27V12", class_=f"skyline {mark.role}")
            if isinstance(mark, Bars) and mark.outline
            else el("rect", x=1, y=2, width=26, height=10, class_=f"bar {mark.role}")
        ),
        Whiskers: lambda: el("g", _whisker(1, 14, 27, 7, mark), class_=f"whisker {mark.role}"),
    }[type(mark)]()
    return el("svg", body, class_="swatch", viewBox="0 0 28 14", width=28, height=14, aria_hidden="true")


def legend(entries: Iterable[tuple[Mark, object]]) -> Html:
    """A list of samples and what they stand for."""
    items = [el("li", swatch(mark), el("span", words)) for mark, words in entries]
    return el("ul", items, class_="legend")


class _Frame:
    """Where the axes lie, and where on the page a point of the data is."""

    def __init__(self, x: Axis, y: Axis | Names, width: int, height: int) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height
        self.top, self.h = _TOP, height - _TOP - _BOTTOM
        named = isinstance(y, Names)
        self.rows = y.ticks(int(0.45 * width / _LETTER) if named else max(2, self.h // 44))
        self.left = 10 + (_LETTER if named else _DIGIT) * max((len(text) for _, text in self.rows), default=1)
        self.w = width - self.left - _RIGHT
        self.columns = x.ticks(max(4 if named else 2, int(self.w // 70)))

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.across(x), self.up(y)

    def across(self, x: float) -> float:
        return self.left + self.w * self.x.place(x)

    def up(self, y: float) -> float:
        return self.top + self.h * (1 - self.y.place(y))


def _axes(frame: _Frame) -> Html:
    bottom = frame.top + frame.h
    rows = [
        (
            el("path", d=f"M{_f(frame.left)} {_f(frame.up(value))}h{_f(frame.w)}", class_="grid"),
            el("text", text, x=_f(frame.left - 6), y=_f(frame.up(value) + 4), text_anchor="end"),
        )
        for value, text in frame.rows
    ]
    columns = [
        (
            el("path", d=f"M{_f(frame.across(value))} {_f(bottom)}v5", class_="axis"),
            el("text", text, x=_f(frame.across(value)), y=_f(bottom + 18), text_anchor=_anchor(frame, value, text)),
        )
        for value, text in frame.columns
    ]
    baseline = el("path", d=f"M{_f(frame.left)} {_f(bottom)}h{_f(frame.w)}", class_="axis")
    names = (
        el("text", frame.y.label, x=4, y=13, class_="name"),
        el("text", frame.x.label, x=_f(frame.width - _RIGHT), y=frame.height - 5, class_="name", text_anchor="end"),
    )
    return join(
        el("g", rows, columns, baseline, class_="ticks", aria_hidden="true"), el("g", names, aria_hidden="true")
    )


def _anchor(frame: _Frame, value: float, text: str) -> str:
    """A tick at the right edge must not run out of the picture."""
    return "end" if frame.across(value) + _DIGIT * len(text) / 2 > frame.width else "middle"


def _mark(frame: _Frame, mark: Mark) -> Html:
    if isinstance(mark, Line):
        runs = _runs(frame, mark)
        lines = " ".join(_path(run) for run in runs if len(run) > 1)
        # A single point between gaps has no line to be on.
        dots = [el("circle", cx=_f(run[0][0]), cy=_f(run[0][1]), r=4) for run in runs if len(run) == 1]
        return join(
            el("path", d=lines, class_=f"line {mark.role}") if lines else None,
            el("g", dots, class_=f"dot {mark.role}") if dots else None,
        )
    if isinstance(mark, Band):
        over = _thin([frame.at(x, y) for x, y in zip(mark.x, mark.high, strict=True)])
        back = _thin([frame.at(x, y) for x, y in zip(mark.x, mark.low, strict=True)])[::-1]
        return el("path", d=f"{_path(over + back)}Z", class_=f"band {mark.role}")
    if isinstance(mark, Bars):
        return _bars(frame, mark)
    if isinstance(mark, Whiskers):
        return _whiskers(frame, mark)
    if mark.upright:
        return el("path", d=f"M{_f(frame.across(mark.at))} {_f(frame.top)}v{_f(frame.h)}", class_=f"line {mark.role}")
    return el("path", d=f"M{_f(frame.left)} {_f(frame.up(mark.at))}h{_f(frame.w)}", class_=f"line {mark.role}")


def _bars(frame: _Frame, mark: Bars) -> Html:
    sides = list(zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True))
    if mark.outline:
        points = [frame.at(mark.edges[0], frame.y.low)]
        for low, high, height in sides:
            points += [frame.at(low, height), frame.at(high, height)]
        points.append(frame.at(mark.edges[-1], frame.y.low))
        return el("path", d=_path(points), class_=f"skyline {mark.role}")
    floor = frame.up(frame.y.low)
    rects = [
        el(
            "rect",
            x=_f(frame.across(low) + 0.5),
            y=_f(frame.up(height)),
            width=_f(max(frame.across(high) - frame.across(low) - 1, 0.5)),
            height=_f(floor - frame.up(height)),
        )
        for low, high, height in sides
        if height > 0
    ]
    return el("g", rects, class_=f"bar {mark.role}")


def _whiskers(frame: _Frame, mark: Whiskers) -> Html:
    parts = []
    for row, middle, low, high in zip(mark.rows, mark.middle, mark.low, mark.high, strict=True):
        if middle is None:
            continue
        ends = (frame.across(middle),) * 2 if low is None or high is None else (frame.across(low), frame.across(high))
        parts.append(_whisker(ends[0], frame.across(middle), ends[1], frame.up(row) + mark.shift, mark))
    return el("g", parts, class_=f"whisker {mark.role}")


def _whisker(low: float, middle: float, high: float, y: float, mark: Mark) -> Html:
    ring = isinstance(mark, Whiskers) and mark.open
    line = el("path", d=f"M{_f(low)} {_f(y)}H{_f(high)}") if high > low else None
    return join(line, el("circle", cx=_f(middle), cy=_f(y), r=4, class_="open" if ring else None))


def _runs(frame: _Frame, mark: Line) -> list[list[tuple[float, float]]]:
    """The line in pixels, cut where a value is missing."""
    runs: list[list[tuple[float, float]]] = [[]]
    before: float | None = None
    for x, y in zip(mark.x, mark.y, strict=True):
        if y is None or not math.isfinite(y):
            if runs[-1]:
                runs.append([])
            before = x
            continue
        if mark.step and before is not None:
            runs[-1].append(frame.at(before, y))
        runs[-1].append(frame.at(x, y))
        before = x
    return [_thin(run) for run in runs if run]


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without points that no eye could tell from the one before; the last is kept."""
    kept: list[tuple[float, float]] = []
    for place, point in enumerate(points):
        far = not kept or abs(point[0] - kept[-1][0]) >= _NEAR or abs(point[1] - kept[-1][1]) >= _NEAR
        if far or place == len(points) - 1:
            kept.append(point)
    return kept


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_f(x)} {_f(y)}" for x, y in points)


def _f(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
