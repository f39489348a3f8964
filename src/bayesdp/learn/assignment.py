"""What every job of learning from a data set has in common, as plain values that a folder can keep (job.json).

    records + plan + witnesses + seeds   →   settled: what was left open is chosen from public quantities

`Job` is private SGD, `FitJob` a private posterior.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from bayesdp import errors
from bayesdp.accountant.worst_case import Engine
from bayesdp.data import Dataset
from bayesdp.errors import InputError
from bayesdp.estimate.quantile import most_covered
from bayesdp.guarantee import Adjacency
from bayesdp.learn import defaults, files
from bayesdp.learn.everyone import EVERYONE
from bayesdp.learn.source import Source
from bayesdp.rounding import down

NAME = "job.json"

FAILURE = 1e-6
"""The chance that the Bayesian guarantee is wrong about the share of people."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """The common fields. None: to be chosen from public quantities (`defaults`).

    Args:
        data: which records.
        epsilon: the DP ε that the noise is calibrated to where `noise_multiplier` is None.
        noise_multiplier, sampling_rate, steps, delta, coverage, adjacency, engine: see `Plan`.
        batch_size, epochs: another way to give `sampling_rate` and `steps`.
        audit: how many records are held out of the training data to speak for outsiders.
        members: how many training records speak for members.
        watch: the records whose own guarantee is wanted: numbers from 1, in the order of the file; or "everyone", all
            that are trained on.
        seed: makes the run reproducible and **not private**.
        draw: which records are held out, and the initial parameters; from the operating system unless there is a seed.

    Bad input gets `InputError` naming the field.
    """

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1

    data: Source
    epsilon: float | None = None
    noise_multiplier: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None
    steps: int | None = None
    epochs: float | None = None
    delta: float | None = None
    coverage: float = 0.9
    adjacency: Adjacency = "add-remove"
    engine: Engine = "pld"
    audit: int | None = None
    members: int | None = None
    watch: tuple[int, ...] | Literal["everyone"] = ()
    seed: int | None = None
    draw: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "epsilon"):
            if getattr(self, name) is not None:
                errors.number(name, getattr(self, name), above=0)
        for name, least in (("batch_size", 1), ("steps", 1), ("audit", 0), ("members", 0), ("seed", 0)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, errors.whole(name, getattr(self, name), least=least))
        for one, other in (("sampling_rate", "batch_size"), ("steps", "epochs")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise errors.refuse(other, getattr(self, other), f"to be left out beside {one}={getattr(self, one)}")
        if isinstance(self.watch, str):
            errors.one_of("watch", self.watch, [EVERYONE])
        for number in () if self.watch == EVERYONE else self.watch:
            errors.whole("watch", number, least=1, hint="Records are counted from 1, in the order of the file.")
        if self.draw is None:
            object.__setattr__(self, "draw", secrets.randbits(63) if self.seed is None else self.seed)

    def load(self) -> Dataset:
        """The records. Bad input: see `data.load`."""
        return self.data.load()

    def settled(self, data: Dataset) -> Self:
        """The job with everything chosen that was left open; `data` is public in its sizes only."""
        raise NotImplementedError

    def held_out(self, data: Dataset, otherwise: int) -> tuple[int, int]:
        """How many of the training records of `data` are held out, and how many are left to train on."""
        audit = otherwise if self.audit is None else self.audit
        if audit >= len(data.x):
            there = f"There are {len(data.x):,} training records, and some must be left to train on."
            raise errors.refuse("audit", audit, f"to be below {len(data.x)}", there)
        records = len(data.x) - audit
        for name, count in (("batch_size", self.batch_size), ("members", self.members)):
            if count is not None and count > records:
                raise errors.refuse(name, count, f"to be at most {records}, the number of records to train on")
        return audit, records

    def pace(self, records: int) -> float | None:
        """The sampling rate, by whatever words it was given; None if by none."""
        return self.sampling_rate if self.batch_size is None else self.batch_size / records

    def length(self, rate: float, otherwise: int) -> int:
        """The number of steps, by whatever words it was given."""
        if self.steps is not None:
            return self.steps
        return otherwise if self.epochs is None else max(1, round(self.epochs / rate))

    def checked_delta(self, records: int) -> float:
        """The δ that was given or chosen. Bad input: one that is not below 1/N."""
        delta = defaults.delta(records) if self.delta is None else self.delta
        if errors.probability("delta", delta) >= 1 / records:
            raise errors.refuse(
                "delta",
                delta,
                f"to be below one over the number of training records, 1/{records} = {1 / records:.2g}",
                "A larger one would allow to publish somebody's record outright.",
            )
        return delta

    def check_share(self, hint: str) -> None:
        """Refuse a share of people that the witnesses of a settled job cannot speak for."""
        supported = self.supported
        if supported is not None and supported < self.coverage:
            raise errors.refuse(
                "coverage",
                self.coverage,
                f"to be at most {down(supported)}, the share that so few witnesses can speak for",
                hint,
            )

    @property
    def supported(self) -> float | None:
        """The largest share of people that the witnesses of a settled job can speak for (H5); None without any."""
        sides = [count for count in (self.audit, self.members) if count]
        return min((most_covered(count, FAILURE / len(sides)) for count in sides), default=None)

    def write(self, folder: Path) -> None:
        """job.json, readable by its owner only: it says which records were held out and, with a seed, all the noise."""
        files.write_json(
            folder / NAME, {"format": self.FORMAT, "version": self.VERSION, **dataclasses.asdict(self)}, private=True
        )

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """The job of a run's folder. Bad input: a folder without one, or a damaged file: `InputError`."""
        return cls.from_dict(files.read_tagged(path_of(folder), cls.FORMAT, cls.VERSION))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`, lists for tuples. Bad input gets `InputError`."""
        try:
            plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
            source: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values["data"].items()}
            return cls(
                **{
                    **plain,
                    "data": Source(**source),
                    "watch": watch if isinstance(watch := values["watch"], str) else tuple(watch),
                }
            )
        except (TypeError, KeyError, AttributeError) as problem:
            raise InputError(f"Expected {NAME} to describe a job, got something else: {problem}.") from None


def path_of(folder: str | Path) -> Path:
    """The job.json of a run's folder. Bad input: a folder without one."""
    path = Path(folder) / NAME
    if not path.is_file():
        raise errors.refuse("run", str(folder), f"to be a folder made by training, which has a {NAME}")
    return path
