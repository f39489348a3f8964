"""A table as hospitals have them: every problem that `bayesdp check` knows, in a few hundred made-up patients."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np


def hospital(count: int = 400, seed: int = 0) -> dict[str, list[str]]:
    """Patients, each column with a problem of its own; who is old and was ill before comes back more often."""
    rng = np.random.default_rng(seed)
    age, before = rng.integers(18, 95, count), rng.integers(0, 2, count)
    weight, cost = rng.normal(75, 12, count), rng.uniform(900, 9_000, count)
    back = 0.05 * (age - 55) + 1.5 * (before - 0.5) + 0.5 * rng.logistic(size=count) > 0
    day, month, year = rng.integers(1, 29, count), rng.integers(1, 13, count), rng.integers(2015, 2024, count)
    lab = rng.normal(5, 1, count).round(2)
    columns = {
        "patient id": [f"P{100_000 + 7 * number}" for number in range(count)],
        "age": [str(one) for one in age],
        "admitted": [f"{d:02}.{m:02}.{y}" for d, m, y in zip(day, month, year, strict=True)],
        "discharged": [f"{y}-{m:02}-{d:02} 1{d % 10}:30" for d, m, y in zip(day, month, year, strict=True)],
        "rounds at": [f"{6 + d % 12}:{m:02}" for d, m in zip(day, month, strict=True)],
        "weight": [f"{one:.1f}".replace(".", ",") for one in weight],
        "cost": [f"{one:,.2f}" for one in cost],
        "saturation": [f"{one} %" for one in rng.integers(85, 100, count)],
        "ill before": [
            ("no", "Yes")[one] if number % 3 else ("false", "TRUE")[one] for number, one in enumerate(before)
        ],
        "lab": [("hemolysed", "<2")[number % 2] if number % 25 == 3 else str(one) for number, one in enumerate(lab)],
        "ward": [f"{rng.integers(1, 9)}" if number % 2 else "north" for number in range(count)],
        "notes": [f"note {number % 190}" for number in range(count)],
        "town": [f"town {number % 40}" for number in range(count)],
        "blood": [("A", "B", "AB", "0+")[one] for one in rng.integers(0, 4, count)],
        "empty": [""] * count,
        "country": ["here"] * count,
        "back": np.where(back, "yes", "no").tolist(),
    }
    for name, gaps in {"age": ("NA", 11), "blood": ("", 17), "weight": ("?", 23), "back": ("", 31)}.items():
        columns[name] = [gaps[0] if number % gaps[1] == 5 else cell for number, cell in enumerate(columns[name])]
    # Three patients are in the table twice.
    return {name: [*cells, *cells[:3]] for name, cells in columns.items()}


def write_hospital(path: Path, columns: dict[str, list[str]] | None = None, delimiter: str = ";") -> Path:
    columns = hospital() if columns is None else columns
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([[*columns], *zip(*columns.values(), strict=True)])
    return path
