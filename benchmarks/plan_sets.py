"""Public sets that plans are chosen and judged on: those of the catalogue, and tables of scikit-learn and statsmodels.

A set is split once into records to train on and records to judge by. Sets of the catalogue give their *training*
records only, so that no test record has a part in any choice. Columns are standardised by the training records, as
`train` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SMALL, WIDE, LARGE = "small", "wide", "large"


@dataclass(frozen=True)
class PlanSet:
    """A set split for validation; `classes` is 0 for a number to predict, `norm` a record's length on average."""

    name: str
    kind: str
    x: Array
    y: Array
    x_valid: Array
    y_valid: Array
    classes: int
    norm: float

    @property
    def features(self) -> int:
        """How many there are."""
        return int(self.x.shape[1])


def table(name: str, x: Array, y: Array, classes: int, columns: int | None = None, share: float = 0.25) -> PlanSet:
    """Split by a fixed permutation and standardised; `columns` before one-hot coding."""
    order = np.random.default_rng(0).permutation(len(x))
    cut = round(len(x) * share)
    valid, train = order[:cut], order[cut:]
    mean, scale = x[train].mean(0), x[train].std(0)
    x = ((x - mean) / np.where(scale > 0, scale, 1)).astype(np.float32)
    if not classes:
        y = (y - y[train].mean()) / y[train].std()
    kind = WIDE if x.shape[1] >= len(train) / 4 else SMALL if len(train) < 2000 else LARGE
    norm = float(np.sqrt(columns or x.shape[1]))
    return PlanSet(name, kind, x[train], y[train], x[valid], y[valid], classes, norm)


def of_catalogue(name: str, most: int | None = None) -> PlanSet:
    """The training records of a set of the catalogue, a quarter of them to judge by."""
    from bayesdp.data import load
    from bayesdp.jobs.plans.default_plan import shape_of

    data = load(name)
    norm = shape_of(data, len(data.x)).average
    assert norm is not None
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data.x))[:most]
    cut = len(order) // 4
    x, y = data.x.reshape(len(data.x), -1), data.y
    kind = SMALL if len(order) - cut < 2000 else LARGE
    valid, train = order[:cut], order[cut:]
    return PlanSet(name, kind, x[train], y[train], x[valid], y[valid], len(data.classes), norm)


def _sklearn(name: str, classes: int) -> Callable[[], PlanSet]:
    def make() -> PlanSet:
        from sklearn import datasets

        raw = getattr(datasets, f"load_{name}")()
        return table(name, raw.data.astype(np.float64), raw.target, classes)

    return make


def _statsmodels(name: str, classes: int) -> Callable[[], PlanSet]:
    def make() -> PlanSet:
        from statsmodels import datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]

        frame = getattr(datasets, name).load_pandas()
        x, y = np.asarray(frame.exog, np.float64), np.asarray(frame.endog, np.float64)
        if y.ndim == 2:
            y = y[:, 0] / y.sum(1)
        if classes:
            codes = np.searchsorted(np.unique(y), y) if classes > 2 else y > np.median(y)
            y = codes.astype(np.float64)
        return table(name, x, y, classes)

    return make


def _wide(noise: int) -> Callable[[], PlanSet]:
    """Digits among columns that say nothing: an even digit or an odd one."""

    def make() -> PlanSet:
        from sklearn.datasets import load_digits

        raw = load_digits()
        more = np.random.default_rng(1).normal(size=(len(raw.data), noise))
        return table(f"digits+{noise}", np.concatenate([raw.data, more], axis=1), raw.target % 2, 2)

    return make


def _made_wide() -> PlanSet:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2667, 2000))
    y = (x[:, :50] @ rng.normal(size=50) / 4 + rng.logistic(size=len(x)) > 0).astype(np.int64)
    return table("made 2000x2000", x, y, 2)


SETS: dict[str, Callable[[], PlanSet]] = {
    "breast-cancer": lambda: of_catalogue("breast-cancer"),
    "digits": lambda: of_catalogue("digits"),
    "abalone": lambda: of_catalogue("abalone"),
    "adult": lambda: of_catalogue("adult"),
    "iris": _sklearn("iris", 3),
    "wine": _sklearn("wine", 3),
    "diabetes": _sklearn("diabetes", 0),
    "fair": _statsmodels("fair", 2),
    "anes96": _statsmodels("anes96", 7),
    "star98": _statsmodels("star98", 0),
    "cancer": _statsmodels("cancer", 0),
    "randhie": _statsmodels("randhie", 0),
    "engel": _statsmodels("engel", 0),
    "heart": _statsmodels("heart", 0),
    "digits+1936": _wide(1936),
    "made 2000x2000": _made_wide,
}
