"""The privacy report: what a training run promised, to whom, as one page that opens offline and as JSON.

    write(report, "report.html")        write(report, "report.json")        read("report.json") == report

Learners fill a `Report`; everything else follows from it. What a run cost each record is a `RecordTable`, with a page
of its own (`records_page.write_page`).
"""

from bayesdp.report.audit import Audit, CanaryBounds, LowerBound
from bayesdp.report.derived import document
from bayesdp.report.files import read, write
from bayesdp.report.group_losses import GroupLosses
from bayesdp.report.html.page import page
from bayesdp.report.records.table import RecordTable
from bayesdp.report.schema import (
    CoverageCurve,
    EpsilonHistory,
    Intervals,
    NormQuantiles,
    Progress,
    RecordLosses,
    Report,
    Settings,
)

__all__ = [
    "Audit",
    "CanaryBounds",
    "CoverageCurve",
    "EpsilonHistory",
    "GroupLosses",
    "Intervals",
    "LowerBound",
    "NormQuantiles",
    "Progress",
    "RecordLosses",
    "RecordTable",
    "Report",
    "Settings",
    "document",
    "page",
    "read",
    "write",
]
