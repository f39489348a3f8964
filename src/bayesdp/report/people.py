"""Reports and pages about people: the words of a report about records, said of people where these are the unit.

A report's own sentences are exchanged when it is made, so that its JSON has them too. Those of a page are exchanged
when it is written: all text but what stands in the JSON, such as titles and names, which is shown as it is.
"""

from __future__ import annotations

import dataclasses
import re

from bayesdp.report.schema import Report
from bayesdp.unit import Unit, spoken

_PAGE = re.compile(
    r"(<head>.*?</head>|<(?:script|style)\b.*?</(?:script|style)>"
    r"|<span data-key=\"[^\"]*\" data-round=\"text\">[^<]*</span>|<[^>]*>)"
    r"|([^<]+)",
    re.DOTALL,
)


def unit_of(report: Report) -> Unit:
    """What the promises of a report are about."""
    return report.guarantees[0].unit


def in_words(report: Report) -> Report:
    """The report with its sentences about the unit of its promises."""
    unit = unit_of(report)
    if unit == "record":
        return report

    def said(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(spoken(one, unit) for one in texts)

    here, progress = report.settings, report.progress
    other = {
        spoken(name, unit): spoken(value, unit) if isinstance(value, str) else value
        for name, value in here.other.items()
    }
    return dataclasses.replace(
        report,
        record=spoken(report.record, unit),
        settings=dataclasses.replace(here, other=other, conversion=spoken(here.conversion, unit)),
        progress=None if progress is None else dataclasses.replace(progress, data=spoken(progress.data, unit)),
        assumptions=said(report.assumptions),
        preprocessing=said(report.preprocessing),
        notes=said(report.notes),
    )


def page_in_words(page: str, unit: Unit) -> str:
    """A page with its own words about the unit; what it cites from the JSON stays as it is there."""
    if unit == "record":
        return page
    return _PAGE.sub(lambda found: found[1] or spoken(found[2], unit), page)
