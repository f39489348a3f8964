"""How a number stands: proved, or a heuristic, an estimate, unsound, and which of its assumptions say so."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict, get_args

Standing = Literal["proved", "heuristic", "estimate", "unsound"]
STANDINGS: tuple[Standing, ...] = get_args(Standing)
"""From a theorem to what is known to under-report: of several the last counts."""


class Caveat(NamedTuple):
    """An assumption that makes a number no theorem, and what it then is."""

    standing: Standing
    sentence: str


class FinePrint(TypedDict):
    """What a guarantee assumes, which of that are caveats, and how it stands with them: fields of `Guarantee`."""

    assumptions: tuple[str, ...]
    caveats: tuple[str, ...]
    standing: Standing


def assuming(*words: str | Caveat) -> FinePrint:
    """The fine print of a number that rests on `words`: `Guarantee(..., **assuming(_PUBLIC, PRODUCT_RULE))`."""
    caveats = [one for one in words if isinstance(one, Caveat)]
    return {
        "assumptions": tuple(one.sentence if isinstance(one, Caveat) else one for one in words),
        "caveats": tuple(one.sentence for one in caveats),
        "standing": worst_standing(*(one.standing for one in caveats)),
    }


def worst_standing(*standings: Standing) -> Standing:
    """How a number stands that rests on several."""
    return max(standings, key=STANDINGS.index, default="proved")
