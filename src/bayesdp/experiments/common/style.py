"""How curves look in every figure: colour says the way of accounting, the line whom it speaks for.

    vermilion  as printed        solid   people like those in the data (Bayesian DP)
    blue       sound, loss tail  dashed  everybody (DP, a record added or removed)
    green      sound, exact      dotted  the other adjacency, or a second rule of the same kind

The colours are those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
"""One line of a table: column → value. Every table has the columns `way`, `curve` and `epsilon`."""

VERMILION, BLUE, GREEN = "#D55E00", "#0072B2", "#009E73"
ORANGE, SKY, PURPLE, GREY = "#E69F00", "#56B4E9", "#CC79A7", "#777777"
"""For figures that compare methods rather than ways of accounting."""

WIDE: dict[str, Any] = {"linewidth": 4.0, "alpha": 0.5}
"""For a curve that another one may cover exactly: both stay visible."""


def pick(rows: Sequence[Row], **where: Any) -> list[Row]:
    """The rows whose columns have the given values."""
    return [row for row in rows if all(row[column] == value for column, value in where.items())]


def line(axes: Axes, rows: Iterable[Row], x: str, **look: Any) -> None:
    """Draw ε against column `x`."""
    axes.plot(*_points(rows, x), **({"linewidth": 1.6} | look))


def band(axes: Axes, rows: Sequence[Row], x: str, color: str, label: str) -> None:
    """ε of the middle coverage as a line, and a band between the outer ones where there are several."""
    coverages = sorted({row["coverage"] for row in rows})
    line(axes, pick(rows, coverage=coverages[len(coverages) // 2]), x, color=color, label=label, **WIDE)
    if len(coverages) > 1:
        places, low = _points(pick(rows, coverage=coverages[0]), x)
        high = _points(pick(rows, coverage=coverages[-1]), x)[1]
        axes.fill_between(places, low, high, color=color, alpha=0.15, linewidth=0)


def marked(axes: Axes, rows: Iterable[Row], x: str, y: str, error: str, **look: Any) -> None:
    """Points with error bars, joined in the order of column `x`."""
    points = sorted(rows, key=lambda row: float(row[x]))
    across, up, bars = ([row[column] for row in points] for column in (x, y, error))
    usual: dict[str, Any] = {"marker": "o", "markersize": 3, "capsize": 2, "linewidth": 1.5}
    axes.errorbar(across, up, bars, **(usual | look))


def quiet(axes: Axes) -> None:
    """A faint grid and no box."""
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def finish(figure: Figure, panels: Sequence[Axes], *, title: str, y: str, columns: int) -> None:
    """A quiet grid, logarithmic ε, and one legend under all panels."""
    for axes in panels:
        axes.set_yscale("log")
        quiet(axes)
    panels[0].set_ylabel(y)
    figure.suptitle(title, fontsize=12)
    legend_below(figure, panels[0], columns=columns)


def legend_below(figure: Figure, axes: Axes, *, columns: int, fontsize: int = 9) -> None:
    """One legend under all panels, of the curves of one of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=fontsize)


def _points(rows: Iterable[Row], x: str) -> tuple[list[float], list[float]]:
    points = sorted((row[x], row["epsilon"]) for row in rows)
    return [point[0] for point in points], [point[1] for point in points]
