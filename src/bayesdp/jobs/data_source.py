"""Which records a job is about, as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

from bayesdp.data import CATALOGUE, Dataset, load
from bayesdp.data.dataset import Features, Labels, Task
from bayesdp.data.features.extractor import is_file
from bayesdp.data.features.image_recipe import ImageFeatures
from bayesdp.data.payment import Payment
from bayesdp.data.preparation.declared import Declared, Levels, Range
from bayesdp.data.recipe import Scale
from bayesdp.errors import Argument, number, refuse

OWN_SCALE: Scale = "private"
"""How columns of an own file are scaled where nothing is said: what was not declared is paid for."""


class Options(TypedDict, total=False):
    """What a user says of data: see `data.load`."""

    target: str | None
    task: Task | None
    scale: Scale | None
    categories: tuple[str, ...]
    drop: tuple[str, ...]
    test_share: float | None
    download: bool
    features: ImageFeatures | None
    feature_norm: float | None
    keep_features: bool
    keep: tuple[str, ...]
    read: tuple[str, ...]
    missing: tuple[str, ...]
    bounds: tuple[Range, ...]
    levels: tuple[Levels, ...]
    scale_share: float | None
    person: str | None
    rows_per_person: int | None


class Labelled(NamedTuple):
    """Records with their labels, x (records, …) and y (records,)."""

    x: Features
    y: Labels


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Which records: the arguments of `data.load`, which says what they mean."""

    name: str
    target: str | None = None
    task: Task | None = None
    scale: Scale | None = None
    categories: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    test_share: float | None = None
    data_dir: str | None = None
    download: bool = True
    features: ImageFeatures | None = None
    feature_norm: float | None = None
    keep_features: bool = False
    target_scale: Scale | None = None
    unlabelled: bool = False
    keep: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    bounds: tuple[Range, ...] = ()
    levels: tuple[Levels, ...] = ()
    scale_share: float | None = None
    person: str | None = None
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        known = Declared(tuple(self.bounds), tuple(self.levels))  # lists where they were read from a file
        object.__setattr__(self, "bounds", known.bounds)
        object.__setattr__(self, "levels", known.levels)
        if self.scale_share is not None:
            number("scale_share", self.scale_share, above=0, below=1)
            if self.scale != "private":
                raise refuse("scale_share", self.scale_share, f"to come with {Argument('scale', 'private')}")

    @classmethod
    def given(cls, name: str, *, data_dir: str | Path | None = None, **options: Unpack[Options]) -> DataSource:
        """As a user says it: a path is made one that holds wherever the job is read again, and what is not said of the
        columns of an own file is paid for.
        """
        path = Path(name).expanduser()
        own = name not in CATALOGUE and path.exists()
        folder = None if data_dir is None else str(Path(data_dir).expanduser().absolute())
        if own and options.get("scale") is None:
            options["scale"] = OWN_SCALE
        features = options.get("features")
        if features is not None and is_file(features):
            file, _, function = features.rpartition(":")
            options["features"] = f"{Path(file).expanduser().absolute()}:{function}"
        return cls(name=str(path.absolute()) if own else name, data_dir=folder, **options)

    @property
    def named(self) -> bool:
        """Whether it is a data set of the catalogue, which is prepared in a fixed way."""
        return self.name.strip().lower().replace("_", "-") in CATALOGUE

    def load(
        self, draw: int | None = None, payment: Callable[[int, float], Payment] | None = None, few: int = 0
    ) -> Dataset:
        """The data set, test records by the coins of `draw` where they are not fixed; `payment` is what a private
        preparation of so many training records may cost. Bad input: see `data.load`.
        """
        left = ("name", "scale_share")
        options = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name not in left}
        paying = payment if self.scale == "private" else None
        return load(self.name, **options, draw=draw, payment=paying, few=few)
