"""Data sets by name, or a file of the user's own: `load`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from bayesdp.data import builtin, images, uci
from bayesdp.data.checking import Checked, checked
from bayesdp.data.dataset import Dataset, Task, with_features
from bayesdp.data.features.extractor import is_file
from bayesdp.data.features.image_recipe import IMAGE_FEATURES, ImageFeatures
from bayesdp.data.own import ENDINGS, Options, load_frame, load_own
from bayesdp.data.payment import Payment
from bayesdp.data.places import Places
from bayesdp.data.preparation.declared import Levels, Range
from bayesdp.data.recipe import Scale
from bayesdp.data.table_file import TABLE_ENDINGS, read_table
from bayesdp.data.tables.frame import Frame, frame_table
from bayesdp.errors import Argument, named, one_of, refuse, unmet, whole

_OWN = ("target", "task", "scale", "categories", "drop", "keep", "read", "missing", "bounds", "levels", "person")
"""Options that only a file of the user's own takes, `test_share` beside them."""


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
    name_or_path: str | os.PathLike[str] | Frame,
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
    feature_norm: float | None = None,
    keep_features: bool = False,
    target_scale: Scale | None = None,
    unlabelled: bool = False,
    draw: int | None = None,
    keep: Sequence[str] = (),
    read: Sequence[str] = (),
    missing: str | Sequence[str] = (),
    bounds: Sequence[Range] = (),
    levels: Sequence[Levels] = (),
    payment: Payment | Callable[[int, float], Payment] | None = None,
    few: int = 0,
    person: str | None = None,
    rows_per_person: int | None = None,
) -> Dataset:
    """A data set by name (see `CATALOGUE`), from a CSV, TSV, Parquet or NPZ file, or from a data frame.

    By name: its files are looked for in `data_dir`, the folder that `BAYESDP_DATA` names and the user's cache, and
    else downloaded into the cache from the original source, checked by sha256, unless `download` is False. `seed`
    draws another train/test split where there is no official one.

    From a table: `target` names the column to learn. `task` is "classification" or "regression" if the guess from
    the target (see `target.read_target`) is not right. Columns of numbers, and a target of numbers, are standardised
    with the statistics of the training records unless `scale` (for the target alone: `target_scale`) is "none"; columns
    of texts, and those named in `categories`, become one feature for each category; those named in `drop` are left
    out, and so are likely identifiers unless they are named in `keep`. Numbers with other separators or percent signs,
    dates, times and truth values are seen as such, or declared in `read`, as "COLUMN=KIND" (`tables.cells`); `missing`
    says what is done where there is no value, for all columns or as "COLUMN=RULE" (`tables.missing`). `check` tells all
    that is wrong with a table at once. Rows without a target are left out. `bounds`, (column, low, high) each, and
    `levels`, (column, levels) each, are known beforehand and take the place of statistics, of the target too. With
    `scale="private"` all that was not declared is found by noisy counts (`preparation.prepare`) at the price of
    `payment`, or of what it is for the number of training records and the test share: `Dataset.paid` then goes to the
    plan (`prelude`).
    Each row is kept for testing with chance `test_share` (0.2), by a coin of its own (`coins`), from the operating
    system unless there is a `seed`, with which the same rows are kept every time; `draw`, a secret number, does the
    same for a job, and is ignored where test records are fixed. Of fewer than `few` rows none is kept unless
    `test_share` is given. `unlabelled`: there is nothing to predict, every column
    but the `target`, if one is named, is a feature.
    From an NPZ: arrays `x` and `y`, and if there are test records `x_test` and `y_test`. `x` of two dimensions is a
    table of numbers; of three or four, images: bytes are divided by 255, other numbers are taken as they are.

    `person` names the column (of an NPZ, the array) that says whose row each is, where people have several: the unit of
    privacy is then a person (`people.grouping`). At most `rows_per_person` (10) rows of each are used, more are dropped
    at random; each person is kept for testing, or not, with all their rows.

    `features="scattering"` turns images into scattering features (`data.scattering`, H13), on which a linear model
    goes far: for 28x28 pixels an image of 8x8 with 81 channels. `features="my_features.py:embed"` does the same with an
    extractor of your own (`data.features.extractor`), whose features are shortened to `feature_norm`. Either becomes
    part of the recipe. What was computed is kept in the cache for data sets with a name, for files of your own only
    with `keep_features`, readable by you alone.

    Whatever this takes from the data is declared public, in words, in `Dataset.public`.

    Bad input, each with `InputError`: an unknown name (the known ones are listed), a missing or damaged file, files
    that cannot be downloaded (with what to put where), a missing target column, an absent or non-numeric value
    (with its row and column), one class only, fewer than `own.LEAST_ROWS` rows, too many categories, scattering of
    what is no image, or an option that has no meaning for this data set.
    """
    _check_features(features, feature_norm)
    options = Options(target, task, scale, categories, drop, test_share, seed, target_scale, unlabelled, draw)
    options = replace(
        options,
        keep=keep,
        read=read,
        missing=missing,
        person=person,
        rows_per_person=rows_per_person,
        bounds=bounds,
        levels=levels,
        payment=payment,
        few=few,
    )
    if isinstance(name_or_path, Frame):
        return with_features(load_frame(name_or_path, options), features, feature_norm, keep=keep_features)
    name = _known(name_or_path)
    if name is None:
        own = load_own(Path(name_or_path).expanduser(), options)
        return with_features(own, features, feature_norm, keep=keep_features)
    fixed = Options(seed=seed, draw=draw, few=few)
    if options != fixed:
        given = next(one.name for one in fields(options) if getattr(options, one.name) != getattr(fixed, one.name))
        raise unmet(
            given,
            getattr(options, given),
            f"{', '.join(map(named, _OWN))} and {named('test_share')} to be left out for {Argument('data', name)}, "
            "which is prepared in a fixed way",
            "one of them",
            "They are for a file of your own.",
        )
    entry = CATALOGUE[name]
    if entry.official and seed is not None:
        raise refuse(
            "seed",
            seed,
            f"to be left out for {Argument('data', name)}, which has an official test set",
            got=f"{seed!r}",
        )
    loaded = entry.load(Places(data_dir, download), None if seed is None else whole("seed", seed, least=0))
    return with_features(loaded, features, feature_norm, keep=True)


def _check_features(features: ImageFeatures | None, norm: float | None) -> None:
    if features is None or not is_file(features):
        if features is not None:
            one_of("features", features, IMAGE_FEATURES)
        if norm is not None:
            raise refuse("feature_norm", norm, "to be left out unless the features come from a file of your own")


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
    raise refuse(
        "data",
        name_or_path,
        f"to be one of {', '.join(map(repr, CATALOGUE))} or a file that ends in {', '.join(ENDINGS)}",
        f"Did you mean {close[0]!r}?" if close else "",
        got=str(Argument("data", name_or_path)),
    )


def check(data: str | os.PathLike[str] | Frame, **options: Any) -> Checked:
    """Everything that is wrong with a table, a file or a data frame, and what is done about it; nothing is learned.

    `options` are those of `load` that say how a table is read. What is found is sensitive: `Checked.findings`.

    Bad input: a file that is no table, or an option that does not fit it: `InputError`.
    """
    wanted = Options(**options)
    if isinstance(data, Frame):
        return checked(frame_table(data), wanted)
    path = Path(data).expanduser()
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise refuse("data", str(path), "to be a table that ends in " + ", ".join(TABLE_ENDINGS))
    return checked(read_table(path), wanted)
