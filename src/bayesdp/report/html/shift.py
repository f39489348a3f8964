"""Whether outsiders and members look alike, in words."""

from __future__ import annotations

from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.shift import OUTLIERS, WARNING, Shift


def section(found: Shift, cited: Cited) -> Html:
    """The warning where there is one, the numbers, and what an outlier has to expect."""
    words = (
        "What the run cost ",
        cited.count("report/shift/outsiders"),
        " witnesses outside of the data and ",
        cited.count("report/shift/members"),
        " inside was compared by two permutation tests. If both were the same kind of people, and nothing was "
        "remembered, a p-value would be below 0.5 % in one of 200 runs: it is ",
        cited.near("report/shift/mean"),
        " for the means and ",
        cited.near("report/shift/kernel"),
        " for the laws as a whole.",
    )
    return join(el("p", el("strong", WARNING)) if found.warns else None, el("p", words), el("p", OUTLIERS))
