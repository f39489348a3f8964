"""Files of norms for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def distances(steps: int = 6, records: int = 300, seed: int = 0) -> np.ndarray:
    """Norms of people of different sizes, clipped to 1."""
    rng = np.random.default_rng(seed)
    return np.minimum(rng.lognormal(-2, 0.6, records) * rng.uniform(0.5, 1.5, (steps, records)), 1)


def write_csv(path: Path, values: np.ndarray, names: list[str] | None = None) -> Path:
    lines = [] if names is None else [",".join(names)]
    lines += [",".join(repr(float(value)) for value in row) for row in values]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
