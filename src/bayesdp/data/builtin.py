"""Data sets that come with scikit-learn: always there, no network needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesdp.data.dataset import Dataset, shuffled
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.recipe import find_recipe
from bayesdp.data.table import Table
from bayesdp.errors import Argument, unmet

TRAIN_SHARE = 0.8


def digits(seed: int | None = None) -> Dataset:
    """1,797 handwritten digits, 8×8 grey levels from 0 to 16, divided by 16; 80 % to train on.

    The split is a fixed random one (seed 0) unless a seed is given. Nothing but N is taken from the data.
    """
    raw = _datasets("digits").load_digits()
    recipe = ImageRecipe((8, 8, 1), 16.0)
    x, y = recipe.apply(raw.images), raw.target.astype(np.int32)
    train, test = shuffled(len(x), seed or 0, int(TRAIN_SHARE * len(x)))
    return Dataset.of_rows(
        x,
        y,
        train,
        test,
        name="digits",
        task="classification",
        classes=tuple(map(str, range(10))),
        image_shape=recipe.shape,
        recipe=recipe,
        source="scikit-learn's digits",
    )


def breast_cancer(seed: int | None = None) -> Dataset:
    """569 tumours, 30 measurements, malignant (0) or benign (1); 80 % to train on.

    Standardised with the means and scales of the training records, which are declared public. The split is a fixed
    random one (seed 0) unless a seed is given.
    """
    raw = _datasets("breast-cancer").load_breast_cancer()
    names = tuple(map(str, raw.feature_names))
    table = Table("scikit-learn's breast cancer", dict(zip(names, raw.data.T, strict=True)), lambda row: f"row {row}")
    train, test = shuffled(len(table), seed or 0, int(TRAIN_SHARE * len(table)))
    recipe = find_recipe(table, names, train)
    x, y = recipe.apply(table), raw.target.astype(np.int32)
    return Dataset.of_rows(
        x,
        y,
        train,
        test,
        name="breast-cancer",
        task="classification",
        classes=tuple(map(str, raw.target_names)),
        feature_names=recipe.feature_names,
        public=recipe.public("the training records"),
        recipe=recipe,
        source="scikit-learn's breast cancer (Wisconsin, diagnostic)",
    )


def _datasets(name: str) -> Any:
    try:
        from sklearn import datasets
    except ImportError:
        raise unmet(
            "data",
            name,
            f"scikit-learn to be installed for {Argument('data', name)}",
            "none",
            "Run: pip install scikit-learn.",
        ) from None
    return datasets
