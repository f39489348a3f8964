"""Gaussian noise for preparation, from a secret number as coins are (`data.coins`): the same when a job is resumed.

    noise = Φ⁻¹((k + ½)/2⁵³),    k: 53 bits of a stream that the secret number and a label begin (SHAKE-256)

The number is of 256 bits from the operating system unless a seed is given, which makes a run not private. What is
released of noisy counts are decisions (which bins, which levels), so that their last bits are never seen.
"""

from __future__ import annotations

import hashlib

import numpy as np

from bayesdp.errors import Array


def secret_normals(draw: int, label: str, count: int) -> Array:
    """`count` standard normals, independent of those of any other label; they reach 8.2 standard deviations."""
    stream = hashlib.shake_256(f"preparation {draw} {label}".encode()).digest(8 * count)
    bits = np.frombuffer(stream, "<u8") >> np.uint64(11)
    from scipy.special import ndtri  # not for tables that do without

    return np.asarray(ndtri((bits.astype(np.float64) + 0.5) * 2.0**-53))
