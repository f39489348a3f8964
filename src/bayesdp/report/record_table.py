"""What a run cost each record: `RecordTable`, one row for each record, most exposed first (SPEC H3, E7, H2).

    table = RecordTable(title=..., ids=..., epsilon=..., delta=1e-5, direction=...)
    table.write("records.parquet")        RecordTable.read("records.parquet") == table

The numbers come from an accountant or a study; here they are checked, ordered, kept and read again. They are
functions of private data: files are readable by their owner only and say so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from bayesdp import errors
from bayesdp.errors import InputError
from bayesdp.report import part, record_files
from bayesdp.report.derived import quantile
from bayesdp.report.part import Numbers, Part

DIRECTIONS = ("remove", "add", "both")
FORMAT = "bayesdp/records"
VERSION = 1
SENSITIVE = "computed from private data; not for publication"

_COLUMNS = {"id": "ids", "per_instance_epsilon": "epsilon", "direction": "direction"}
_OPTIONAL = {"class": "label", "correct": "correct"}
"""Names in files, and what they are called here."""

_ABOUT = ("title", "delta", "dp_epsilon", "steps", "seeded", "how")


@dataclass(frozen=True, kw_only=True)
class RecordTable(Part):
    """Per-instance ε of records at one δ. Columns are kept most exposed first, ties by id, however they were given.

    - `ids`: all whole numbers or all texts; with the direction, each stands for one row.
    - `epsilon`: may be infinite. δ is for each record on its own, not for all at once.
    - `direction`: "remove" (a member: training with it against training without it), "add" (an outsider: without
      it against with it) or "both"; one for all or one each.
    - `label`: each record's class, whole numbers become texts; `correct`: whether the model classified it rightly.
    - `dp_epsilon`: the DP ε for everybody at the same δ, may be infinite. A record's own number that is
      min(ex-post at δ/2, DP at δ/2) can be a little above it.
    - `steps`: of the run; `seeded`: its noise came from a given seed, so that it is reproducible and not private.
    - `how`: how the numbers came about and what they assume, in sentences, ex-post or a priori among them.

    Bad input gets `InputError` naming the field.
    """

    title: str
    ids: tuple[int, ...] | tuple[str, ...]
    epsilon: Numbers
    delta: float
    direction: tuple[str, ...]
    label: tuple[str, ...] | None = None
    correct: tuple[bool, ...] | None = None
    dp_epsilon: float | None = None
    steps: int | None = None
    seeded: bool = False
    how: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._put(
            title=part.text("title", self.title, empty=False),
            epsilon=part.numbers("epsilon", self.epsilon, infinite=True, least=0),
            delta=errors.probability("delta", self.delta),
            dp_epsilon=None if self.dp_epsilon is None else part.infinite("dp_epsilon", self.dp_epsilon),
            steps=None if self.steps is None else errors.whole("steps", self.steps, least=0),
            seeded=errors.one_of("seeded", self.seeded, (True, False)),
            how=part.sentences("how", self.how),
        )
        count = len(self.epsilon)
        given: Any = self.direction
        directions = [given] * count if isinstance(given, str) else given
        columns: dict[str, list[Any]] = {
            "ids": _ids(_column("ids", self.ids, count)),
            "epsilon": list(self.epsilon),
            "direction": _column("direction", directions, count),
        }
        for one in _distinct(columns["direction"]):
            errors.one_of("direction", one, DIRECTIONS)
        if self.label is not None:
            columns["label"] = _labels(_column("label", self.label, count))
        if self.correct is not None:
            columns["correct"] = _column("correct", self.correct, count)
            if not all(isinstance(one, bool) for one in columns["correct"]):
                raise errors.refuse("correct", self.correct, f"to be {count} truth values, one for each epsilon")
        self._put(**_ordered(columns))

    def __len__(self) -> int:
        return len(self.epsilon)

    def rows(self) -> list[dict[str, Any]]:
        """Every record as plain JSON values, the most exposed first.

        Keys: rank (from 1), id, epsilon ("inf" where it is infinite), direction and, where known, class and correct.
        """
        columns: dict[str, Sequence[Any]] = {
            "rank": range(1, len(self) + 1),
            "id": self.ids,
            "epsilon": part.plain(self.epsilon),
            "direction": self.direction,
        }
        columns |= self._known()
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]

    def quantiles(self, levels: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)) -> dict[float, float]:
        """Level → the smallest ε of a record that at least this share of the records stays within.

        Bad input: a level outside (0, 1] gets `InputError`.
        """
        values = np.array(self.epsilon)
        checked = [errors.number("levels", level, above=0, most=1) for level in levels]
        return {level: quantile(values, level) for level in checked}

    def below_dp(self) -> float | None:
        """The share of records whose ε is below the DP ε; None without one that is finite."""
        if self.dp_epsilon is None or math.isinf(self.dp_epsilon):
            return None
        return sum(one < self.dp_epsilon for one in self.epsilon) / len(self)

    def write(self, path: str | Path) -> Path:
        """Write the table to `path`, by its ending: .parquet (needs pyarrow), .csv or .json; see `record_files`.

        Whole or not at all, readable by its owner only. Columns: id, per_instance_epsilon, direction and, where they
        are known, class and correct. Bad input: another ending, no pyarrow, or an unwritable path: `InputError`.
        """
        columns = {name: getattr(self, field) for name, field in _COLUMNS.items()} | self._known()
        about = {"format": FORMAT, "version": VERSION, "sensitive": SENSITIVE}
        about |= {name: getattr(self, name) for name in _ABOUT}
        return record_files.write(path, columns, about | {"whole_ids": isinstance(self.ids[0], int)})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """What `write` wrote. Bad input: an unreadable, damaged or foreign file gets `InputError`."""
        columns, about = record_files.read(path)
        if about.get("format") != FORMAT or not set(_COLUMNS) <= set(columns) <= set(_COLUMNS | _OPTIONAL):
            raise errors.refuse("path", str(path), f"to be a table of format {FORMAT!r}")
        if about.get("version") != VERSION:
            raise errors.refuse("version", about.get("version"), f"to be {VERSION}", "Another release wrote it.")
        if not {*_ABOUT, "whole_ids"} <= set(about):
            raise errors.refuse("path", str(path), f"to say {', '.join(_ABOUT)} of the table")
        kinds = {"per_instance_epsilon": float, "correct": bool} | ({"id": int} if about["whole_ids"] else {})
        fields = _COLUMNS | _OPTIONAL
        values: dict[str, Any] = {
            fields[name]: record_files.typed(kinds[name], cells) if name in kinds else cells
            for name, cells in columns.items()
        }
        return cls(**values, **{name: about[name] for name in _ABOUT})

    def _known(self) -> dict[str, Sequence[Any]]:
        """The columns that not every table has."""
        found = {name: getattr(self, field) for name, field in _OPTIONAL.items()}
        return {name: values for name, values in found.items() if values is not None}


def _column(name: str, value: Any, count: int) -> list[Any]:
    """`value` as a list of `count` plain values."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != count:
        raise errors.refuse(name, value, f"to have {count} entries, one for each epsilon")
    return [one.item() if isinstance(one, np.generic) else one for one in value]


def _distinct(values: list[Any]) -> list[Any]:
    try:
        return list(dict.fromkeys(values))
    except TypeError:  # a list among them: the check of each says so
        return values


def _ids(values: list[Any]) -> list[Any]:
    if all(type(one) is int for one in values):
        if not all(-(2**63) <= one < 2**63 for one in values):
            raise errors.refuse("ids", values, "to fit into 64 bits", "Or name the records by texts.")
    elif all(isinstance(one, str) for one in values):
        for one in values:
            part.text("ids", one, empty=False)
    else:
        odd = next((one for one in values if type(one) is not type(values[0])), values[0])
        raise errors.refuse("ids", odd, "to be all whole numbers or all texts")
    return values


def _labels(values: list[Any]) -> list[str]:
    texts = [str(one) if type(one) is int else one for one in values]
    for one in _distinct(texts):
        part.text("label", one)
    return texts


def _ordered(columns: dict[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    """The columns as tuples, most exposed first, ties by id and direction."""
    keys = list(zip(columns["epsilon"], columns["ids"], columns["direction"], strict=True))
    places = sorted(range(len(keys)), key=lambda place: (-keys[place][0], *keys[place][1:]))
    named = [keys[place][1:] for place in places]
    if len(set(named)) < len(named):
        (name, direction), times = Counter(named).most_common(1)[0]
        raise InputError(
            f"Expected ids to name a record once in a direction, got {name!r} {times} times ({direction})."
        )
    return {name: tuple(values[place] for place in places) for name, values in columns.items()}
