"""May records be forgotten without retraining? A budget, and what requests have used of it (SPEC E12, ERR 20, 21).

The model is a draw of A(D_r), D_r being the data of the last training. After further requests the data are D_t. It may
stay as long as

    D_α(A(D_r) ‖ A(D_t)) ≤ β,

which is shown by a chain of neighbours from D_r to D_t (`triangle.py`); neighbouring records whose source speaks for
several together are one link. If the sum passes β the model is trained anew on D_t: its distance to that is 0 again.

**Oblivious requests** were fixed without looking at the model: its law is still A(D_r).

**Adaptive requests** may depend on the model in any way, and change its law (ERR 21). Let E be the event that the k
records since the last training were asked for in this order. Then Pr(model in S | E) ≤ Pr(model in S)/Pr(E), so that

    D_α(A(D_r) given E ‖ A(D_t)) ≤ D_α(A(D_r) ‖ A(D_t)) + α/(α−1) log(1/Pr(E)).

There are M = N!/(N−k)! · C(k−1, t−1) ways to ask for k records in t requests, and k itself may be chosen: those with
Pr(E) < γ/(k(k+1) M) have probability below γ in all. So with probability 1 − γ over the requests, which is how
Definition 5.1 has it, log(1/Pr(E)) ≤ log M + log(k(k+1)/γ). That is the surcharge: some 16 for one of a thousand
records at γ = 1 % and order 8. The j-th request of all gets γ/(2j(j+1)), so that together they get γ/2; studies get
the other half.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Literal, get_args

from bayesdp import errors
from bayesdp.errors import InputError
from bayesdp.unlearn import source as sources
from bayesdp.unlearn.audit import protocol
from bayesdp.unlearn.decision import SAME_PLAN, Decision, Term
from bayesdp.unlearn.source import Source, source_of
from bayesdp.unlearn.triangle import WAYS, Way, chain

Requests = Literal["oblivious", "adaptive"]
REQUESTS: tuple[Requests, ...] = get_args(Requests)

FORMAT = "bayesdp/unlearning"
VERSION = 1

_OBLIVIOUS = "Requests were made without looking at the model or at anything that depends on it (oblivious, ERR 21)."
_ADAPTIVE = (
    "Requests may depend on the model; the statement is about its law given who asked, in which order, and fails for "
    "requests of probability at most half of γ. When they were made is not looked at."
)


@dataclass(frozen=True)
class Entry:
    """Records that were forgotten together since the last training, and what bounds their divergence."""

    records: tuple[int, ...]
    source: Source


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The state of forgetting since a training: frozen; `request` answers with a decision that holds the next one.

    Args:
        budget, order: β and α: a kept model has D_α(model ‖ trained without) ≤ β.
        records: how many records the model was trained on; needed for adaptive requests.
        requests: "oblivious", or "adaptive" if who asks may have seen the model (needs `failure` > 0): see the module.
        failure: γ, the probability with which the whole ledger may be wrong; studies and adaptive requests draw on it.
        way: how the chain is bounded: "best", "doubling" (E12) or "printed" (S3's coefficient, order > 2).
        training: a fingerprint of the training that it belongs to.
        entries, forgotten, asked, spent, due: since the last training; everybody ever forgotten; how many requests; how
            much of γ studies have used; whether retraining is due.

    Bad input gets `InputError` naming the field.
    """

    budget: float
    order: float = 8.0
    records: int | None = None
    requests: Requests = "oblivious"
    failure: float = 0.0
    way: Way = "best"
    training: str = ""
    entries: tuple[Entry, ...] = ()
    forgotten: tuple[int, ...] = ()
    asked: int = 0
    spent: float = 0.0
    due: bool = False

    def __post_init__(self) -> None:
        errors.number("budget", self.budget, above=0)
        errors.number("order", self.order, above=1)
        if self.records is not None:
            errors.whole("records", self.records, least=1)
        errors.one_of("requests", self.requests, REQUESTS)
        errors.number("failure", self.failure, least=0, below=1)
        errors.one_of("way", self.way, WAYS)
        if self.way == "printed" and self.order <= 2:
            hint = "The printed coefficient (α−1)/(α−2) is infinite at 2 and negative below (ERR 20)."
            raise errors.refuse("order", self.order, 'to be above 2 for way="printed"', hint)
        if self.requests == "adaptive" and (self.failure == 0 or self.records is None):
            raise InputError(
                'Expected γ (failure) above 0 and the number of records with requests="adaptive": requests that depend '
                "on the published model change its law (ERR 21), and the bound for them may fail. Give both, or "
                "retrain on every request."
            )
        errors.whole("asked", self.asked, least=0)
        errors.number("spent", self.spent, least=0, below=1)

    def request(self, records: int | Sequence[int], source: Any) -> Decision:
        """Whether the model may stay when these records leave the data, one or several at once.

        `source` bounds how far their leaving moves the law of the model: see `source_of`; a study must compare the data
        as they are now with the data without this one record. Every study that is asked is paid for out of γ, whatever
        it says: asking again until one is kind would not be sound. Once retraining is due the answer stays "retrain".

        Bad input: a record that was forgotten already, no record, an ex-post source, a study that γ does not pay for:
        `InputError`, and nothing has changed.
        """
        who, used = self._checked(records), source_of(source, self.order)
        if len(who) > 1 and isinstance(used, sources.Measured):
            raise errors.refuse("records", list(who), "to be one record for a study", "Ask for one after the other.")
        paid = 0.0 if self.due else used.failure
        if paid > 0 and self.spent + paid > self._for_studies:
            raise InputError(
                f"Expected γ (failure) to pay for a study that fails with probability {paid:g}, got γ = "
                f"{self.failure:g}, of which {self._for_studies:g} is for studies and {self.spent:g} is used. Use the "
                "worst case or a filter's budget, or retrain."
            )
        after = dataclasses.replace(
            self,
            entries=(*self.entries, Entry(who, used)),
            forgotten=(*self.forgotten, *who),
            asked=self.asked + 1,
            spent=self.spent + paid,
        )
        terms, total = ((), math.inf) if self.due else after.arithmetic()
        surcharge = 0.0 if self.due else after._surcharge()
        keep = total + surcharge <= self.budget
        decided_by = self.entries if self.due else after.entries
        return Decision(
            answer="keep" if keep else "retrain",
            records=who,
            order=self.order,
            budget=self.budget,
            left=total + surcharge,
            terms=terms,
            surcharge=surcharge,
            failure=after._failure,
            way=self.way,
            reason="Retraining is due since an earlier request." if self.due else _reason(keep, self.way, len(terms)),
            audit=protocol(from_private_data=any(not one.source.public for one in decided_by), decides_release=True),
            assumptions=after._assumptions(),
            ledger=dataclasses.replace(after, due=not keep),
        )

    def retrained(self, records: int | None = None) -> Ledger:
        """The ledger after training anew without all that were forgotten: nothing is used, they stay forgotten.

        `records` is how many there are now. γ goes on: it is for the ledger's whole life.
        """
        left = records
        if left is None and self.records is not None:
            left = self.records - sum(len(entry.records) for entry in self.entries)
        return dataclasses.replace(self, entries=(), due=False, records=left)

    def arithmetic(self) -> tuple[tuple[Term, ...], float]:
        """The terms of the left side for what was forgotten since the last training, and their sum, rounded up."""
        parts = self._links()
        if not parts:
            return (), 0.0
        curves = [partial(one.source.divergence, records=len(one.records)) for one in parts]
        total, found = chain(self.order, curves, self.way)
        terms = tuple(
            Term(one.records, link.coefficient, link.order, curve(link.order), one.source.words)
            for one, link, curve in zip(parts, found, curves, strict=True)
        )
        return terms, total

    def room(self, source: Any, most: int = 100) -> int:
        """How many more requests of one record this source would let pass: known beforehand where it is public."""
        used, low, high = source_of(source, self.order), 0, errors.whole("most", most, least=1)
        if self.due:
            return 0

        def fits(count: int) -> bool:
            more = tuple(Entry((0,), used) for _ in range(count))
            ledger = dataclasses.replace(self, entries=(*self.entries, *more), asked=self.asked + count)
            if self.spent + count * used.failure > max(self._for_studies, self.spent):
                return False
            return ledger.arithmetic()[1] + ledger._surcharge() <= self.budget

        step = 1
        while low + step <= high and fits(low + step):  # the left side rises with every request
            low, step = low + step, 2 * step
        high = min(high, low + step - 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        values["entries"] = [{"records": list(e.records), "source": e.source.to_dict()} for e in self.entries]
        values["forgotten"] = list(self.forgotten)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Ledger:
        """The inverse of `to_dict`. Anything else gets `InputError`."""
        try:
            entries = tuple(
                Entry(tuple(errors.whole("records", one) for one in each["records"]), sources.from_dict(each["source"]))
                for each in values["entries"]
            )
            return cls(**{**values, "entries": entries, "forgotten": tuple(values["forgotten"])})
        except (TypeError, KeyError, AttributeError) as problem:
            raise InputError(
                f"Expected a ledger as `to_dict` gives it, got one that does not fit: {problem!r}."
            ) from None

    @property
    def _for_studies(self) -> float:
        return self.failure / 2 if self.requests == "adaptive" else self.failure

    @property
    def _failure(self) -> float:
        return self.spent + (self.failure / 2 if self.requests == "adaptive" else 0.0)

    def _checked(self, records: int | Sequence[int]) -> tuple[int, ...]:
        several = list(records) if isinstance(records, Sequence) else [records]
        who = tuple(errors.whole("record", one, least=0) for one in several)
        if not who or len(set(who)) < len(who):
            raise errors.refuse("records", several, "to name at least one record, each once")
        again = sorted(set(who) & set(self.forgotten))
        if again:
            raise errors.refuse("record", again[0], "to be one that was not forgotten yet", "It is forgotten already.")
        return who

    def _links(self) -> list[Entry]:
        """The chain: neighbours of one source that speaks for several are one link; others are one record each."""
        apart: list[Entry] = []
        for source, same in groupby(self.entries, key=lambda entry: entry.source):
            group = list(same)
            if source.joins and self.way == "best":
                apart.append(Entry(tuple(one for entry in group for one in entry.records), source))
            elif source.joins:
                apart.extend(group)
            else:
                apart.extend(Entry((one,), source) for entry in group for one in entry.records)
        return apart

    def _surcharge(self) -> float:
        if self.requests == "oblivious":
            return 0.0
        count = sum(len(entry.records) for entry in self.entries)
        assert self.records is not None
        if count > self.records:
            return math.inf
        ways = math.lgamma(self.records + 1) - math.lgamma(self.records - count + 1)
        ways += math.log(math.comb(count - 1, len(self.entries) - 1)) + math.log(count * (count + 1))
        share = self.failure / 2 / (self.asked * (self.asked + 1))
        return self.order / (self.order - 1) * (ways - math.log(share)) * (1 + 1e-12)

    def _assumptions(self) -> tuple[str, ...]:
        own = dict.fromkeys(entry.source.assumption for entry in self.entries)
        return (SAME_PLAN, _ADAPTIVE if self.requests == "adaptive" else _OBLIVIOUS, *own)


def _reason(keep: bool, way: Way, terms: int) -> str:
    how = {
        "best": " by the chain with the best weights that were tried" if terms > 1 else "",
        "doubling": " by E12's triangle at doubled orders",
        "printed": " with S3's printed coefficient (α−1)/(α−2)",
    }[way]
    if keep:
        return f"Closeness was shown{how}."
    return f"Closeness was not shown{how}. A new model is a second release: its DP ε comes on top of the first one's."
