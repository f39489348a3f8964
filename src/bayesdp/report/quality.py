"""How good a model is on test records, from what it says of each: for the eyes of those who hold the data.

    classes    AUC (the chance that one of the class is ranked above one that is not, ties count half), log-loss,
               precision and recall, and how often each class was taken for each (`Confusion`)
    numbers    R² = 1 − Σ(y − ŷ)²/Σ(y − ȳ)², the root mean squared error in the target's own units

Everything here is computed from test records without noise: sensitive. What may be published is `report.paid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from bayesdp import errors
from bayesdp.errors import Array
from bayesdp.report import part
from bayesdp.report.part import Part

_LEAST = 1e-15
"""A probability of 0 counts as this in the log-loss."""

SHARES = ("accuracy", "error rate", "recall", "precision")
"""Metrics with such a word in their name are shares, written in percent."""


@dataclass(frozen=True, kw_only=True)
class Confusion(Part):
    """`counts[k][j]`: how many test records of class k the model took for class j.

    Bad input: fewer than two classes, or counts of another shape, get `InputError`.
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        names = part.sentences("classes", self.classes)
        square = errors.array("counts", self.counts, ndim=2, least=0)
        if len(names) < 2 or square.shape != (len(names), len(names)):
            raise errors.refuse("counts", square.shape, f"with a row and a column for each of {len(names)} classes")
        self._put(classes=names, counts=tuple(tuple(map(int, row)) for row in square))

    @classmethod
    def of(cls, classes: tuple[str, ...], truth: npt.NDArray[Any], answers: npt.NDArray[Any]) -> Confusion:
        """From the class numbers of records and what the model took them for."""
        counts = np.zeros((len(classes), len(classes)), np.int64)
        np.add.at(counts, (truth, answers), 1)
        return cls(classes=classes, counts=tuple(map(tuple, counts.tolist())))

    @property
    def recall(self) -> tuple[float | None, ...]:
        """Of each class, the share that was found; None where there was nobody to find."""
        square = np.array(self.counts)
        return _shares(np.diag(square), square.sum(axis=1))

    @property
    def precision(self) -> tuple[float | None, ...]:
        """Of those taken for each class, the share that was right; None where nobody was."""
        square = np.array(self.counts)
        return _shares(np.diag(square), square.sum(axis=0))


def is_share(name: str) -> bool:
    """Whether a metric of that name is a share, written in percent."""
    return any(word in name.lower() for word in SHARES)


def of_classes(classes: tuple[str, ...], probabilities: Array, truth: npt.NDArray[Any]) -> dict[str, float]:
    """Log-loss, AUC, precision and recall on records whose class numbers are `truth` (records,).

    `probabilities` (records, classes). Of two classes the numbers are those of the second; of more, the mean over
    classes, those left out for which they are not defined. What is not defined at all is left out.
    """
    known = np.clip(probabilities[np.arange(len(truth)), truth].astype(np.float64), _LEAST, 1.0)
    found = {"test log-loss": float(-np.log(known).mean())}
    seen = Confusion.of(classes, truth, probabilities.argmax(axis=1))
    several = len(classes) > 2
    judged = range(len(classes)) if several else (1,)
    whose = "mean over classes" if several else f"of {classes[1]}"
    areas = [auc(probabilities[:, one], truth == one) for one in judged]
    for name, values in (
        ("test AUC", areas),
        ("test precision", [seen.precision[one] for one in judged]),
        ("test recall", [seen.recall[one] for one in judged]),
    ):
        defined = [value for value in values if value is not None]
        if defined:
            found[f"{name} ({whose})"] = float(np.mean(defined))
    return found


def of_numbers(predicted: Array, truth: npt.NDArray[Any]) -> dict[str, float]:
    """R² on these records; nothing where all targets are alike."""
    spread = float(np.sum((truth - np.mean(truth)) ** 2))
    return {} if spread == 0 else {"test R²": 1 - float(np.sum((predicted - truth) ** 2)) / spread}


def auc(scores: Array, positive: npt.NDArray[np.bool_]) -> float | None:
    """The area under the ROC curve; None where one of the two kinds is missing or a score is not a number."""
    count = int(positive.sum())
    if count in (0, len(positive)) or not np.isfinite(scores).all():
        return None
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(positive) - count)))


def _shares(hits: npt.NDArray[Any], totals: npt.NDArray[Any]) -> tuple[float | None, ...]:
    return tuple(int(hit) / int(total) if total else None for hit, total in zip(hits, totals, strict=True))
