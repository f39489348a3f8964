"""Keep or retrain, with the arithmetic: what a ledger answers (SPEC E12, E13)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from bayesdp import convert
from bayesdp.rounding import up
from bayesdp.unlearn.audit import Audit

if TYPE_CHECKING:
    from bayesdp.unlearn.ledger import Ledger

Answer = Literal["keep", "retrain"]

SAME_PLAN = (
    "The model is compared with the same plan on the data without the records: the same rate, noise, steps, divisor, "
    "preparation of the data and law of the initial parameters."
)


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


@dataclass(frozen=True)
class Decision:
    """Whether `D_α(model ‖ model trained without the records) ≤ β` was shown: "keep", or else "retrain".

    `left` is the sum of the `terms` and of `surcharge` (requests that may depend on the model), `budget` is β. With
    "keep" it holds with probability 1 − `failure`. `audit` says whether the DP guarantee covers this decision. `ledger`
    is the ledger after it: go on with that one.
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
    audit: Audit
    assumptions: tuple[str, ...]
    ledger: Ledger = field(repr=False)

    def epsilon(self, delta: float) -> float:
        """ε at δ of "model" against "trained without" that the left side amounts to (B10), one direction."""
        return float(convert.epsilon([(self.order - 1) * self.left], [self.order], delta))

    @property
    def told_apart(self) -> float:
        """How often, at most, the model can be told from one trained without the records, half of each being shown.

        (1 + TV)/2 with TV ≤ √(D/2) (Pinsker) and TV ≤ √(1 − e^{−D}) (Bretagnolle and Huber), D ≥ D_α ≥ KL being `left`.
        """
        return (1 + math.sqrt(min(self.left / 2, -math.expm1(-self.left)))) / 2

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
            "audit": {"name": self.audit.name, "keeps_dp": self.audit.keeps_dp, "words": self.audit.words},
            "assumptions": list(self.assumptions),
            "sensitive": not self.audit.keeps_dp,
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
        return f"{verb} to forget {who}: {sum_}{sure}. {self.reason} ({self.audit.name}: {self.audit.words})"


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
