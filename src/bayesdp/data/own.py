"""The user's own file as a data set: a table with a target column, or an NPZ of arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bayesdp.data import coins
from bayesdp.data.array_file import read_records
from bayesdp.data.checking import checked, with_readings
from bayesdp.data.dataset import TASKS, Dataset, Features, Rows, Task
from bayesdp.data.features.image_recipe import ImageRecipe
from bayesdp.data.payment import Payment
from bayesdp.data.people.grouping import Grouping, checked_most, read_people, read_people_array
from bayesdp.data.preparation.declared import Declared, Levels, Range
from bayesdp.data.preparation.prepare import How, Prepared, prepare
from bayesdp.data.recipe import SCALES, Recipe, Scale, TableRecipe
from bayesdp.data.table import Table, listed
from bayesdp.data.table_file import TABLE_ENDINGS, read_table
from bayesdp.data.tables.cells import KINDS
from bayesdp.data.tables.features import LEAST_ROWS
from bayesdp.data.tables.frame import Frame, frame_table
from bayesdp.data.target import Target, check_classes, read_target
from bayesdp.errors import Argument, named, number, one_of, refuse, unmet, whole

ENDINGS = (*TABLE_ENDINGS, ".npz")
TEST_SHARE = 0.2
_LISTS = {"read": "of COLUMN=KIND", "missing": "of rules, or of COLUMN=RULE"}


@dataclass(frozen=True)
class Options:
    """How to read an own file; None where nothing was said."""

    target: str | None = None
    task: Task | None = None
    scale: Scale | None = None
    categories: Sequence[str] = ()
    drop: Sequence[str] = ()
    test_share: float | None = None
    seed: int | None = None
    target_scale: Scale | None = None
    unlabelled: bool = False
    draw: int | None = None
    keep: Sequence[str] = ()
    read: Sequence[str] = ()
    missing: Sequence[str] = ()
    few: int = 0
    person: str | None = None
    rows_per_person: int | None = None
    bounds: Sequence[Range] = ()
    levels: Sequence[Levels] = ()
    payment: Payment | Callable[[int, float], Payment] | None = None

    def __post_init__(self) -> None:
        if self.task is not None:
            one_of("task", self.task, TASKS)
        for name in ("scale", "target_scale"):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), SCALES if getattr(self, name) != "standard" else ("standard",))
        for name in ("categories", "drop", "keep", "read", "missing"):
            value = getattr(self, name)
            if name == "missing" and isinstance(value, str):
                value = (value,)
            if (
                isinstance(value, str)
                or not isinstance(value, Sequence)
                or not all(isinstance(entry, str) for entry in value)
            ):
                raise refuse(name, value, f"to be a list {_LISTS.get(name, 'of column names')}")
            object.__setattr__(self, name, tuple(value))
        if self.test_share is not None:
            number("test_share", self.test_share, least=0, below=1)
        for name in ("seed", "draw"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least=0)
        known = self.declared
        object.__setattr__(self, "bounds", known.bounds)
        object.__setattr__(self, "levels", known.levels)
        if self.rows_per_person is not None:
            object.__setattr__(self, "rows_per_person", checked_most(self.rows_per_person))
            if self.person is None:
                raise refuse("rows_per_person", self.rows_per_person, f"to come with {named('person')}")

    def rows(self, count: int, people: Grouping | None = None) -> tuple[Rows, Rows]:
        """Row numbers to train on and to test on, by a coin for each, or for each person."""
        if people is not None:
            return people.split(self.secret, self.share(count, people))
        test = coins.tossed(self.secret, "test", np.arange(count), self.share(count))
        if test.all():
            raise refuse("test_share", self.share(count), f"to leave some of the {count} records to train on")
        return np.flatnonzero(~test), np.flatnonzero(test)

    @cached_property
    def secret(self) -> int:
        """What all coins, and the noise of a private preparation, come from."""
        given = self.draw if self.seed is None else self.seed
        return coins.fresh() if given is None else given

    @property
    def declared(self) -> Declared:
        """Ranges and levels that are known beforehand."""
        return Declared(tuple(self.bounds), tuple(self.levels))

    def how(self, train: Rows, share: float, people: Grouping | None) -> How:
        """How columns are prepared, where these rows are to be trained on or held out, and a `share` is tested on."""
        owner = None if people is None else people.owner
        count = len(train) if owner is None else len(np.unique(owner[train]))
        payment = self.payment(count, share) if callable(self.payment) else self.payment
        if payment is not None and people is not None:
            payment = dataclasses.replace(payment, rows_per_person=people.most)
        scale: Scale = "public-statistics" if self.scale in (None, "standard") else self.scale
        return How(self.declared, scale, self.target_scale, tuple(self.categories), payment, self.secret, owner)

    def read_target(self, table: Table, name: str) -> Target:
        """The target as it was declared, or as it looks."""
        if self.unlabelled:
            return _nothing(len(table))
        return read_target(table, name, self.declared.task_of(name, self.task), self.declared.vocabularies.get(name))

    def share(self, count: int, people: Grouping | None = None) -> float:
        """The chance of one of `count` records, or of a person, to be kept for testing; of fewer than `few` none is
        unless that was asked for.
        """
        if self.test_share is not None:
            return self.test_share
        return 0.0 if (count if people is None else len(people.names)) < self.few else TEST_SHARE


def load_own(path: Path, options: Options) -> Dataset:
    """The data set in a file of the user's own; see `bayesdp.data.load`."""
    if path.suffix.lower() not in ENDINGS:
        raise refuse("data", str(path), "to end in " + ", ".join(ENDINGS))
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, options)
    return _from_table(path, read_table(path), options)


def load_frame(frame: Frame, options: Options) -> Dataset:
    """The data set in a data frame; see `bayesdp.data.load`."""
    return _from_table(Path(type(frame).__name__), frame_table(frame), options)


def _from_table(path: Path, table: Table, options: Options) -> Dataset:
    if options.target is None and not options.unlabelled:
        raise refuse(
            "target",
            None,
            f"to name the column of {table.source} that is to be learned",
            f"Its columns are {listed(table.names)}.",
            got="none",
        )
    settled = checked(table, options)
    settled.require_settled()
    people = None if options.person is None else read_people(table, options.person, options.rows_per_person)
    # A row that is left out has no part in anything, and nobody else's coin depends on it.
    train, test = (rows[settled.kept[rows]] for rows in options.rows(len(table), people))
    share = options.share(len(table), people)
    if not len(train):
        raise refuse("test_share", share, "to leave some records to train on")
    names, texts = ([one.name for one in settled.readings if one.kind in kinds] for kinds in (KINDS, ("text",)))
    target, how = settled.target or _nothing(len(table)), options.how(train, share, people)
    options.declared.check(table, options.drop, [*texts, *([options.target] if target.classes else ())])
    found = prepare(
        settled.table, names, target, options.target or "", train, dataclasses.replace(how, categories=tuple(texts))
    )
    assert found.recipe is not None
    recipe = with_readings(found.recipe, settled.readings)
    x = recipe.features(settled.table)
    dataset = _dataset(path, recipe, x, found, options.target or "", train, test, share, people)
    findings = tuple(map(str, settled.findings))
    return dataclasses.replace(dataset, public=(*dataset.public, *settled.public), findings=findings)


def _from_arrays(path: Path, options: Options) -> Dataset:
    if options.target not in (None, "y"):
        raise refuse("target", options.target, "to be left out for an NPZ, whose labels are its array y")
    said = {name: getattr(options, name) for name in ("categories", "drop", "keep", "read", "missing")}
    given = [name for name, value in said.items() if value]
    if given:
        raise unmet(
            given[0],
            said[given[0]],
            f"{', '.join(map(named, list(said)[:-1]))} and {named('missing')} to be left out for an NPZ",
            f"them with {Argument('data', str(path))}",
        )
    records = read_records(path)
    labels = records.labels()
    _enough(labels, records.training)
    people = None
    if options.person is not None:
        tests = len(records.x) - records.training
        people = read_people_array(path, options.person, options.rows_per_person, records.training, tests)
    if not records.has_test:
        train, test = options.rows(records.training, people)
        share = options.share(records.training, people)
    elif options.test_share is not None or options.seed is not None:
        raise unmet(
            "test_share" if options.seed is None else "seed",
            options.test_share if options.seed is None else options.seed,
            f"{named('test_share')} and {named('seed')} to be left out where {records.source} has x_test and y_test",
            "one",
        )
    else:
        train, test = np.split(np.arange(len(records.x)), [records.training])
        share = 0.0
        train = train if people is None else people.bounded(options.secret)
    target, how = options.read_target(labels, "y"), options.how(train, share, people)
    if records.x.ndim == 2:
        table = records.features()
        options.declared.check(_and_labels(table, labels), (), _texts(labels))
        found = prepare(table, table.names, target, "y", train, how)
        assert found.recipe is not None
        return _dataset(path, found.recipe, found.recipe.apply(table), found, "y", train, test, share, people)
    shape = records.x.shape[1:] if records.x.ndim == 4 else (*records.x.shape[1:], 1)
    bytes_to_unit = records.x.dtype == np.uint8 and options.scale != "none"
    images = ImageRecipe(shape, 255.0 if bytes_to_unit else 1.0)
    options.declared.check(labels, (), _texts(labels))
    found = prepare(None, (), target, "y", train, how)
    return _dataset(path, images, images.apply(records.x), found, "y", train, test, share, people)


def _nothing(rows: int) -> Target:
    """Nothing to predict."""
    return Target("density", (), np.zeros(rows))


def _enough(table: Table, rows: int) -> None:
    if rows < LEAST_ROWS:
        raise table.unfit(
            f"to hold at least {LEAST_ROWS} records to train and test with",
            str(rows),
            "So few can neither be learned from nor hide each other",
        )


def _texts(labels: Table) -> list[str]:
    return [name for name in labels.names if not labels.is_numeric(name)]


def _and_labels(table: Table, labels: Table) -> Table:
    """The columns of an NPZ, its labels among them."""
    return dataclasses.replace(table, columns={**table.columns, **labels.columns})


def _dataset(
    path: Path,
    recipe: Recipe,
    x: Features,
    found: Prepared,
    target_name: str,
    train: Rows,
    test: Rows,
    share: float,
    people: Grouping | None = None,
) -> Dataset:
    target = found.target
    if target.classes:  # what is of no class that is known is left out
        train, test = train[target.values[train] >= 0], test[target.values[test] >= 0]
        if not len(train):
            raise unmet("levels", target.classes, f"some record to have one of the classes {listed(target.classes)}")
    check_classes(target, target.values[train], target_name)
    public = found.public
    if isinstance(recipe, TableRecipe):
        public = ("The names of the columns, and which hold numbers and which texts, are public.", *public)
    return Dataset.of_rows(
        x,
        target.values.astype(np.int32 if target.classes else np.float32),
        train,
        test,
        name=path.stem,
        task=target.task,
        classes=target.classes,
        feature_names=recipe.feature_names if isinstance(recipe, TableRecipe) else (),
        image_shape=recipe.shape if isinstance(recipe, ImageRecipe) else None,
        public=public,
        recipe=recipe,
        y_mean=found.mean,
        y_scale=found.scale,
        source=path.name,
        test_share=share,
        people=None if people is None else people.only(np.concatenate([train, test])),
        paid=found.paid,
    )
