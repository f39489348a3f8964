"""Tables of made-up people for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def people(count: int = 240, seed: int = 0) -> dict[str, list[str]]:
    """Age, hours and trade tell who is rich, and what they earn."""
    rng = np.random.default_rng(seed)
    age, hours = rng.integers(18, 80, count), rng.normal(38, 8, count).round(1)
    trade = rng.choice(["clerk", "cook", "nurse"], count)
    score = 0.05 * (age - 48) + 0.1 * (hours - 38) + (trade == "nurse")
    rich = np.where(score + 0.3 * rng.logistic(size=count) > 0, "yes", "no")
    wage = (20_000 + 8_000 * score + rng.normal(0, 1_000, count)).round()
    columns = {"age": age, "hours": hours, "trade": trade, "rich": rich, "wage": wage}
    return {name: [str(cell) for cell in column] for name, column in columns.items()}


def write_people(path: Path, columns: dict[str, list[str]] | None = None) -> Path:
    columns = columns or people()
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def visits(count: int = 60, seed: int = 0) -> dict[str, list[str]]:
    """Rows of `count` patients called p0, p1, …, one to six each in mixed order; how ill they are shows in each row."""
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.repeat(np.arange(count), rng.integers(1, 7, count)))
    ill = rng.normal(size=count)[owner]
    pulse, fever = (70 + 8 * ill + rng.normal(0, 4, len(owner))).round(1), (37 + 0.6 * ill).round(2)
    ward = rng.choice(["east", "west"], len(owner))
    stay = np.where(ill + 0.5 * rng.normal(size=len(owner)) > 0, "yes", "no")
    days = (5 + 2 * ill + rng.normal(0, 0.5, len(owner))).round(1)
    columns = {
        "patient": [f"p{one}" for one in owner],
        "pulse": pulse,
        "fever": fever,
        "ward": ward,
        "stay": stay,
        "days": days,
    }
    return {name: [str(cell) for cell in column] for name, column in columns.items()}
