"""Orientation: what an ε means for one person, and which ones others have used."""

from __future__ import annotations

from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import table


def section(cited: Cited) -> Html:
    """Two tables and what to be careful with."""
    meaning = [
        (
            (cited.loss(f"derived/orientation/meaning/{row}/epsilon"), " (this one)" if one["own"] else ""),
            cited.most(f"derived/orientation/meaning/{row}/undecided"),
            cited.most(f"derived/orientation/meaning/{row}/doubtful"),
        )
        for row, one in enumerate(cited.value("derived/orientation/meaning"))
    ]
    uses = [
        tuple(cited.text(f"derived/orientation/uses/{row}/{name}") for name in ("what", "epsilon", "unit", "source"))
        for row in range(len(cited.value("derived/orientation/uses")))
    ]
    heads = (
        "DP ε",
        "who starts undecided becomes sure to at most",
        ("who starts with a chance of ", cited.share("derived/orientation/prior"), " becomes sure to at most"),
    )
    return join(
        el(
            "p",
            "What a number means for one person: how sure somebody can become that this person’s record was used, "
            "apart from δ. It is the most that the promise allows, not what happens to most people.",
        ),
        table("DP ε and one person", heads, meaning),
        el(
            "p",
            "What others have used. What is protected differs from line to line: a person for ever, for a day, or one "
            "record. So the numbers are not comparable line by line, and none of them is a recommendation.",
        ),
        table("DP ε in use", ("who, and what", "DP ε", "what is protected", "source"), uses, cards=True),
    )
