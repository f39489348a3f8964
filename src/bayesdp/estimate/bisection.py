"""Where a condition stops holding, found from above."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bayesdp.errors import Array

STEPS = 60  # halves a bracket inside [0, 1] to 1e-18, below the spacing of any bound that matters


def last_inside(inside: Callable[[Array], npt.NDArray[np.bool_]], low: Array, high: Array) -> Array:
    """Sup { m in [low, high] : inside(m) }, entry by entry, rounded up.

    `inside` must be true below its supremum and false above it. The upper end of the bracket is returned,
    so the answer is never too small; `high` comes back where the condition holds throughout.
    """
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        holds = inside(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return high
