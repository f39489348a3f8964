"""Rényi divergence between two Laplace distributions of one scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp import errors
from bayesdp.divergence.stable import expm1_minus
from bayesdp.errors import Array


def cost(shift: Any, orders: Any) -> Array:
    """(α−1)·D_α(Lap(r, 1)‖Lap(0, 1)) = log[ α e^{(α−1)r} + (α−1) e^{−αr} ] − log(2α−1).

    With r = |shift|/scale (Mironov 2017). Exact, both directions alike; tiny and huge shifts keep their
    digits. With independent noise on several coordinates the cost is the sum over coordinates; one call
    with the l1 norm of the shift is an upper bound on that sum, because the cost is convex in r and 0 at 0.
    Shape: shift.shape + orders.shape. Bad input: `InputError`.
    """
    r = errors.array("shift", shift, least=0)
    grid = errors.array("orders", orders, above=1)
    lam, norm = grid - 1, 2 * grid - 1
    up, down = np.multiply.outer(r, lam), np.multiply.outer(r, -grid)
    # The first-order terms α·λr and λ·(−αr) cancel exactly, so they are left out of the small form.
    near = np.minimum(up, 1.0), np.maximum(down, -grid / lam)
    small = np.log1p((grid * expm1_minus(near[0]) + lam * expm1_minus(near[1])) / norm)
    large = up + np.log(grid / norm) + np.log1p(lam / grid * np.exp(down - up))
    return np.where(up <= 1, small, large)
