"""What may be said of a model's quality in public: counts over test records, with noise that was paid for (H25).

    classes    2K counts: of each class, how many test records were answered right, and how many wrong
    errors     3 sums in steps of 1/GRID: records, min(e², b²)/b² and min(y², b²)/b², e the error and y the target, both
               in units of the declared scale

Each record is in one part of the first, or adds at most 1 to each of the three sums: the sensitivity is that many
steps, and noise of scale sensitivity/ε (`mechanism.discrete_laplace`) makes the counts ε-DP for the people tested on,
with δ = 0. All that is computed from the counts is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from bayesdp import errors
from bayesdp.report import part
from bayesdp.report.part import Part

Kind = Literal["classes", "errors"]
GRID, BOUND = 1000, 3.0
"""Steps of a sum in which a record adds 1, and where errors are cut off, in units of the target's scale."""


def sensitivity_of(kind: Kind, adjacency: str) -> int:
    """How many steps one record can move the counts, all together.

    Of classes: 1 if it comes or goes, 2 if it is exchanged and may go from one part to another. Of errors: a record
    that comes or goes adds up to GRID to each of three sums; one that is exchanged leaves the first as it is.
    """
    if kind == "errors":
        return 3 * GRID
    return 1 if adjacency == "add-remove" else 2


@dataclass(frozen=True, kw_only=True)
class PaidMetrics(Part):
    """The noisy `counts`, and what they cost: `epsilon`, at δ = 0.

    `classes` names the classes of kind "classes"; `scale` is the target's, in its own units, of kind "errors".
    Bad input gets `InputError` naming the field.
    """

    kind: Kind
    epsilon: float
    sensitivity: int
    counts: tuple[int, ...]
    classes: tuple[str, ...] = ()
    scale: float = 1.0

    def __post_init__(self) -> None:
        kind: Kind = errors.one_of("kind", self.kind, ("classes", "errors"))
        counts = tuple(errors.whole("counts", one) for one in self.counts)
        classes = part.sentences("classes", self.classes)
        expected = 2 * len(classes) if kind == "classes" else 3
        if len(counts) != expected or not expected:
            raise errors.refuse("counts", len(counts), f"with {expected} entries")
        self._put(
            epsilon=errors.number("epsilon", self.epsilon, above=0),
            sensitivity=errors.whole("sensitivity", self.sensitivity, least=1),
            counts=counts,
            classes=classes,
            scale=errors.number("scale", self.scale, above=0),
        )

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in each count."""
        return _deviation(self.sensitivity / self.epsilon)

    def metrics(self) -> dict[str, float]:
        """What follows from the counts; nothing where noise left no records to speak of."""
        return self._of_classes() if self.kind == "classes" else self._of_errors()

    def _of_classes(self) -> dict[str, float]:
        half = len(self.classes)
        right, wrong = self.counts[:half], self.counts[half:]
        total = sum(self.counts)
        if total <= 0:
            return {}
        largest = max(one + other for one, other in zip(right, wrong, strict=True))
        accuracy = _share(sum(right) / total)
        # Var of a/(a + b), a and b sums of K noisy counts each, to first order in the noise.
        spread = self.noise * math.sqrt(half * ((1 - accuracy) ** 2 + accuracy**2)) / total
        return {
            "test accuracy, with noise": accuracy,
            "accuracy of a constant answer, with noise": _share(largest / total),
            "standard deviation of the noise in the accuracy": spread,
        }

    def _of_errors(self) -> dict[str, float]:
        records, wrong, constant = self.counts
        if records <= 0 or constant <= 0 or wrong < 0:
            return {}
        return {
            "test RMSE, with noise": BOUND * self.scale * math.sqrt(wrong / records),
            "RMSE of a constant answer, with noise": BOUND * self.scale * math.sqrt(constant / records),
            "test R², with noise": 1 - wrong / constant,
        }


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def _deviation(scale: float) -> float:
    """√(2a)/(1 − a), a = e^{−1/scale}: of two-sided geometric noise."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
