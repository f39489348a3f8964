"""What the promises of accountants rest on, in words, and how an ex-post statement shares δ out."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from bayesdp.accountant.worst_case import PlanDP
from bayesdp.compose.ex_post import DP_SHARE
from bayesdp.convert import Strength
from bayesdp.rounding import up
from bayesdp.standing import Caveat

HOW = {
    "ex-post": "Costs of the run that happened, by an exponential martingale (H3) over orders fixed in advance (H12).",
    "expected": "Averages over runs at every step (E7, S3 Theorem 3.3); the runs are independent and were trained on "
    "the first data set of the divergence.",
    "one-holder": "One average over runs of the summed cost (H2); the runs are independent and were trained on the "
    "first data set of the divergence.",
    "filter": "Each record takes part until its own Rényi budget is spent, then never again (H4).",
    "gdp-filter": "Each record takes part until its own Gaussian budget is spent, then never again (H4).",
}
PUBLIC = "Orders, weights, noise, rates and stopping were fixed without looking at the data (H5, H12)."
CHARGED = "Each record's cost is its own divergence given the past, charged whether it was sampled or not (H4)."

NAMED = "Each record was named before the run; of one that is picked afterwards nothing is said (H19)."


ALIKE = Caveat(
    "heuristic",
    "Runs on one of the two data sets average one direction; the other is taken to average alike (E1). A study has "
    "runs of both.",
)


CHOSEN = (
    "Budgets are part of the records that they belong to and were chosen without looking at others; this is the "
    "largest, which is public (H4)."
)
OWN_BUDGET = "This is the record's own budget, chosen without looking at other records; others have theirs (H4)."


def named_beforehand(count: int, records: str) -> str:
    """In words, whom a per-instance promise is for: never to the one whose number turned out the largest (H19)."""
    if count == 1:
        return f"the {records.removesuffix('s')}"
    return f"each of {count:,} {records}, named beforehand; the largest is shown"


class Form(NamedTuple):
    """What a form of the ex-post statement says, and how it shares δ out."""

    words: tuple[str, ...]
    delta_split: dict[str, float]


def form(strength: Strength, delta: float, dp: PlanDP | None) -> Form:
    """Of the strong (H12) or weak form (H14), the latter mixed with what the plan promises everybody where known."""
    if strength == "strong":
        return Form(("Bounds the loss itself at all times of the run (H12).",), {"ex-post": delta})
    if dp is None:
        return Form(("Hockey-stick form, at one time of the run (H14).",), {"ex-post": delta})
    mixed = (
        f"Hockey-stick form, at one time of the run, mixed with what all planned steps promise, DP ε = "
        f"{up(dp.at_share)} at {DP_SHARE:g} δ, as one more test function (H14)."
    )
    return Form((mixed,), {"ex-post": (1 - DP_SHARE) * delta, "dp": DP_SHARE * delta})


OUTSIDERS = "Outsiders are independent draws of the population, fixed before the run, and never influenced it (H5)."
MEMBERS = "Members who are witnesses were drawn from this data set before the run, and speak for this data set (H5)."
COUNTED = "All members were measured: the share of this data set is counted, not estimated (H16)."
ALONG = (
    "The costs of each witness along the run, by an exponential martingale over orders fixed in advance (H3, H5, H12)."
)


def drawn(sides: Collection[str], members_counted: bool) -> list[str]:
    """How witnesses of these orientations were come by, and so whom they speak for."""
    outsiders = [OUTSIDERS] if {"absent", "exchanged"} & set(sides) else []
    if "present" not in sides:
        return outsiders
    return [*outsiders, COUNTED if members_counted else MEMBERS]


ITS_OWN = (
    "The share was fixed beforehand; a curve over all shares is a statement of its own, with a failure of its own."
)
COMPOSED: dict[str, str | Caveat] = {
    "holder": "S0's Hölder composition over a number of steps fixed in advance (C7).",
    "product": Caveat(
        "unsound", "UNSOUND: S1's product rule treats the same person as a new one at every step (C6, ERR 1)."
    ),
}
ADAPTIVE = (
    "Costs of a step must not depend on earlier outcomes, or be a supremum over them (C7, ERR 2): in training they do."
)
