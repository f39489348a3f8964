"""Records as learners get them: rows with their labels, or people with theirs where a person has several rows.

`data.people` says whose each row is; what is trained on, held out or watched is then `People`, and a number is that of
a person: 1, 2, … in the order in which they first appear in the file. Users call people by what stands in that column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from bayesdp.data import Dataset
from bayesdp.errors import InputError, refuse, whole
from bayesdp.jobs.data_source import Labelled
from bayesdp.learn.records import Data, chosen
from bayesdp.mechanism.people import People
from bayesdp.unit import Unit, spoken

Records = Labelled | People
"""Records of a job, of either kind."""

Whom = int | str
"""The number of a record, or the name of a person."""


def trained_on(data: Dataset) -> Records:
    """The records to train on."""
    rows = Labelled(data.x, data.y)
    return rows if data.people is None else _laid_out(data, rows, np.arange(len(data.x)))


def held_out(before: Dataset, after: Dataset, outsiders: Labelled) -> Records | None:
    """Who was taken out of the training records of `before`, which left `after`; None for nobody."""
    if not len(outsiders.y):
        return None
    if before.people is None or after.people is None:
        return outsiders
    left = np.unique(after.people.owner[: len(after.x)])
    rows = np.flatnonzero(~np.isin(before.people.owner[: len(before.x)], left))
    return _laid_out(before, Labelled(before.x, before.y), rows)


_LACKS = "It lacks a value, and is left out as was said."


def watched(data: Dataset, numbers: Sequence[int]) -> Records:
    """The records of these numbers, wherever they are. Bad input: a number that nobody has."""
    every = Labelled(np.concatenate([data.x, data.x_test]), np.concatenate([data.y, data.y_test]))
    if data.people is not None:
        people, places, present = data.people.layout(np.flatnonzero(data.people.owner >= 0))
        for number in numbers:
            whole("watch", number, least=1, most=len(data.people.names))
            if number - 1 not in people:
                raise refuse("watch", data.people.names[number - 1], "to name somebody who is used", _LACKS)
        order = np.searchsorted(people, np.array(numbers) - 1)
        return People.laid_out(every, places[order], present[order])
    places = np.arange(len(every.y)) if data.places is None else data.places
    most, rows = int(places.max()) + 1, {int(place): row for row, place in enumerate(places)}
    for number in numbers:
        whole("watch", number, least=1, most=most, hint=f"There are {most:,} records, counted from 1.")
        if number - 1 not in rows:
            raise refuse("watch", number, "to name a record that is used", _LACKS)
    found: Labelled = chosen(every, np.array([rows[number - 1] for number in numbers]))
    return found


def numbers(data: Dataset) -> npt.NDArray[np.int64]:
    """The numbers of those trained on, from 1, in the order of `trained_on`."""
    held = len(data.x)
    if data.people is not None:
        return 1 + np.unique(data.people.owner[:held])
    return 1 + (np.arange(held) if data.places is None else data.places[:held])


def numbered(data: Dataset, whom: Sequence[Whom], argument: str = "watch") -> tuple[int, ...]:
    """Numbers for numbers and names. Bad input: a name where there are no people, or that nobody has."""
    people = data.people
    found = []
    for one in whom:
        if isinstance(one, str) and people is None:
            raise refuse(argument, one, "to be numbers of records, from 1, in the order of the file")
        found.append(people.number(argument, one) if isinstance(one, str) and people is not None else int(one))
    return tuple(found)


def called(data: Dataset, numbers: Sequence[int]) -> list[Whom]:
    """What those of these numbers are called by their owner: names of people, or the numbers."""
    if data.people is None:
        return [int(one) for one in numbers]
    return [data.people.names[number - 1] for number in numbers]


def groups(before: Dataset, after: Dataset, column: str, texts: Sequence[str]) -> list[str]:
    """The group of each person who was taken out of the training records of `before`, then of those who are left.

    `texts`: that of every row of the file. Bad input: rows of one person in several groups.
    """
    assert before.people is not None
    assert before.places is not None
    assert after.people is not None
    found: dict[int, str] = {}
    held = len(before.x)
    for person, place in zip(before.people.owner[:held].tolist(), before.places[:held].tolist(), strict=True):
        if found.setdefault(person, texts[place]) != texts[place]:
            raise refuse("groups", column, "to name a column with one value for all rows of a person")
    left = np.unique(after.people.owner[: len(after.x)]).tolist()
    return [found[person] for person in [*sorted({*found} - {*left}), *left]]


def count(records: Records | None) -> int:
    """How many there are."""
    if records is None:
        return 0
    return len(records.present) if isinstance(records, People) else len(records.y)


def mapped(records: Records | None, function: Callable[[Labelled], Data]) -> Data:
    """What a model is called with, of records of either kind; None for none."""
    if records is None:
        return None
    return records.mapped(function) if isinstance(records, People) else function(records)


@contextmanager
def speaking_of(unit: Unit) -> Iterator[None]:
    """Refusals in the words of the unit of privacy."""
    try:
        yield
    except InputError as problem:
        if unit == "record":
            raise
        raise problem.reworded(lambda text: spoken(text, unit)) from problem


def _laid_out(data: Dataset, rows: Labelled, places: npt.NDArray[np.int64]) -> People:
    assert data.people is not None
    found = data.people.layout(places)
    return People.laid_out(rows, found.places, found.present)
