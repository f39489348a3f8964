"""What is to be learned: the target column as class numbers or as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesdp.data.dataset import Task
from bayesdp.data.table import MOST_CATEGORIES, Table, listed, written
from bayesdp.errors import Argument, Array, InputError, named, unfit, unmet

MOST_GUESSED_CLASSES = 20
"""Whole numbers with more different values than this are taken for quantities unless the task is given."""


@dataclass(frozen=True)
class Target:
    """Class numbers, places in `classes`, or with no classes numbers."""

    task: Task
    classes: tuple[str, ...]
    values: Array


def read_target(
    table: Table, name: str, task: Task | None, levels: tuple[str, ...] | None = None, *, texts: bool = False
) -> Target:
    """The target of a table. Without `task`, texts are classes, so are two different numbers, and so are at most
    `MOST_GUESSED_CLASSES` whole numbers that occur at least twice on average; other numbers are quantities.

    Classes are in the order of their numbers, or of the alphabet; with `levels`, declared beforehand, in their order,
    and what is none of them gets −1. `texts`: they are texts whatever they look like.

    Bad input: an absent value, texts where `task` is "regression", one class or value only, or more than
    `MOST_CATEGORIES` classes: `InputError`.
    """
    if levels is not None:
        return _declared(table, name, task, levels)
    numeric = not texts and table.is_numeric(name)
    if task == "regression" or (numeric and task is None and not _looks_like_classes(table.numbers(name))):
        values = table.numbers(name)
        if values.min() == values.max():
            raise _one_value(table, name)
        return Target("regression", (), values)
    if numeric:
        distinct, codes = np.unique(table.numbers(name), return_inverse=True)
        classes = tuple(map(written, distinct.tolist()))
    else:
        words, codes = np.unique(np.array(table.texts(name)), return_inverse=True)
        classes = tuple(words.tolist())
    if len(classes) > MOST_CATEGORIES:
        raise unfit(
            Argument("target", name),
            f"to have at most {MOST_CATEGORIES} classes",
            f"{len(classes):,}",
            f"Give {Argument('task', 'regression')}, or another target." if numeric else "Give another target.",
        )
    if len(classes) == 1:
        raise _one_value(table, name)
    return Target("classification", classes, codes.astype(np.float64))


def _declared(table: Table, name: str, task: Task | None, levels: tuple[str, ...]) -> Target:
    if task == "regression" or len(levels) < 2:
        raise unmet(
            "levels",
            levels,
            f"at least two classes in {named('levels')} for {Argument('target', name)} and "
            f"no {Argument('task', 'regression')}",
            ",".join(levels) if len(levels) < 2 else str(Argument("task", task)),
        )
    place = {level: number for number, level in enumerate(levels)}
    numeric = not isinstance(table.columns[name], np.ndarray) and table.is_numeric(name)
    texts = [written(one) for one in table.numbers(name).tolist()] if numeric else table.texts(name)  # 1.0 is 1
    return Target("classification", levels, np.array([place.get(text, -1) for text in texts], np.float64))


def check_classes(target: Target, y: Array, name: str) -> None:
    """Refuse training records that are all of one class."""
    if target.classes and y.min() == y.max():
        raise unmet(
            "target",
            name,
            f"the training records to have at least two of the classes {listed(target.classes)} of "
            f"{Argument('target', name)}",
            f"{target.classes[int(y[0])]!r} only",
            "Give more records of the other classes.",
        )


def _looks_like_classes(values: Array) -> bool:
    distinct = np.unique(values)
    whole = bool((distinct == np.round(distinct)).all())
    return len(distinct) <= 2 or (whole and len(distinct) <= min(MOST_GUESSED_CLASSES, len(values) // 2))


def _one_value(table: Table, name: str) -> InputError:
    return unfit(
        Argument("target", name),
        f"to have at least two different values in {table.source}",
        "one only",
        "There is nothing to learn from one class: give another target, or records of the other classes too.",
    )
