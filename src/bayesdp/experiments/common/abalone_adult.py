"""Abalone and Adult as paper S2 prepares them for logistic regression (D11; J10, J11), with a column of ones.

All rows, every text as one code, standardised with statistics that are declared public, 80 % of the rows to train on:
`data.load("abalone")` and `data.load("adult-dpvi")`. S2 has no intercept; without one a logistic model of standardised
features cannot know that three quarters of the people earn less than 50K.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesdp import data
from bayesdp.data.dataset import Features, Labels


class Split(NamedTuple):
    """Records to train and to test on: `x` with its ones in the first column, `y` 0 or 1; and what was taken public."""

    x: Features
    y: Labels
    x_test: Features
    y_test: Labels
    public: tuple[str, ...]

    @property
    def train(self) -> tuple[Features, Labels]:
        """What a model of `learn.models.regressions` is fitted to."""
        return self.x, self.y


Load = Callable[[int | None, str | Path | None], Split]
"""`abalone`, `adult` or others: the random split of that seed, from that folder."""


def abalone(split_seed: int | None = None, data_dir: str | Path | None = None) -> Split:
    """3,341 abalone to train on, 836 to test on; 8 features; 1: at least 10 rings. None: the first rows of the file."""
    return _split("abalone", split_seed, data_dir)


def adult(split_seed: int | None = None, data_dir: str | Path | None = None) -> Split:
    """39,073 people to train on, 9,769 to test on; 14 features; 1: more than 50K. None: the first rows of the files."""
    return _split("adult-dpvi", split_seed, data_dir)


def _split(name: str, split_seed: int | None, data_dir: str | Path | None) -> Split:
    loaded = data.load(name, data_dir=data_dir, seed=split_seed)
    return Split(_with_ones(loaded.x), loaded.y, _with_ones(loaded.x_test), loaded.y_test, loaded.public)


def _with_ones(x: Features) -> Features:
    return np.concatenate([np.ones((len(x), 1), np.float32), x], axis=1)
