"""Keep or retrain? A budget, what requests have used of it, and the answer with its arithmetic (E12, E13).

The model is a draw of A(D_r), D_r being the data of the last training. After further requests the data are D_t. It may
stay as long as

    D_α(A(D_r) ‖ A(D_t)) ≤ β,

whose left side `closeness.py` bounds. If that passes β the model is trained anew on D_t: its distance to that is 0
again. Of γ, with which all of it may fail, studies have the whole, or half beside adaptive requests.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bayesdp import convert, errors
from bayesdp.rounding import up
from bayesdp.unlearn import source as sources
from bayesdp.unlearn import variation
from bayesdp.unlearn.budget import ORDER
from bayesdp.unlearn.closeness import Entry, Term, adaptive_surcharge, left_side
from bayesdp.unlearn.protocol import ReleaseProtocol, protocol_of
from bayesdp.unlearn.source import source_of
from bayesdp.unlearn.triangle import WAYS, Way

Answer = Literal["keep", "retrain"]
Requests = Literal["oblivious", "adaptive"]
REQUESTS: tuple[Requests, ...] = get_args(Requests)

_SAME_PLAN = (
    "The model is compared with the same plan on the data without the records: the same rate, noise, steps, divisor, "
    "preparation of the data and law of the initial parameters."
)
_OBLIVIOUS = "Requests were made without looking at the model or at anything that depends on it (oblivious, ERR 21)."
_ADAPTIVE = (
    "Requests may depend on the model; the statement is about its law given who asked, in which order, and fails for "
    "requests of probability at most half of γ. When they were made is not looked at."
)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The state of forgetting since a training: frozen; `request` answers with a decision that holds the next one.

    Args:
        budget: β: a kept model has D_α(model ‖ trained without) ≤ β. `unlearn.budget` finds β for an (ε, δ) or for an
            attacker's success.
        order: the Rényi order α.
        records: how many records the model was trained on; needed for adaptive requests.
        requests: "oblivious", or "adaptive" if who asks may have seen the model (needs `failure` > 0): see `closeness`.
        failure: γ, the probability with which the whole ledger may be wrong; studies and adaptive requests draw on it.
        way: how the chain is bounded: "best", "doubling" (weak triangle, E12) or "printed" (S3's, order > 2).
        training: a fingerprint of the training that it belongs to.
        entries: who was forgotten since the last training, and at what cost.
        forgotten: everybody ever forgotten.
        asked: how many requests there were.
        spent: how much of γ studies have used.
        due: whether retraining is due.

    Bad input gets `InputError` naming the field.
    """

    budget: float
    order: float = ORDER
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
            raise errors.unmet(
                "failure",
                self.failure,
                f'γ (failure) above 0 and the number of records with {errors.named("requests")}="adaptive": requests '
                "that depend on the published model change its law (ERR 21), and the bound for them may fail",
                hint="Give both, or retrain on every request.",
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
            raise errors.unmet(
                "failure",
                self.failure,
                f"γ (failure) to pay for a study that fails with probability {paid:g}",
                f"γ = {self.failure:g}, of which {self._for_studies:g} is for studies and {self.spent:g} is used",
                "Use the worst case or a filter's budget, or retrain.",
            )
        after = dataclasses.replace(
            self,
            entries=(*self.entries, Entry(who, used)),
            forgotten=(*self.forgotten, *who),
            asked=self.asked + 1,
            spent=self.spent + paid,
        )
        terms, total = ((), math.inf) if self.due else left_side(after.entries, self.order, self.way)
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
            protocol=protocol_of(
                from_private_data=any(not one.source.public for one in decided_by), decides_release=True
            ),
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
            return left_side(ledger.entries, self.order, self.way)[1] + ledger._surcharge() <= self.budget

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
            raise errors.unmet(
                "ledger", None, "a ledger as `to_dict` gives it", f"one that does not fit: {problem!r}"
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

    def _surcharge(self) -> float:
        if self.requests == "oblivious":
            return 0.0
        assert self.records is not None
        return adaptive_surcharge(
            self.entries, self.order, records=self.records, asked=self.asked, failure=self.failure / 2
        )

    def _assumptions(self) -> tuple[str, ...]:
        own = dict.fromkeys(entry.source.assumption for entry in self.entries)
        return (_SAME_PLAN, _ADAPTIVE if self.requests == "adaptive" else _OBLIVIOUS, *own)


@dataclass(frozen=True)
class Decision:
    """Whether `D_α(model ‖ model trained without the records) ≤ β` was shown: "keep", or else "retrain".

    `left` is the sum of the `terms` and of `surcharge` (requests that may depend on the model), `budget` is β. With
    "keep" it holds with probability 1 − `failure`. `protocol` says whether the DP guarantee covers this decision.
    `ledger` is the ledger after it: go on with that one.
    """

    answer: Answer
    records: tuple[int, ...]
    order: float
    budget: float
    left: float
    terms: tuple[Term, ...]
    surcharge: float
    failure: float
    way: str
    reason: str
    protocol: ReleaseProtocol
    assumptions: tuple[str, ...]
    ledger: Ledger = field(repr=False)

    def epsilon(self, delta: float) -> float:
        """ε at δ of "model" against "trained without" that the left side amounts to (B10), one direction."""
        return float(convert.epsilon([(self.order - 1) * self.left], [self.order], delta))

    @property
    def told_apart(self) -> float:
        """How often, at most, the model can be told from one trained without the records, half of each being shown.

        (1 + TV)/2. Where requests were oblivious TV is the sum of that of each of them, exact for the worst case and a
        Gaussian filter, whose shifts are fixed beforehand (`variation`); and never more than D_α ≤ `left` allows.
        """
        close = variation.from_divergence(self.left, self.order)
        if self.terms and not self.surcharge:
            close = min(close, sum(one.source.variation(len(one.records)) for one in self.ledger.entries))
        return (1 + close) / 2

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; infinite ones are the string "inf"."""
        return {
            "answer": self.answer,
            "records": list(self.records),
            "order": self.order,
            "budget": self.budget,
            "left": _plain(self.left),
            "terms": [
                {
                    "records": list(one.records),
                    "coefficient": one.coefficient,
                    "order": one.order,
                    "divergence": _plain(one.divergence),
                    "source": one.source,
                }
                for one in self.terms
            ],
            "surcharge": _plain(self.surcharge),
            "told_apart": self.told_apart,
            "failure": self.failure,
            "way": self.way,
            "reason": self.reason,
            "protocol": {"name": self.protocol.name, "keeps_dp": self.protocol.keeps_dp, "words": self.protocol.words},
            "assumptions": list(self.assumptions),
            "sensitive": not self.protocol.keeps_dp,
        }

    def __str__(self) -> str:
        who = f"record{'s' if len(self.records) > 1 else ''} {', '.join(map(str, self.records))}"
        verb = "Keep the model" if self.answer == "keep" else "Retrain"
        if not self.terms:
            return f"{verb} to forget {who}: {self.reason}"
        parts = [
            f"{up(one.coefficient)} × {up(one.divergence)} (order {up(one.order)}, {one.source})" for one in self.terms
        ]
        if self.surcharge:
            parts.append(f"{up(self.surcharge)} for requests that may depend on the model")
        sign = "≤" if self.left <= self.budget else ">"
        sum_ = f"{' + '.join(parts)} = {up(self.left)} {sign} β = {self.budget:g} at order α = {self.order:g}"
        sure = f", with confidence {1 - self.failure:g}" if self.failure and self.answer == "keep" else ""
        return f"{verb} to forget {who}: {sum_}{sure}. {self.reason} ({self.protocol.name}: {self.protocol.words})"


def _reason(keep: bool, way: Way, terms: int) -> str:
    how = {
        "best": " by the chain with the best weights that were tried" if terms > 1 else "",
        "doubling": " by E12's triangle at doubled orders",
        "printed": " with S3's printed coefficient (α−1)/(α−2)",
    }[way]
    if keep:
        return f"Closeness was shown{how}."
    return f"Closeness was not shown{how}. A new model is a second release: its DP ε comes on top of the first one's."


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
