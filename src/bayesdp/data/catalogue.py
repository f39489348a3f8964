"""Data sets by name, or a file of the user's own: `load`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesdp.data import builtin, images, uci
from bayesdp.data.dataset import Dataset, Task, with_features
from bayesdp.data.own import ENDINGS, Options, load_own
from bayesdp.data.places import Places
from bayesdp.data.recipe import IMAGE_FEATURES, ImageFeatures, Scale
from bayesdp.errors import InputError, one_of, whole


@dataclass(frozen=True)
class Entry:
    """A data set known by name: one line on it, and its loader.

    The loader takes `places` unless the data set comes `built_in`, and `seed` unless its split is `official`.
    """

    summary: str
    loader: Callable[..., Dataset]
    built_in: bool = False
    official: bool = False

    def load(self, places: Places, seed: int | None) -> Dataset:
        return self.loader(**({} if self.built_in else {"places": places}), **({} if self.official else {"seed": seed}))


CATALOGUE: dict[str, Entry] = {
    "digits": Entry("1,797 handwritten digits, 8x8", builtin.digits, built_in=True),
    "breast-cancer": Entry("569 tumours, malignant or benign", builtin.breast_cancer, built_in=True),
    "adult": Entry("48,842 people, income above 50K or not; texts one-hot", uci.adult, official=True),
    "adult-dpvi": Entry("the same as in the DPVI paper: 14 columns, texts as codes, 80 % to train on", uci.adult_dpvi),
    "abalone": Entry("4,177 abalone, 10 rings and more or fewer, as in the DPVI paper", uci.abalone),
    "mnist": Entry("70,000 handwritten digits, 28x28", images.mnist, official=True),
    "cifar10": Entry("60,000 photographs in colour, 32x32", images.cifar10, official=True),
    "svhn": Entry("99,289 house-number digits in colour, 32x32", images.svhn, official=True),
}
"""The data sets that `load` knows by name."""


def load(
    name_or_path: str | os.PathLike[str],
    *,
    target: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    task: Task | None = None,
    scale: Scale | None = None,
    categories: Sequence[str] = (),
    drop: Sequence[str] = (),
    test_share: float | None = None,
    seed: int | None = None,
    features: ImageFeatures | None = None,
    target_scale: Scale | None = None,
    unlabelled: bool = False,
) -> Dataset:
    """A data set by name (see `CATALOGUE`), or from a CSV, Parquet or NPZ file.

    By name: its files are looked for in `data_dir`, the folder that `BAYESDP_DATA` names and the user's cache, and
    else downloaded into the cache from the original source, checked by sha256, unless `download` is False. `seed`
    draws another train/test split where there is no official one.

    From a table: `target` names the column to learn. `task` is "classification" or "regression" if the guess from
    the target (see `target.read_target`) is not right. Columns of numbers, and a target of numbers, are standardised
    with the statistics of the training records unless `scale` (for the target alone: `target_scale`) is "none"; columns
    of texts, and those named in `categories`, become one feature for each category; those named in `drop` are left
    out. A random `test_share` (0.2) of the rows, drawn with `seed` (0), is kept for testing. `unlabelled`: there is
    nothing to predict, every column but the `target`, if one is named, is a feature.
    From an NPZ: arrays `x` and `y`, and if there are test records `x_test` and `y_test`. `x` of two dimensions is a
    table of numbers; of three or four, images: bytes are divided by 255, other numbers are taken as they are.

    `features="scattering"` turns images into scattering features (`data.scattering`, H13), on which a linear model
    goes far: for 28x28 pixels an image of 8x8 with 81 channels. It becomes part of the recipe.

    Whatever this takes from the data is declared public, in words, in `Dataset.public`.

    Bad input, each with `InputError`: an unknown name (the known ones are listed), a missing or damaged file, files
    that cannot be downloaded (with what to put where), a missing target column, an absent or non-numeric value
    (with its row and column), one class only, fewer than `own.LEAST_ROWS` rows, too many categories, scattering of
    what is no image, or an option that has no meaning for this data set.
    """
    if features is not None:
        one_of("features", features, IMAGE_FEATURES)
    options = Options(target, task, scale, categories, drop, test_share, seed, target_scale, unlabelled)
    name = _known(name_or_path)
    if name is None:
        return with_features(load_own(Path(name_or_path).expanduser(), options), features)
    if options != Options(seed=seed):
        raise InputError(
            f"Expected target, task, scale, categories, drop and test_share to be left out for data={name!r}, "
            "which is prepared in a fixed way, got one of them. They are for a file of your own."
        )
    entry = CATALOGUE[name]
    if entry.official and seed is not None:
        raise InputError(
            f"Expected seed to be left out for data={name!r}, which has an official test set, got {seed!r}."
        )
    loaded = entry.load(Places(data_dir, download), None if seed is None else whole("seed", seed, least=0))
    return with_features(loaded, features)


def _known(name_or_path: str | os.PathLike[str]) -> str | None:
    """The name in the catalogue, or None for a path; `InputError` for what is neither."""
    if not isinstance(name_or_path, str):
        return None
    name = name_or_path.strip().lower().replace("_", "-")
    if name in CATALOGUE:
        return name
    path = Path(name_or_path)
    if path.suffix.lower() in ENDINGS or len(path.parts) > 1 or path.exists():
        return None
    close = difflib.get_close_matches(name, CATALOGUE, 1, 0.6)
    raise InputError(
        f"Expected data to be one of {', '.join(map(repr, CATALOGUE))} or a file that ends in {', '.join(ENDINGS)}, "
        f"got data={name_or_path!r}." + (f" Did you mean {close[0]!r}?" if close else "")
    )
