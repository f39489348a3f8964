"""What a model that lies in a folder is, apart from its numbers: model.json.

Nothing here tells about the run: the file may be published with the numbers, as far as what the recipe took from the
data is public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bayesdp import storage
from bayesdp.data import Dataset
from bayesdp.data.dataset import Labels
from bayesdp.errors import Argument, number, refuse, unfit
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.report import quality

Values = npt.NDArray[np.float32] | npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SavedModel(ABC):
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
            raise unfit(Argument("data", data.name), "with a recipe that prepares further records", "none")
        return cls(
            model=model,
            shape=data.x.shape[1:],
            classes=data.classes,
            recipe=data.recipe.to_dict(),
            y_mean=data.y_mean,
            y_scale=data.y_scale,
            **more,
        )

    def without_model(self, y: Labels) -> dict[str, float]:
        """What a constant answer achieves on these labels: what a model is worth, it is worth beyond this."""
        if self.classes:
            return {"accuracy of a constant answer": float(np.bincount(y).max() / len(y))}
        return {"RMSE of a constant answer": float(np.std(y) * self.y_scale)}

    def quality(self, answers: Values, y: Labels) -> dict[str, float]:
        """How good these answers are: probabilities of the classes (records, classes), or numbers (records,)."""
        if self.classes:
            return quality.of_classes(self.classes, np.asarray(answers, np.float64), y)
        return quality.of_numbers(np.asarray(answers, np.float64), y)

    def classified(self, shares: Values, threshold: float | None = None) -> list[list[str]]:
        """A line of heads and one for each record, from the probabilities of the classes (records, classes).

        With a `threshold` the second of two classes is the answer where its probability is at least that.
        """
        answers = shares.argmax(axis=1) if threshold is None else (shares[:, 1] >= threshold).astype(int)
        return [
            ["prediction", *(f"probability of {name}" for name in self.classes)],
            *(
                [self.classes[int(one)], *(f"{share:.6f}" for share in row)]
                for one, row in zip(answers, shares, strict=True)
            ),
        ]

    def check_threshold(self, threshold: float | None) -> None:
        """Refuse a threshold where there are not two classes to choose from."""
        if threshold is None:
            return
        if len(self.classes) != 2:
            raise refuse("threshold", threshold, "to be left out unless the model tells two classes apart")
        number("threshold", threshold, least=0, most=1)

    def in_units(self, values: Values) -> list[list[str]]:
        """A line of heads and one for each record, the number in the target's own units."""
        return [["prediction"], *([f"{value:.6g}"] for value in values * self.y_scale + self.y_mean)]

    @abstractmethod
    def predict(self, folder: RunFolder, file: str | Path, threshold: float | None = None) -> list[list[str]]:
        """A line of heads and one for each record of `file`, with the numbers in `folder`: see `predict.predict`."""

    def write(self, folder: RunFolder) -> None:
        """model.json."""
        storage.write_tagged(folder.model, self.FORMAT, self.VERSION, asdict(self))

    @classmethod
    def read(cls, folder: RunFolder) -> Self:
        """What `write` wrote; anything else gets `InputError`."""
        values = storage.read_tagged(folder.need(folder.model), cls.FORMAT, cls.VERSION)
        try:
            plain: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in values.items()}
            return cls(**plain)
        except (TypeError, KeyError, ValueError, AttributeError) as problem:
            raise refuse("path", str(folder.model), "to describe a model", str(problem)) from None
