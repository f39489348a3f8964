"""How far is the model from one trained without those who asked? The left side of D_α(A(D_r) ‖ A(D_t)) ≤ β (E12).

A chain of neighbours leads from D_r, the data of the last training, to D_t, the data now (`triangle.py`); neighbouring
records whose source speaks for several together are one link.

**Oblivious requests** were fixed without looking at the model: its law is still A(D_r), and the chain is all.

**Adaptive requests** may depend on the model in any way, and change its law (ERR 21). Let E be the event that the k
records since the last training were asked for in this order. Then Pr(model in S | E) ≤ Pr(model in S)/Pr(E), so that

    D_α(A(D_r) given E ‖ A(D_t)) ≤ D_α(A(D_r) ‖ A(D_t)) + α/(α−1) log(1/Pr(E)).

There are M = N!/(N−k)! · C(k−1, t−1) ways to ask for k records in t requests, and k itself may be chosen: those with
Pr(E) < γ/(k(k+1) M) have probability below γ in all. So with probability 1 − γ over the requests, which is how
Definition 5.1 has it, log(1/Pr(E)) ≤ log M + log(k(k+1)/γ). That is the surcharge: some 16 for one of a thousand
records at order 8 and a ledger's failure of 1 %, of which half is γ and half is for studies. The j-th request of all
gets γ/(j(j+1)), so that together they get γ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from bayesdp.unlearn.source import Source
from bayesdp.unlearn.triangle import Way, chain


@dataclass(frozen=True)
class Entry:
    """Records that were forgotten together since the last training, and what bounds their divergence."""

    records: tuple[int, ...]
    source: Source


@dataclass(frozen=True)
class Term:
    """`coefficient` × `divergence`: what these records count on the left side, the divergence being one at `order`."""

    records: tuple[int, ...]
    coefficient: float
    order: float
    divergence: float
    source: str

    @property
    def value(self) -> float:
        return self.coefficient * self.divergence


def left_side(entries: Sequence[Entry], order: float, way: Way) -> tuple[tuple[Term, ...], float]:
    """The terms for what was forgotten since the last training, and their sum, rounded up."""
    parts = _links(entries, way)
    if not parts:
        return (), 0.0
    curves = [partial(one.source.divergence, records=len(one.records)) for one in parts]
    total, found = chain(order, curves, way)
    terms = tuple(
        Term(one.records, link.coefficient, link.order, curve(link.order), one.source.words)
        for one, link, curve in zip(parts, found, curves, strict=True)
    )
    return terms, total


def adaptive_surcharge(entries: Sequence[Entry], order: float, *, records: int, asked: int, failure: float) -> float:
    """What adaptive requests add: this is number `asked` of all, which get `failure` = γ; N is `records`."""
    count = sum(len(entry.records) for entry in entries)
    if count > records:
        return math.inf
    ways = math.lgamma(records + 1) - math.lgamma(records - count + 1)
    ways += math.log(math.comb(count - 1, len(entries) - 1)) + math.log(count * (count + 1))
    share = failure / (asked * (asked + 1))
    return order / (order - 1) * (ways - math.log(share)) * (1 + 1e-12)


def _links(entries: Sequence[Entry], way: Way) -> list[Entry]:
    """The chain: neighbours of one source that speaks for several are one link; others are one record each."""
    apart: list[Entry] = []
    for source, same in groupby(entries, key=lambda entry: entry.source):
        group = list(same)
        if source.joins and way == "best":
            apart.append(Entry(tuple(one for entry in group for one in entry.records), source))
        elif source.joins:
            apart.extend(group)
        else:
            apart.extend(Entry((one,), source) for entry in group for one in entry.records)
    return apart
