"""What an ε means for one person, and which ε others have used: an orientation, not a yardstick.

    sure(ε)   e^ε/(1 + e^ε)                    who starts undecided
              π e^ε/(π e^ε + 1 − π)            who starts with the chance π (B12, without δ)

Others' numbers are as they were published; what one of them protects (a record, a person for a day, a person for ever)
differs, so that they cannot be compared line by line.
"""

from __future__ import annotations

from typing import NamedTuple

from bayesdp import convert

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
PRIOR = 0.01
"""The chance that somebody starts with who thinks it unlikely."""


class Use(NamedTuple):
    """One published use: of what, with which ε, protecting what, and where that is written."""

    what: str
    epsilon: str
    unit: str
    source: str


USES = (
    Use(
        "United States Census of 2020, redistricting data",
        "19.61",
        "a person's answers, once",
        "Census Bureau, production settings, June 2021",
    ),
    Use(
        "Google, community mobility reports",
        "2.64",
        "a person's day",
        "Aktay et al. 2020, arXiv 2004.04145",
    ),
    Use(
        "Google, next-word model of a phone keyboard",
        "8.9 (δ = 1e-10)",
        "a person's device, in that training",
        "Google AI Blog, February 2022",
    ),
    Use(
        "Apple, popular emoji",
        "4",
        "a person's day, before it leaves the phone",
        "Apple, Differential Privacy Overview, 2017",
    ),
    Use(
        "Microsoft, assistive AI",
        "4 (δ below 1e-7)",
        "a person",
        "OpenDP Deployments Registry",
    ),
    Use(
        "First private deep learning, digits of MNIST",
        "0.5, 2 and 8 (δ = 1e-5)",
        "one picture",
        "Abadi et al. 2016, arXiv 1607.00133",
    ),
)


def meaning(own: float | None) -> list[dict[str, float | bool]]:
    """How sure an ε allows somebody to become, for a few ε and for `own`, in rising order."""
    known = own is not None and own <= 100
    # One of the few that is as good as equal would be the same line twice.
    shown = {one for one in EPSILONS if own is None or not known or abs(one - own) > 0.01 * one}
    shown |= {own} if own is not None and known else set()
    return [
        {
            "epsilon": one,
            "own": one == own,
            "undecided": convert.attacker_success(one, 0.0),
            "doubtful": convert.attacker_success(one, 0.0, PRIOR),
        }
        for one in sorted(shown)
    ]
