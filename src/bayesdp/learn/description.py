"""What a model that lies in a folder is, apart from its numbers: model.json.

Nothing here tells about the run: the file may be published with the numbers, as far as what the recipe took from the
data is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bayesdp.data import Dataset
from bayesdp.errors import InputError, refuse
from bayesdp.learn import files

NAME = "model.json"


@dataclass(frozen=True, kw_only=True)
class Description:
    """Which `model`, for records of which `shape`, and how raw records and outputs are to be read.

    `recipe` is that of the data set as plain values; `classes` is empty for a regression, whose outputs times `y_scale`
    plus `y_mean` are in the target's own units.
    """

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1

    model: str
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    recipe: Mapping[str, Any]
    y_mean: float = 0.0
    y_scale: float = 1.0

    @classmethod
    def of(cls, model: str, data: Dataset, **more: Any) -> Self:
        """The description of `model` for records like those of `data`."""
        if data.recipe is None:
            raise InputError(f"Expected data={data.name!r} with a recipe that prepares further records, got none.")
        return cls(
            model=model,
            shape=data.x.shape[1:],
            classes=data.classes,
            recipe=data.recipe.to_dict(),
            y_mean=data.y_mean,
            y_scale=data.y_scale,
            **more,
        )

    def without_model(self, y: npt.NDArray[Any]) -> dict[str, float]:
        """What a constant answer achieves on these labels: what a model is worth, it is worth beyond this."""
        if self.classes:
            return {"accuracy of a constant answer": float(np.bincount(y).max() / len(y))}
        return {"RMSE of a constant answer": float(np.std(y) * self.y_scale)}

    def classified(self, shares: npt.NDArray[Any]) -> list[list[str]]:
        """A line of heads and one for each record, from the probabilities of the classes (records, classes)."""
        return [
            ["prediction", *(f"probability of {name}" for name in self.classes)],
            *([self.classes[int(row.argmax())], *(f"{share:.6f}" for share in row)] for row in shares),
        ]

    def in_units(self, values: npt.NDArray[Any]) -> list[list[str]]:
        """A line of heads and one for each record, the number in the target's own units."""
        return [["prediction"], *([f"{value:.6g}"] for value in values * self.y_scale + self.y_mean)]

    def write(self, folder: Path) -> None:
        """model.json."""
        files.write_json(folder / NAME, {"format": self.FORMAT, "version": self.VERSION, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `write` wrote; anything else gets `InputError`."""
        values = files.read_tagged(folder / NAME, cls.FORMAT, cls.VERSION)
        try:
            plain: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in values.items()}
            return cls(**plain)
        except (TypeError, KeyError) as problem:
            raise refuse("path", str(folder / NAME), "to describe a model", str(problem)) from None
