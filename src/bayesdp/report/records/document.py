"""Every number of the page for records, computed here and nowhere else: `document(records)`, as JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp import convert
from bayesdp.everybody import least
from bayesdp.report.derived import of_records, quantile
from bayesdp.report.part import plain
from bayesdp.report.records.table import RecordTable
from bayesdp.report.schema import RecordLosses
from bayesdp.version import __version__

MOST, LEAST = 1000, 100
"""How many of the most and of the least exposed records the page shows."""

CLASSES = 50
"""How many classes the page shows, the most exposed ones."""

_COMPARED = {"remove": "member, if left out", "add": "outsider, if added", "both": "both ways"}


def document(records: RecordTable, file: str = "") -> dict[str, Any]:
    """What the page shows, as JSON: the table without its columns, and what was computed from them."""
    rows = records.rows()
    shown = rows if len(rows) <= MOST + LEAST else [*rows[:MOST], *rows[-LEAST:]]
    below = records.below_dp()
    classes = [] if records.label is None else _classes(records)
    derived = {
        "coin": 0.5,
        "quantiles": [
            {"share": level, "epsilon": least(epsilon, records.dp_epsilon)}
            for level, epsilon in records.quantiles().items()
        ],
        "records": of_records(RecordLosses(epsilon=records.epsilon, correct=records.correct), records.dp_epsilon),
        "below_dp": below,
        "tied": None if below is None else records.tied,
        "wrong": None if records.correct is None else records.correct.count(False) / len(rows),
        "classes": classes[:CLASSES],
        "class_count": len(classes),
        "shown": {"most": min(MOST, len(rows)), "least": LEAST, "all": len(rows) == len(shown)},
        "rows": [_shown(row, records) for row in shown],
    }
    told = ("title", "delta", "dp_epsilon", "steps", "seeded", "how", "standing")
    return {
        "format": "bayesdp/records-page",
        "version": 2,
        "generator": f"bayesdp {__version__}",
        "table": {"file": file, **plain({name: getattr(records, name) for name in told})},
        "derived": plain(derived),
    }


def _shown(row: dict[str, Any], records: RecordTable) -> dict[str, Any]:
    """A line of the page's table, in the order of its columns; the ε as computed, though the page shows no larger one
    than the DP ε.
    """
    loss = least(float(row["epsilon"]), records.dp_epsilon)
    cells: dict[str, Any] = {
        "id": str(row["id"]),
        "rank": row["rank"],
        "epsilon": row["epsilon"],
        "attacker_success": convert.attacker_success(loss, records.delta),
        "compared": _COMPARED[row["direction"]],
    }
    if "class" in row:
        cells["label"] = row["class"]
    if "correct" in row:
        cells["answer"] = "right" if row["correct"] else "wrong"
    return cells


def _classes(records: RecordTable) -> list[dict[str, Any]]:
    """A line for each class, the most exposed first: by what nine in ten of its records stay within."""
    dp = np.inf if records.dp_epsilon is None else records.dp_epsilon
    labels, epsilon = np.array(records.label, dtype=object), np.minimum(records.epsilon, dp)
    names, which = np.unique(labels, return_inverse=True)
    wrong = None if records.correct is None else ~np.array(records.correct)
    lines = []
    for place, name in enumerate(names):
        own = which == place
        lines.append(
            {
                "label": str(name),
                "count": int(own.sum()),
                "median": quantile(epsilon[own], 0.5),
                "ninety": quantile(epsilon[own], 0.9),
                "largest": float(epsilon[own].max()),
                "wrong": None if wrong is None else float(wrong[own].mean()),
            }
        )
    return sorted(lines, key=lambda line: (-line["ninety"], -line["median"], line["label"]))
