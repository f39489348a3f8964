"""What a run cost each record: `RecordTable`, one row for each record, most exposed first.

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
from bayesdp.everybody import wins
from bayesdp.report import part
from bayesdp.report.derived import quantile
from bayesdp.report.part import Numbers, Part
from bayesdp.report.records import files
from bayesdp.standing import STANDINGS, Standing
from bayesdp.unit import UNITS, Unit

DIRECTIONS = ("remove", "add", "both")
FORMAT = "bayesdp/records"
VERSION = 2
SENSITIVE = "computed from private data; not for publication"

_COLUMNS = {"id": "ids", "per_instance_epsilon": "epsilon", "direction": "direction"}
_OPTIONAL = {"exposure": "exposure", "class": "label", "correct": "correct"}
"""Names in files, and what they are called here."""

_ABOUT = ("title", "delta", "dp_epsilon", "steps", "seeded", "how", "standing")


@dataclass(frozen=True, kw_only=True)
class RecordTable(Part):
    """Per-instance ε of records at one δ. Columns are kept most exposed first, however they were given.

    Records that are no better off than everybody tie at the DP ε: their `exposure` puts them in order, then their id.
    Each number is a promise to a record that was named before the run, not to whoever stands first (H19).

    - `ids`: all whole numbers or all texts; with the direction, each stands for one row.
    - `epsilon`: may be infinite. δ is for each record on its own, not for all at once.
    - `direction`: "remove" (a member: training with it against training without it), "add" (an outsider: without
      it against with it) or "both"; one for all or one each.
    - `exposure`: what orders ties at the DP ε (see `InstanceAccountant.exposure`); no promise, may be infinite.
    - `label`: each record's class, whole numbers become texts; `correct`: whether the model classified it rightly.
    - `dp_epsilon`: the DP ε for everybody at the same δ, may be infinite. A record's own number can come out a little
      above it, at most at the DP ε of three quarters of δ (H14): then it is no better, and the DP ε is what counts.
    - `steps`: of the run; `seeded`: its noise came from a given seed, so that it is reproducible and not private.
    - `how`: how the numbers came about and what they assume, in sentences, ex-post or a priori among them.
    - `standing`: whether the numbers are proved bounds, as of a `Guarantee`.
    - `unit`: "person" where a line is a person with several rows.

    Bad input gets `InputError` naming the field.
    """

    title: str
    ids: tuple[int, ...] | tuple[str, ...]
    epsilon: Numbers
    delta: float
    direction: tuple[str, ...]
    exposure: Numbers | None = None
    label: tuple[str, ...] | None = None
    correct: tuple[bool, ...] | None = None
    dp_epsilon: float | None = None
    steps: int | None = None
    seeded: bool = False
    how: tuple[str, ...] = ()
    standing: Standing = "proved"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        self._put(
            title=part.text("title", self.title, empty=False),
            epsilon=part.numbers("epsilon", self.epsilon, infinite=True, least=0),
            delta=errors.probability("delta", self.delta),
            dp_epsilon=None if self.dp_epsilon is None else part.infinite("dp_epsilon", self.dp_epsilon),
            steps=None if self.steps is None else errors.whole("steps", self.steps, least=0),
            seeded=errors.one_of("seeded", self.seeded, (True, False)),
            how=part.sentences("how", self.how),
            standing=errors.one_of("standing", self.standing, STANDINGS),
            unit=errors.one_of("unit", self.unit, UNITS),
        )
        count = len(self.epsilon)
        given: Any = self.direction
        directions = [given] * count if isinstance(given, str) else given
        columns: dict[str, list[Any]] = {
            "ids": _ids(_column("ids", self.ids, count)),
            "epsilon": list(self.epsilon),
            "direction": _column("direction", directions, count),
        }
        if self.exposure is not None:
            known = part.numbers("exposure", self.exposure, infinite=True, least=0, length=count)
            columns["exposure"] = list(known)
        for one in _distinct(columns["direction"]):
            errors.one_of("direction", one, DIRECTIONS)
        if self.label is not None:
            columns["label"] = _labels(_column("label", self.label, count))
        if self.correct is not None:
            columns["correct"] = _column("correct", self.correct, count)
            if not all(isinstance(one, bool) for one in columns["correct"]):
                raise errors.refuse("correct", self.correct, f"to be {count} truth values, one for each epsilon")
        self._put(**_ordered(columns, math.inf if self.dp_epsilon is None else self.dp_epsilon))

    def __len__(self) -> int:
        return len(self.epsilon)

    def rows(self) -> list[dict[str, Any]]:
        """Every record as plain JSON values, the most exposed first.

        Keys: rank (from 1), id, epsilon ("inf" where it is infinite), won ("dp" where that is no better than for
        everybody, else "record"), direction and, where known, exposure, class and correct.
        """
        columns: dict[str, Sequence[Any]] = {
            "rank": range(1, len(self) + 1),
            "id": self.ids,
            "epsilon": part.plain(self.epsilon),
            "won": ["dp" if wins(one, self.dp_epsilon) else "record" for one in self.epsilon],
            "direction": self.direction,
        }
        columns |= {name: part.plain(values) for name, values in self._known().items()}
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]

    def quantiles(self, levels: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)) -> dict[float, float]:
        """Level → the smallest ε of a record that at least this share of the records stays within.

        Bad input: a level outside (0, 1] gets `InputError`.
        """
        values = np.array(self.epsilon)
        checked = [errors.number("levels", level, above=0, most=1) for level in levels]
        return {level: quantile(values, level) for level in checked}

    @property
    def tied(self) -> int:
        """How many records are no better off than everybody: they tie at the DP ε."""
        return sum(wins(one, self.dp_epsilon) for one in self.epsilon)

    def below_dp(self) -> float | None:
        """The share of records whose ε is below the DP ε; None without one that is finite."""
        if self.dp_epsilon is None or math.isinf(self.dp_epsilon):
            return None
        return sum(one < self.dp_epsilon for one in self.epsilon) / len(self)

    def write(self, path: str | Path) -> Path:
        """Write the table to `path`, by its ending: .parquet (needs pyarrow), .csv or .json; see `record_files`.

        Whole or not at all, readable by its owner only. Columns: id, per_instance_epsilon, direction and, where they
        are known, exposure, class and correct. Bad input: another ending, no pyarrow, an unwritable path: `InputError`.
        """
        columns = {name: getattr(self, field) for name, field in _COLUMNS.items()} | self._known()
        about = {"format": FORMAT, "version": VERSION, "sensitive": SENSITIVE}
        about |= {name: getattr(self, name) for name in (*_ABOUT, "unit")}
        return files.write(path, columns, about | {"whole_ids": isinstance(self.ids[0], int)})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """What `write` wrote. Bad input: an unreadable, damaged or foreign file gets `InputError`."""
        columns, about = files.read(path)
        if about.get("format") != FORMAT or not set(_COLUMNS) <= set(columns) <= set(_COLUMNS | _OPTIONAL):
            raise errors.refuse("path", str(path), f"to be a table of format {FORMAT!r}")
        if about.get("version") != VERSION:
            raise errors.refuse("version", about.get("version"), f"to be {VERSION}", "Another release wrote it.")
        if not {*_ABOUT, "whole_ids"} <= set(about):
            raise errors.refuse("path", str(path), f"to say {', '.join(_ABOUT)} of the table")
        kinds = {"per_instance_epsilon": float, "exposure": float, "correct": bool} | (
            {"id": int} if about["whole_ids"] else {}
        )
        fields = _COLUMNS | _OPTIONAL
        values: dict[str, Any] = {
            fields[name]: files.typed(kinds[name], cells) if name in kinds else cells for name, cells in columns.items()
        }
        unit = about.get("unit", "record")  # older tables are of records, and do not say so
        return cls(**values, **{name: about[name] for name in _ABOUT}, unit=unit)

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


def _ordered(columns: dict[str, list[Any]], dp: float) -> dict[str, tuple[Any, ...]]:
    """The columns as tuples, most exposed first, ties by exposure, then by id and direction."""
    losses = [-min(one, dp) for one in columns["epsilon"]]
    exposed = [-one for one in columns.get("exposure", columns["epsilon"])]
    keys = list(zip(losses, exposed, columns["ids"], columns["direction"], strict=True))
    places = sorted(range(len(keys)), key=keys.__getitem__)
    named = [keys[place][2:] for place in places]
    if len(set(named)) < len(named):
        (name, direction), times = Counter(named).most_common(1)[0]
        raise errors.refuse(
            "ids", name, "to name a record once in a direction", got=f"{name!r} {times} times ({direction})"
        )
    return {name: tuple(values[place] for place in places) for name, values in columns.items()}
