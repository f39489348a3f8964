"""Two protocols of looking at per-record numbers, of which only one leaves DP as it is (paper S3 §5.4, E13).

internal audit    statistics S(D, T) are computed; T(D) is released, the same as without them
audit to modify   what is released, T'(D, S), depends on them
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReleaseProtocol:
    """A protocol: its name, whether the DP guarantee of the release still covers everything, and why."""

    name: str
    keeps_dp: bool
    words: str


INTERNAL = ReleaseProtocol(
    "internal audit",
    True,
    "Nothing that was computed from private data decides what is released: the DP guarantee of the model stands.",
)
MODIFY = ReleaseProtocol(
    "audit to modify",
    False,
    "Numbers computed from private data decide whether the model is kept: the DP guarantee covers the model, not the "
    "decision. Do not publish the decision or its numbers, or pay for them.",
)


def protocol_of(*, from_private_data: bool, decides_release: bool) -> ReleaseProtocol:
    """Which of the two a use of numbers is: only private numbers that decide what is released modify."""
    return MODIFY if from_private_data and decides_release else INTERNAL
