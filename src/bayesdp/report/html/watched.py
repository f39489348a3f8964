"""The watched records, one line each: whom the per-instance promises are for."""

from __future__ import annotations

from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import table
from bayesdp.report.watched import WatchedRecords

MOST = 50
"""So many lines at most; the JSON, and the command `instance`, have all."""


def section(watched: WatchedRecords, cited: Cited) -> Html:
    """What the table says, and the table."""
    shown = min(MOST, len(watched.names))
    rows = [
        (
            cited.text(f"report/watched/names/{place}"),
            _loss(place, cited),
            ("at most ", cited.most(f"derived/watched/{place}/attacker_success")),
        )
        for place in range(shown)
    ]
    words = (
        "Each was named before the run, and each line is a promise to that record: “one record” on this page is one of "
        "these. The card above shows the largest, which is no promise to that record as the largest."
    )
    more = None if shown == len(watched.names) else el("p", "There are more; the JSON has them all.")
    heads = ("record", "per-instance ε", "attacker sure")
    return join(el("p", words), table("The watched records", heads, rows), more)


def _loss(place: int, cited: Cited) -> object:
    if cited.value(f"derived/watched/{place}/won") == "dp":
        return "no better than for everybody: DP ε ", cited.loss("derived/dp")
    return cited.loss(f"report/watched/epsilon/{place}")
