"""Group by group: the Bayesian ε of each group of people, as a table."""

from __future__ import annotations

import math

from bayesdp.report.group_losses import GroupLosses
from bayesdp.report.html.cited import Cited
from bayesdp.report.html.markup import Html, el, join
from bayesdp.report.html.tables import table

_WITNESSES = {"absent": "witnesses outside", "present": "witnesses among the members"}


def section(groups: GroupLosses, cited: Cited) -> Html:
    """What the table says, and the table."""
    share = cited.share("report/groups/coverage")
    words: list[object] = ["The Bayesian ε that at least ", share, " of the people of each group stay within. "]
    words += ["All groups hold together, with confidence ", cited.share("derived/groups/confidence"), ". "]
    if None in groups.epsilon:
        words += ["A group with fewer than ", cited.count("report/groups/needed"), " witnesses of a kind is too small "]
        words += ["to speak for: its people have what everybody has."]
    sides = list(groups.witnesses)
    rows = [
        (
            cited.text(f"report/groups/names/{place}") if name else "–",
            *(cited.count(f"report/groups/witnesses/{side}/{place}") for side in sides),
            _loss(place, loss, cited),
            cited.most(f"derived/groups/rows/{place}/attacker_success"),
        )
        for place, (name, loss) in enumerate(zip(groups.names, groups.epsilon, strict=True))
    ]
    if groups.epsilon and all(one is None for one in groups.epsilon):
        few = ("Every group has fewer than ", cited.count("report/groups/needed"), " witnesses of a kind, ")
        return el("p", *few, _loss(0, None, cited), ".")
    heads = ("group", *(_WITNESSES[side] for side in sides), "Bayesian ε", "attacker success")
    return join(el("p", words), table("Bayesian ε by group", heads, rows))


def _loss(place: int, loss: float | None, cited: Cited) -> object:
    finite = math.isfinite(cited.number("derived/groups/dp"))
    everybody = ("DP ε ", cited.loss("derived/groups/dp")) if finite else ("no guarantee",)
    if loss is None:
        return "too few witnesses to speak for: ", *everybody
    if cited.value(f"derived/groups/rows/{place}/won") == "dp":
        return "no better than for everybody: ", *everybody
    return cited.loss(f"report/groups/epsilon/{place}")
