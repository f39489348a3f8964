"""The problem of the SGLD benchmark, for workers of any environment."""

from __future__ import annotations

from typing import Any

import numpy as np

RECORDS, COLUMNS, STEPS, BATCH = 39_073, 15, 2000, 195
STEP_SIZE = 1e-6


def records() -> tuple[Any, Any]:
    """14 columns and a constant, and yes/no outcomes."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(RECORDS, COLUMNS - 1)), np.ones((RECORDS, 1))], axis=1).astype(np.float32)
    return x, (rng.random(RECORDS) < 0.25).astype(np.int32)
