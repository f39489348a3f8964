"""What finding out about columns may cost, and what it did cost (H22).

    noise on every count  =  multiplier · sensitivity,   sensitivity = √(number of histograms)   add-remove
                                                                       √(2 · that) / 2            replace-one

One record adds 1 to one count of each histogram; exchanged, it also takes 1 away from another. An accountant takes the
multiplier for a sum whose records have length 1, where exchanging one moves the sum by 2: hence the half.

What a job pays comes from public quantities: the histograms alone are (share · ε, δ)-DP, and a hundredth of δ is for
levels that only one person has. The share is a tenth, and as much more as brings the noise on a count down to a twelfth
of the number of records, up to six tenths: many columns or few records need more, and costs add up in squares, so that
half of ε for this leaves training with seven eighths. Where even that share leaves more noise, a column of numbers has
one histogram instead of two (`ranges`). The noise of training is then calibrated so that both together keep ε. Without
an ε the share is one of ε = 1.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bayesdp import errors

if TYPE_CHECKING:
    from bayesdp.guarantee import Adjacency

SHARE, MOST_SHARE = 0.1, 0.6
"""Of ε, where nothing is said: at least, and at most."""

NOISE_OF_RECORDS = 1 / 12
"""The noise on a count that is paid for, as a part of the number of records, between these shares. On nine public
tables, 112 to 1,347 records, nine tenths of the columns are found there, and half of them at twice as much."""

OF_DELTA = 0.01
"""Of δ: a tenth of it would lower the threshold for levels by a tenth only."""


@dataclass(frozen=True)
class Payment:
    """What may be spent.

    Args:
        noise_multiplier: of all histograms together, as `WorstCaseAccountant.step` takes it.
        delta: the chance that a level appears which only one person has.
        adjacency: of the guarantees.
        rows_per_person: how many rows one person has at most.
        held_out: the chance of a training record to be held out as a witness: it then has no part in the histograms.
        dearest: the multiplier that many histograms may lower it to, so that noise is a part of `records`; None: no.
        records: how many there are to train on, a public number.
        of_numbers: how many histograms a column of numbers has; fewer where `dearest` leaves too much noise.

    Bad input gets `InputError` naming the field.
    """

    noise_multiplier: float
    delta: float
    adjacency: Adjacency = "add-remove"
    rows_per_person: int = 1
    held_out: float = 0.0
    dearest: float | None = None
    records: int = 0
    of_numbers: int = 2

    def __post_init__(self) -> None:
        from bayesdp.guarantee import ADJACENCIES  # loads SciPy, which reading a table does without

        errors.noise("noise_multiplier", self.noise_multiplier)
        errors.probability("delta", self.delta)
        errors.one_of("adjacency", self.adjacency, ADJACENCIES)
        errors.whole("rows_per_person", self.rows_per_person, least=1)
        errors.number("held_out", self.held_out, least=0, below=1)
        errors.whole("of_numbers", self.of_numbers, least=1, most=2)

    def for_columns(self, numbers: int, others: int) -> tuple[Payment, int]:
        """What is paid for so many columns of numbers and so many other histograms, and how many these are in all."""
        chosen = self
        if self.dearest is not None and numbers:
            least = self.dearest * sensitivity(self.of_numbers * numbers + others, self.adjacency, self.rows_per_person)
            if least > NOISE_OF_RECORDS * self.records:
                chosen = dataclasses.replace(self, of_numbers=1)
        histograms = chosen.of_numbers * numbers + others
        return chosen.for_histograms(histograms), histograms

    def for_histograms(self, histograms: int) -> Payment:
        """What is paid for so many: more where noise would be too much of the number of records, up to `dearest`."""
        if self.dearest is None:
            return self
        moved = sensitivity(histograms, self.adjacency, self.rows_per_person)
        wanted = max(self.dearest, NOISE_OF_RECORDS * self.records / moved)
        return dataclasses.replace(self, noise_multiplier=min(self.noise_multiplier, wanted), dearest=None)

    def noise_std(self, histograms: int) -> float:
        """The standard deviation of the noise on a count of `histograms` unit histograms."""
        return self.noise_multiplier * sensitivity(histograms, self.adjacency, self.rows_per_person)


@dataclass(frozen=True)
class Paid:
    """What was spent: Gaussian noise of `noise_std` on the counts of `histograms` unit histograms, one release.

    `noise_multiplier` is what an accountant charges before the first step, at sampling rate 1; `delta` is added to δ.
    Each training record had no part in it with the chance `held_out`: those who are held out as witnesses.
    """

    noise_std: float
    histograms: int
    noise_multiplier: float
    delta: float
    adjacency: Adjacency = "add-remove"
    rows_per_person: int = 1
    held_out: float = 0.0
    of_numbers: int = 2

    @classmethod
    def by(cls, payment: Payment, histograms: int, *, levels: bool) -> Paid:
        """By a payment for so many histograms; `levels`: some of them chose levels."""
        return cls(
            payment.noise_std(histograms),
            histograms,
            payment.noise_multiplier,
            payment.delta if levels else 0.0,
            payment.adjacency,
            payment.rows_per_person,
            payment.held_out,
            payment.of_numbers,
        )

    def __post_init__(self) -> None:
        own = self.noise_multiplier * sensitivity(self.histograms, self.adjacency, self.rows_per_person)
        if not math.isclose(own, self.noise_std, rel_tol=1e-9):
            raise errors.refuse("noise_std", self.noise_std, f"to be {own:g}, as its multiplier and histograms say")

    @classmethod
    def from_dict(cls, values: Any) -> Paid:
        """The inverse of `dataclasses.asdict`. Bad input gets `InputError`."""
        try:
            return cls(**values)
        except TypeError as problem:
            raise errors.unmet("paid", None, "what preparation cost", f"something else: {problem}") from None


def sensitivity(histograms: int, adjacency: Adjacency, rows_per_person: int = 1) -> float:
    """How far one person moves all counts together (ℓ2), in the unit of an accountant's multiplier."""
    moved = math.sqrt(histograms) if adjacency == "add-remove" else math.sqrt(2 * histograms) / 2
    return rows_per_person * moved


def payment_of(
    *, epsilon: float | None, delta: float, share: float | None, adjacency: Adjacency, held_out: float, records: int
) -> Payment:
    """A `share` of ε for so many `records` to train on; `held_out` is the chance of one to be held out."""
    from bayesdp.divergence.hockey_stick import gaussian_shift  # loads SciPy, which reading a table does without

    whole = 1.0 if epsilon is None else epsilon
    moved = 1.0 if adjacency == "add-remove" else 2.0
    usual = moved / float(gaussian_shift((SHARE if share is None else share) * whole, delta))
    dearest = moved / float(gaussian_shift(MOST_SHARE * whole, delta)) if share is None else None
    return Payment(usual, OF_DELTA * delta, adjacency, held_out=held_out, dearest=dearest, records=records)


def paid_again(paid: Paid) -> Payment:
    """The payment that a job was settled with."""
    unused = 0.5  # no level was chosen, and none will be
    return Payment(
        paid.noise_multiplier,
        paid.delta or unused,
        paid.adjacency,
        paid.rows_per_person,
        held_out=paid.held_out,
        of_numbers=paid.of_numbers,
    )
