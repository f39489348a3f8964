"""Which records a job is about, as plain values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesdp.data import CATALOGUE, Dataset, load
from bayesdp.data.dataset import Task
from bayesdp.data.recipe import ImageFeatures, Scale


@dataclass(frozen=True, kw_only=True)
class Source:
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
    target_scale: Scale | None = None
    unlabelled: bool = False

    @classmethod
    def given(cls, name: str, *, data_dir: str | Path | None = None, **options: Any) -> Source:
        """As a user says it: a path is made one that holds wherever the job is read again."""
        path = Path(name).expanduser()
        own = name not in CATALOGUE and path.exists()
        folder = None if data_dir is None else str(Path(data_dir).expanduser().absolute())
        return cls(name=str(path.absolute()) if own else name, data_dir=folder, **options)

    @property
    def named(self) -> bool:
        """Whether it is a data set of the catalogue, which is prepared in a fixed way."""
        return self.name.strip().lower().replace("_", "-") in CATALOGUE

    def load(self) -> Dataset:
        """The data set. Bad input: see `data.load`."""
        options = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "name"}
        return load(self.name, **options)
