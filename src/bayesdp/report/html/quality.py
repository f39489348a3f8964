"""How good the model is: test metrics, which classes were taken for which, and what was paid for to be published."""

from __future__ import annotations

from bayesdp.report.html import figures
from bayesdp.report.html.cited import Cited, step
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import pairs, table
from bayesdp.report.quality import Confusion
from bayesdp.report.schema import Report

MOST_CLASSES = 12
"""A larger confusion matrix is in the JSON only."""


def section(report: Report, cited: Cited) -> Html:
    """All that there is of these."""
    rows = [(name, figures.measured(cited, f"report/metrics/{step(name)}", name)) for name in report.metrics]
    return join(
        el("div", pairs(rows), class_="metrics") if rows else None,
        None if report.confusion is None else _confusion(report.confusion, cited),
        figures.progress(report.progress, cited) if report.progress and report.progress.values else None,
        None if report.paid is None else _paid(report, cited),
    )


def _confusion(seen: Confusion, cited: Cited) -> Html:
    count = len(seen.classes)
    if count > MOST_CLASSES:
        return el("p", "Which classes were taken for which is in the JSON: they are too many for a table.")
    names = [cited.text(f"report/confusion/classes/{place}") for place in range(count)]
    rows = [
        (
            names[k],
            *(cited.count(f"report/confusion/counts/{k}/{j}") for j in range(count)),
            figures.measured(cited, f"derived/confusion/recall/{k}", "recall"),
            figures.measured(cited, f"derived/confusion/precision/{k}", "precision"),
        )
        for k in range(count)
    ]
    heads = ("true class", *(join("taken for ", name) for name in names), "recall", "precision")
    return table("Test records by their class and by what they were taken for (sensitive)", heads, rows)


def _paid(report: Report, cited: Cited) -> Html:
    found: list[str] = list(cited.value("derived/paid/metrics"))
    words: list[object] = [
        "Counts over the test records with noise, drawn once and paid for with DP ε = ",
        cited.loss("report/paid/epsilon"),
        " of the people tested on, who were not trained on",
        ", from a given seed: not private" if report.seeded else ": they may be published",
        ". Each count has noise of standard deviation ",
        cited.near("derived/paid/noise"),
        ".",
    ]
    if not found:
        words.append(" It outweighs the counts: nothing can be said.")
    rows = [(name, figures.measured(cited, f"derived/paid/metrics/{step(name)}", name)) for name in found]
    return join(
        el("h3", "Counts over the test records, with noise"), el("p", words), el("div", pairs(rows), class_="metrics")
    )
