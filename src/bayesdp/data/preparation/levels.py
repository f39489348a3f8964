"""Which levels a column of texts has, so that one which only one person has never appears (partition selection, H22).

    level is kept  ⇔  count + N(0, s²) > τ,    τ = r + s Φ⁻¹(1 − δ/(m r))

for m columns and at most r rows a person. Only levels of the data are asked, so that a level which nobody else has
appears with chance at most δ over all columns; for levels that others have as well, counts are Gaussian releases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bayesdp.data.preparation.secret_normals import secret_normals


def threshold(std: float, delta: float, columns: int, rows_per_person: int = 1) -> float:
    """τ for noise of `std`, where `columns` share the δ."""
    from scipy.special import ndtri  # not for tables that do without

    return float(rows_per_person - std * ndtri(delta / (columns * rows_per_person)))


def select(texts: Iterable[str], *, std: float, above: float, draw: int, column: str, most: int) -> tuple[str, ...]:
    """The levels whose noisy counts are above the threshold, at most the `most` largest, in the alphabet's order.

    A level's noise depends on the secret number, the column and the level: no other level has a part in it.
    """
    noisy = {
        level: count + std * float(secret_normals(draw, f"level {column!r} {level!r}", 1)[0])
        for level, count in Counter(texts).items()
    }
    kept = sorted((count, level) for level, count in noisy.items() if count > above)
    return tuple(sorted(level for _, level in kept[-most:]))
