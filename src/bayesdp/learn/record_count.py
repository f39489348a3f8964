"""N, by which sums are divided and likelihoods scaled: declared with the plan, or taken from the data (H18).

    given in the plan     the same whatever the data: nothing is assumed
    taken from the data   public: a neighbour has the same N, and one record in it that contributes nothing

Divided by q N, noise is scaled by N. With N from the data, N and N + 1 records would be told apart by that scale alone.
"""

from __future__ import annotations

import dataclasses

from bayesdp.guarantee import Guarantee
from bayesdp.learn.records import Data, records_of

PUBLIC = (
    "The number of records, N = {count:,}, was taken from the data and is public: neighbouring data sets have the same "
    "N, and the record's contribution is {change} in one of them (H18)."
)
DECLARED = "The number of records that updates are scaled by, {count:,}, was declared independently of the data (H18)."
_CHANGE = {"add-remove": "absent", "replace-one": "another's"}


def count_of(declared: int | None, data: Data) -> int:
    """N: as declared, else the number of records in `data`."""
    return records_of("data", data) if declared is None else declared


def count_in_words(declared: int | None, records: int, adjacency: str = "add-remove") -> str:
    """What a promise assumes of N, where `records` were trained on."""
    if declared is not None:
        return DECLARED.format(count=declared)
    return PUBLIC.format(count=records, change=_CHANGE[adjacency])


def with_count(promise: Guarantee, declared: int | None, records: int) -> Guarantee:
    """The promise with what it assumes of N."""
    words = count_in_words(declared, records, promise.adjacency)
    return dataclasses.replace(promise, assumptions=(*promise.assumptions, words))
