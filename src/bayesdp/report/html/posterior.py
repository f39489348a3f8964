"""What a posterior says of each parameter: a dot for its mean and a whisker for its credible interval."""

from __future__ import annotations

from bayesdp.report.html import axis
from bayesdp.report.html.chart import Across, Chart, Mark, Whiskers
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.figures import measured
from bayesdp.report.html.markup import Html, join
from bayesdp.report.html.tables import figure, table
from bayesdp.report.schema import Intervals, Report

_NOT_PRIVATE = "NOT PRIVATE: without clipping and noise, shown because it was asked for"


def section(report: Report, posterior: Intervals, cited: Cited) -> Html:
    """The chart of the parameters that are farthest from zero, in words, and all of them as a table."""
    drawn: list[int] = cited.value("derived/posterior/drawn")
    beside = posterior.non_private
    entries: list[tuple[Mark, object]] = [(_whiskers(posterior, drawn, -4.0 if beside else 0.0), _own(report, cited))]
    if beside is not None:
        entries.append((_whiskers(beside, drawn, 4.0, public=False), _NOT_PRIVATE))
    shown = [value for part in (posterior, beside) if part is not None for value in _values(part, drawn)]
    marks = [mark for mark, _ in entries]
    if shown and min(shown) < 0 < max(shown):
        zero = Across("zero", 0.0, upright=True)
        entries.append((zero, "zero"))
        marks.insert(0, zero)
    caption = _words(posterior, cited)
    chart = Chart(
        "posterior-intervals",
        "Posterior means and intervals",
        join(caption),
        axis.around("value of the parameter", shown),
        axis.Names("", tuple(posterior.names[place] for place in drawn)),
        tuple(marks),
    )
    return figure(chart, entries, caption, _table(posterior, cited))


def _whiskers(part: Intervals, drawn: list[int], shift: float, *, public: bool = True) -> Whiskers:
    middle = [part.mean[place] for place in drawn]
    # An interval that is not to be believed is not drawn: a dot is left.
    low, high = ([None if place in part.doubted else end[place] for place in drawn] for end in (part.low, part.high))
    return Whiskers("dp" if public else "wrong", range(len(drawn)), middle, low, high, shift, open=not public)


def _values(part: Intervals, drawn: list[int]) -> list[float]:
    found = (values[place] for values in (part.mean, part.low, part.high) for place in drawn)
    return [value for value in found if value is not None]


def _own(report: Report, cited: Cited) -> object:
    whiskers: object = ("mean and central ", cited.percent("report/posterior/probability"), " interval")
    return "from ", cited.text("report/released"), ": ", whiskers, ", not private" if report.seeded else None


def _words(posterior: Intervals, cited: Cited) -> list[object]:
    words: list[object] = []
    if posterior.names and cited.value("derived/posterior/shown") < len(posterior.names):
        words += ["Drawn are ", cited.count("derived/posterior/shown"), " of ", cited.count("derived/posterior/count")]
        words += [" parameters, those farthest from zero for their width; the table has all. "]
    if cited.value("derived/posterior/known"):
        words += [
            "Intervals of ",
            cited.count("derived/posterior/apart"),
            " of ",
            cited.count("derived/posterior/known"),
        ]
        words += [" parameters leave zero out. "]
    else:
        words += ["One sample shows no interval. "]
    if posterior.doubted:
        words += ["Dots without a whisker have intervals that are not to be believed: the table says why. "]
    return [*words, "All of it is computed from ", cited.text("report/released"), "."]


def _table(posterior: Intervals, cited: Cited) -> Html:
    kinds = [("report/posterior", "")]
    if posterior.non_private is not None:
        kinds.append(("report/posterior/non_private", " (NOT PRIVATE)"))
    heads = ["parameter", *(f"{name}{mark}" for _, mark in kinds for name in ("mean", "from", "to"))]
    if posterior.doubts:
        heads.append("why not to believe it")
    rows = [
        (
            cited.text(f"report/posterior/names/{place}"),
            *(
                measured(cited, f"{key}/{field}/{place}", field)
                for key, _ in kinds
                for field in ("mean", "low", "high")
            ),
            *((cited.text(f"report/posterior/doubts/{place}"),) if posterior.doubts else ()),
        )
        for place in range(len(posterior.names))
    ]
    return table("Posterior means and intervals", heads, rows)
