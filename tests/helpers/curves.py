"""Tables of experiments, read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayesdp.experiments.common.style import pick


def epsilon(rows: Sequence[dict[str, Any]], **where: Any) -> float:
    """The ε of the one row that fits."""
    (row,) = pick(rows, **where)
    return float(row["epsilon"])
