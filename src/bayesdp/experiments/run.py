"""Redo a figure: its table as CSV, its picture as PNG and SVG. Only here is matplotlib imported."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesdp.errors import InputError, refuse, whole
from bayesdp.experiments import load


def reproduce(name: str, out: str | Path, seed: int = 0) -> list[Path]:
    """Write `out/<name>.csv`, `.png` and `.svg`; the same seed gives the same files.

    Bad input: an unknown name, a negative seed, a folder that cannot be written, or a Python without
    matplotlib get `InputError` before anything is computed.
    """
    experiment = load(name)
    seed = whole("seed", seed, least=0)
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            'Expected matplotlib to draw figures, but it is not installed. Run: pip install "bayesdp[plot]"'
        ) from None
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise refuse("out", str(out), "to be a folder that can be made", str(problem)) from None
    table, png, svg = (folder / f"{experiment.NAME}.{kind}" for kind in ("csv", "png", "svg"))
    rows = experiment.compute(seed)
    write_csv(table, rows)
    # Nothing in a file may depend on the day or the machine's settings, so that files can be compared.
    with matplotlib.rc_context(matplotlib.rcParamsDefault | {"svg.hashsalt": "bayesdp"}):
        figure = Figure(figsize=experiment.SIZE, layout="constrained")
        experiment.draw(figure, rows)
        figure.savefig(png, dpi=110, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return [table, png, svg]


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """One line per row, floats with ten digits; an infinite ε is written "inf"."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.10g}" if isinstance(v, float) else v for k, v in row.items()})
