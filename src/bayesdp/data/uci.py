"""Adult and Abalone, from the UCI Machine Learning Repository.

Adult, census income: predict whether a person earns more than 50K. `adult` is the usual preparation with the official
test set; `adult_dpvi` and `abalone` are those of the DPVI paper S2 (its Fig. 1, J10 and J11): all rows in the order of
the files, every text as one integer code, standardised over all rows (÷N), the first 80 % to train on. For Abalone this
gives S2's own published features to the last digit; S2's prepared Adult is not published, its codes are ours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from bayesdp.data.dataset import Dataset, shuffled
from bayesdp.data.download import Original
from bayesdp.data.places import Places
from bayesdp.data.recipe import TableRecipe, find_recipe
from bayesdp.data.table import Column, Table
from bayesdp.errors import unfit

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

ADULT = (
    Original(
        ("adult",),
        "adult.data",
        3_974_305,
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        (f"{_UCI}/adult/adult.data",),
    ),
    Original(
        ("adult",),
        "adult.test",
        2_003_153,
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        (f"{_UCI}/adult/adult.test",),
    ),
)
ABALONE = (
    Original(
        ("abalone",),
        "abalone.data",
        191_873,
        "de37cdcdcaaa50c309d514f248f7c2302a5f1f88c168905eba23fe2fbc78449f",
        (f"{_UCI}/abalone/abalone.data",),
    ),
)

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
ABALONE_COLUMNS = ("sex", "length", "diameter", "height", "whole", "shucked", "viscera", "shell")
INCOMES = ("<=50K", ">50K")
SEXES = ("I", "F", "M")
"""Infant, female, male: S2's codes 0, 1, 2."""


def adult(places: Places) -> Dataset:
    """Adult with its official split, 32,561 to train on and 16,281 to test on; texts one-hot, `?` a category.

    Numbers are standardised. Means, scales and vocabularies are those of the training file and declared public.
    """
    (train_path, test_path), source = places.get("adult", ADULT)
    train, y = _adult_file(train_path)
    test, y_test = _adult_file(test_path)
    recipe = find_recipe(train, ADULT_COLUMNS, np.arange(len(train)))
    return Dataset(
        name="adult",
        task="classification",
        x=recipe.apply(train),
        y=y,
        x_test=recipe.apply(test),
        y_test=y_test,
        classes=INCOMES,
        feature_names=recipe.feature_names,
        public=recipe.public("the training records"),
        recipe=recipe,
        source=source,
    )


def adult_dpvi(places: Places, seed: int | None = None) -> Dataset:
    """Adult as in S2: 48,842 rows, 14 columns, each text the place of its category in the alphabet (`?` first)."""
    paths, source = places.get("adult-dpvi", ADULT)
    (first, y_first), (second, y_second) = map(_adult_file, paths)
    columns: dict[str, Column] = {name: [*first.columns[name], *second.columns[name]] for name in ADULT_COLUMNS}
    table = Table(
        first.source,
        columns,
        lambda row: first.place(row) if row < len(first) else f"{second.place(row - len(first))} of adult.test",
    )
    recipe = find_recipe(table, ADULT_COLUMNS, np.arange(len(table)), texts="code")
    return _as_in_s2("adult-dpvi", table, recipe, np.concatenate([y_first, y_second]), INCOMES, source, seed)


def abalone(places: Places, seed: int | None = None) -> Dataset:
    """Abalone as in S2: 4,177 rows, 8 columns, sex as one code (I 0, F 1, M 2); at least 10 rings or fewer."""
    (path,), source = places.get("abalone", ABALONE)
    table = _read(path, (*ABALONE_COLUMNS, "rings"))
    y = (table.numbers("rings") >= 10).astype(np.int32)
    rows = np.arange(len(table))
    recipe = find_recipe(table, ABALONE_COLUMNS, rows, texts="code", vocabularies={"sex": SEXES})
    return _as_in_s2("abalone", table, recipe, y, ("rings < 10", "rings >= 10"), source, seed)


def _as_in_s2(
    name: str,
    table: Table,
    recipe: TableRecipe,
    y: npt.NDArray[np.int32],
    classes: tuple[str, ...],
    source: str,
    seed: int | None,
) -> Dataset:
    """The first 80 % of the rows to train on, or a random 80 % if a seed is given."""
    count, x = int(0.8 * len(table)), recipe.apply(table)
    rows = np.arange(len(table))
    train, test = (rows[:count], rows[count:]) if seed is None else shuffled(len(table), seed, count)
    return Dataset.of_rows(
        x,
        y,
        train,
        test,
        name=name,
        task="classification",
        classes=classes,
        feature_names=recipe.feature_names,
        public=recipe.public("all records, those to train and to test on"),
        recipe=recipe,
        source=source,
    )


def _adult_file(path: Path) -> tuple[Table, npt.NDArray[np.int32]]:
    table = _read(path, (*ADULT_COLUMNS, "income"))
    # Labels of the test file end in a full stop.
    labels = [label.removesuffix(".") for label in table.texts("income")]
    for row, label in enumerate(labels):
        if label not in INCOMES:
            raise table.unfit(f"to end each line in {INCOMES[0]} or {INCOMES[1]}", f"{label!r} in {table.place(row)}")
    return table, np.array([INCOMES.index(label) for label in labels], np.int32)


def _read(path: Path, names: tuple[str, ...]) -> Table:
    """Cells separated by commas, no header; a line that begins with a bar is a remark."""
    source = f"the file {str(path)!r}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise unfit(source, "to be a readable text file", "something else") from None
    lines = (
        (number, line.split(","))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("|")
    )
    hint = "Delete the file to have it downloaded anew, or get the original."
    table = Table.of_lines(source, names, lines, "every line", hint)
    if not len(table):
        raise unfit(source, "to hold records", "none")
    return table
