"""Pictures of experiments, laid out but not written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from bayesdp.experiments import load


def drawn(name: str, rows: Sequence[dict[str, Any]]) -> Figure:
    """The figure of the experiment `name`, under its title, every row with the same columns."""
    assert all(list(row) == list(rows[0]) for row in rows)
    experiment = load(name)
    figure = Figure(figsize=experiment.size, layout="constrained")
    experiment.draw(figure, rows)
    figure.draw_without_rendering()
    assert figure.get_suptitle().startswith(experiment.title)
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
    return figure
