"""Who is trained on, tested on or held out: each record has a coin of its own.

    record i goes to the other side  ⇔  coin_i < share,    coin_i = word i of a stream that a secret number begins

The number is of 256 bits from the operating system, expanded as the operating system itself does (here by SHAKE-256):
to whoever does not know it all coins are fair and independent. A coin depends on that number and on the record's place
in its source, so that a record more moves nobody else. Drawing a fixed number of all records would not do: one more
pushes others to the other side, and what is trained on then differs in several records (H18).
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Literal

import numpy as np
import numpy.typing as npt

Stream = Literal["test", "holdout", "rows"]
"""What a coin is tossed for: independent of each other."""

_BITS = 256


def fresh() -> int:
    """A number that nobody knows: keep it as you keep the records."""
    return secrets.randbits(_BITS)


def tossed(draw: int, stream: Stream, places: npt.NDArray[np.int64], share: float) -> npt.NDArray[np.bool_]:
    """Whether the coin of the record at each of these places fell below `share`."""
    # The 53 bits that a float holds: below 1, so that a share of 1 takes everybody.
    return np.asarray((words(draw, stream, places) >> np.uint64(11)) * 2.0**-53 < share)


def words(draw: int, stream: Stream, places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The 64 bits of the record at each of these places: their order is a random one."""
    last = int(places.max(initial=-1))
    every = np.frombuffer(hashlib.shake_256(f"{stream} {draw}".encode()).digest(8 * (last + 1)), "<u8")
    return np.asarray(every[places])
