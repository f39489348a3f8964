"""Which rows are whose: people are numbered as they first appear, and every choice is made for a person as a whole.

    test, holdout     by one coin for each person (`coins`): all rows of a person are on one side
    rows per person   at most `most`, a public number; of more, as many are drawn by a coin for each row

Both are independent of everybody else, so that a person more or less moves nobody (H18): data sets with and without a
person differ in that person's rows alone, and these are at most `most`. Whose rows they are is not learned from.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bayesdp.data import coins
from bayesdp.data.array_file import read_named
from bayesdp.data.table import Table
from bayesdp.errors import Argument, InputError, refuse, unfit, whole
from bayesdp.padding import ROWS, Layout, layout

LEAST_PEOPLE = 10
"""Fewer can neither be learned from nor hide each other."""

Rows = npt.NDArray[np.int64]
Owners = npt.NDArray[np.int64]
"""Numbers of people, from 0 in the order in which they appear; -1 for a row that is nobody's."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The person of each row (`owner`), by the `column` that says so; `names` are theirs, as written there.

    At most `most` rows of a person are used; nobody in the file has more than `width` of these.
    """

    column: str
    most: int
    names: tuple[str, ...]
    owner: Owners
    width: int

    @classmethod
    def of(cls, column: str, texts: list[str], most: int, source: Argument | str) -> Grouping:
        """From the person of each row. Bad input: fewer than `LEAST_PEOPLE`, who cannot hide each other."""
        numbers: dict[str, int] = {}
        owner = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
        if len(numbers) < LEAST_PEOPLE:
            raise unfit(
                source,
                f"to hold rows of at least {LEAST_PEOPLE} people in column {column!r}",
                f"{len(numbers)}",
                "So few can neither be learned from nor hide each other; name the column that tells people apart.",
            )
        width = min(most, int(np.bincount(owner).max()))
        return cls(column, most, tuple(numbers), owner, width)

    def split(self, draw: int, share: float) -> tuple[Rows, Rows]:
        """Row numbers to train on and to test on, by a coin for each person; rows beyond `most` are in neither.

        Bad input: nobody to train on.
        """
        test = coins.tossed(draw, "test", np.arange(len(self.names)), share)
        if test.all():
            raise refuse("test_share", share, f"to leave some of the {len(test)} people to train on")
        kept = self.bounded(draw)
        return kept[~test[self.owner[kept]]], kept[test[self.owner[kept]]]

    def bounded(self, draw: int) -> Rows:
        """The rows that are used, in their order: `most` of each person, by the coins of their rows; nobody's not."""
        keys = coins.words(draw, "rows", np.arange(len(self.owner)))
        people, places, present = layout(self.owner, self.width, keys)
        return np.sort(places[present & (people >= 0)[:, None]])

    def only(self, rows: Rows) -> Grouping:
        """The same of these rows alone."""
        return dataclasses.replace(self, owner=self.owner[rows])

    def layout(self, rows: Rows) -> Layout:
        """The people among `rows` (places in `owner`), a line of `width` places each."""
        people, places, present = layout(self.owner[rows], self.width)
        return Layout(people, rows[places], present)

    def number(self, argument: str, name: str) -> int:
        """The number of the person of this name, from 1. Bad input: nobody is called so."""
        try:
            return self.names.index(name) + 1
        except ValueError:
            expected = f"to name people as the column {self.column!r} does"
            raise refuse(argument, name, expected, got=f"{name!r}, which is nobody there") from None

    @property
    def public(self) -> tuple[str, ...]:
        """What is public of it, a sentence each."""
        return (
            f"Who is one person is said by the column {self.column!r}, which is not learned from. Of each person at "
            f"most {self.most:,} rows are used, a number that is public; of more, so many were drawn at random.",
        )


def read_people(table: Table, column: str, most: int | None) -> Grouping:
    """The people of a table. Bad input: no such column, a row without a person, too few people."""
    texts = table.texts(table.need("person", column))
    return Grouping.of(column, texts, checked_most(most), table.source)


def read_people_array(path: Path, name: str, most: int | None, rows: int, tests: int) -> Grouping:
    """The people of an NPZ: an array of that name with an entry for each of `rows` records of x, not for its `tests`
    test records, which are then nobody's. Bad input: no such array, another length, an empty name, too few people.
    """
    source = Argument("data", str(path))
    array = read_named(path, name, "person")
    if array.shape != (rows,) or array.dtype.kind not in "iuU":
        expected = f"to hold whole numbers or texts in {name}, one for each of the {rows} records of x"
        raise unfit(source, expected, f"{array.shape} of {array.dtype}")
    texts = [str(one).strip() for one in array.tolist()]
    if "" in texts:
        raise _nobody(source, name, texts.index(""))
    found = Grouping.of(name, texts, checked_most(most), source)
    return dataclasses.replace(found, owner=np.concatenate([found.owner, np.full(tests, -1)]))


def checked_most(most: int | None) -> int:
    """The public bound on the rows of a person. Bad input: below 1."""
    return ROWS if most is None else whole("rows_per_person", most, least=1)


def _nobody(source: Argument, name: str, row: int) -> InputError:
    return unfit(source, f"to name a person in every entry of {name}", f"none in record {row}")
