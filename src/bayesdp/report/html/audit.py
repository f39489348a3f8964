"""What an audit found: each lower bound on ε beside the upper one, and those of single records."""

from __future__ import annotations

from bayesdp.report.audit import Audit, CanaryBounds
from bayesdp.report.html import axis, fine_print
from bayesdp.report.html.chart import Across, Chart, Mark, Whiskers
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import figure, table
from bayesdp.report.schema import Report

GAMES = {
    "step": "one step, with and without a record",
    "runs": "whole runs, with and without a record",
    "one-run": "one run with many planted records",
    "membership": "repeated small runs on the data",
}
FORMS = {"counting": "whatever the noise is", "f-dp": "if the noise is Gaussian"}
MOST = 50
"""So many single records at most; the JSON has all."""

_WORDS = (
    "An attack was made on the mechanism. How often it succeeds proves, with the confidence in the table, that ε is at "
    "least the lower bound; the promises above say that it is at most the upper one. The two need not meet: an attack "
    "is as good as its author. A lower bound above the upper one would prove the promise wrong."
)


def section(report: Report, found: Audit, cited: Cited) -> Html:
    """The words, the chart with the upper bounds of all notions, the bounds, and single records."""
    wrong = [place for place, one in enumerate(found.bounds) if one.refutes]
    verdict = None
    if wrong:
        verdict = el("p", el("strong", "A lower bound is above its upper bound: the promise does not hold."))
    return join(
        verdict,
        el("p", _WORDS),
        _chart(report, found, cited),
        None if found.canaries is None else _canaries(found.canaries, cited),
        fine_print.sentences("report/audit/notes", found.notes, cited),
    )


def _chart(report: Report, found: Audit, cited: Cited) -> Html:
    lower, upper = [one.epsilon for one in found.bounds], [one.upper for one in found.bounds]
    whiskers = Whiskers("rest", range(len(lower)), list(lower), list(lower), list(upper))
    entries: list[tuple[Mark, object]] = [(whiskers, "from the lower bound (dot) to the upper bound of the same")]
    roles = {"dp": "dp", "bdp": "bdp", "per-instance": "instance"}
    for place, one in enumerate(report.guarantees):
        if one.epsilon < float("inf") and (one.notion != "per-instance" or place == _first(report, "per-instance")):
            line = Across(roles[one.notion], one.epsilon, upright=True)
            entries.append((line, (f"upper bound, {one.label} = ", cited.loss(f"report/guarantees/{place}/epsilon"))))
    drawn = [*lower, *(one for one in upper if one < float("inf"))]
    drawn += [one.epsilon for one in report.guarantees if one.epsilon < float("inf")]
    names = tuple(f"{one.method}, {one.form}" for one in found.bounds)
    caption = ("Lower bounds by attack, and upper bounds by proof; a step’s own upper bound is that of the step.",)
    chart = Chart(
        "audit-bounds",
        "Lower and upper bounds",
        join(caption),
        axis.from_zero("ε", drawn),
        axis.Names("", names),
        tuple(mark for mark, _ in entries),
    )
    return figure(chart, entries, caption, _bounds(found, cited))


def _first(report: Report, notion: str) -> int:
    return next(place for place, one in enumerate(report.guarantees) if one.notion == notion)


def _bounds(found: Audit, cited: Cited) -> Html:
    heads = ("attack", "form", "ε at least", "ε at most", "δ", "confidence", "plays")
    rows = []
    for place, one in enumerate(found.bounds):
        own = f"report/audit/bounds/{place}"
        rows.append(
            (
                GAMES[one.method],
                FORMS[one.form],
                cited.least(f"{own}/epsilon"),
                cited.loss(f"{own}/upper"),
                cited.small(f"{own}/delta"),
                cited.share(f"derived/audit/{place}/confidence"),
                cited.count(f"{own}/plays"),
            )
        )
    return table("Lower bounds of an audit", heads, rows)


def _canaries(found: CanaryBounds, cited: Cited) -> Html:
    shown = min(MOST, len(found.names))
    rows = [
        (
            cited.text(f"report/audit/canaries/names/{place}"),
            cited.least(f"report/audit/canaries/lower/{place}"),
            cited.loss(f"report/audit/canaries/upper/{place}"),
        )
        for place in range(shown)
    ]
    words = "Single records, attacked one by one; each line holds by itself, and no promise is made to the largest."
    heads = ("record", "per-instance ε at least", "at most")
    return join(el("h3", "Single records"), el("p", words), table("Attacks on single records", heads, rows))
