"""Redo a figure or table: its numbers as CSV, its picture as PNG and SVG. Only here is matplotlib imported."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesdp import storage
from bayesdp.errors import InputError, refuse, whole
from bayesdp.experiments import load


def reproduce(
    name: str, out: str | Path, seed: int = 0, *, full: bool = False, data_dir: str | Path | None = None
) -> list[Path]:
    """Write `out/<name>.csv`, `.png` and `.svg`; the same seed gives the same files on the same kind of machine.

    `full` asks for the paper's own size where the default is a smaller one; the files are then `<name>-full.*`.
    `data_dir` is where the data sets are (see `bayesdp.data.load`).

    Bad input: an unknown name, a negative seed, an option that the experiment does not take, a folder that cannot
    be written, or a Python without matplotlib get `InputError` before anything is computed.
    """
    experiment = load(name)
    seed = whole("seed", seed, least=0)
    if full and "full" not in experiment.options:
        raise refuse("full", full, f"to be left out for {name}, which has one size")
    if data_dir is not None and "data_dir" not in experiment.options:
        raise refuse("data_dir", str(data_dir), f"to be left out for {name}, which reads no data set")
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            'Expected matplotlib to draw figures, but it is not installed. Run: pip install "bayesdp[plot]"'
        ) from None
    folder = storage.make_folder(out, "out")
    stem = f"{name}{'-full' if full else ''}"
    table, png, svg = (folder / f"{stem}.{kind}" for kind in ("csv", "png", "svg"))
    options = {"full": full, "data_dir": data_dir, "results": folder}
    rows = experiment.compute(seed, **{option: options[option] for option in experiment.options})
    write_csv(table, rows)
    # Nothing in a file may depend on the day or the machine's settings, so that files can be compared.
    with matplotlib.rc_context(matplotlib.rcParamsDefault | {"svg.hashsalt": "bayesdp"}):
        figure = Figure(figsize=experiment.size, layout="constrained")
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
