"""A trained model as it lies in a folder: model.json says what it is, params.npz holds its weights.

    outputs → softmax → probabilities of the classes,     output · y_scale + y_mean → the target in its own units

Nothing here tells about the run: both files may be published under its DP guarantee, as far as what the recipe took
from the data is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.data import Dataset, read_features, recipe_from_dict
from bayesdp.errors import InputError, refuse
from bayesdp.learn import files
from bayesdp.learn.models import classifier, regressor
from bayesdp.mechanism.bookkeeping import ModelLoss
from bayesdp.mechanism.layers import Sequential

DESCRIPTION, WEIGHTS = "model.json", "params.npz"
FORMAT, VERSION = "bayesdp/model", 1

_AT_ONCE = 1000
"""Records that pass through the model together: what lies between the layers of more might not fit into memory."""


@dataclass(frozen=True, kw_only=True)
class Predictor:
    """The description: which `model`, for records of which `shape`, and how raw records and outputs are to be read.

    `recipe` is that of the data set as plain values; `classes` is empty for a regression, whose outputs times `y_scale`
    plus `y_mean` are in the target's own units.
    """

    model: str
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    recipe: Mapping[str, Any]
    y_mean: float = 0.0
    y_scale: float = 1.0

    @classmethod
    def of(cls, model: str, data: Dataset) -> Predictor:
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
        )

    def loss(self) -> ModelLoss:
        """The model with its loss. Bad input: an unknown model gets `InputError`."""
        return classifier(self.model, len(self.classes)) if self.classes else regressor(self.model)

    def init(self, key: jax.Array) -> Any:
        """Parameters to start from. Bad input: a model that records of this shape do not fit gets `InputError`."""
        try:
            return self.loss().model.init(key, self.shape)
        except InputError as problem:
            kind = f"images of {self.shape[0]} x {self.shape[1]} pixels" if len(self.shape) == 3 else "a table"
            raise refuse("model", self.model, f"to be one for {kind}", f"{problem} Use logistic or mlp.") from None

    def outputs(self, params: Any, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """What the model puts out for each record: (records, classes), or (records, 1) for a regression."""
        model, parts = self.loss().model, []
        for start in range(0, len(x), _AT_ONCE):
            part = x[start : start + _AT_ONCE]
            # Filled up, so that one program serves all parts.
            missing = min(_AT_ONCE, len(x)) - len(part)
            padded = np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)]) if missing else part
            parts.append(np.asarray(_apply(model, params, jnp.asarray(padded)))[: len(part)])
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes) or 1), np.float32)

    def right(self, params: Any, x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether each record is classified as its label says."""
        result: npt.NDArray[np.bool_] = self.outputs(params, x).argmax(1) == y
        return result

    def measure(self, params: Any, x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> dict[str, float]:
        """How well the model does on these records: accuracy, or the root mean squared error in the target's units."""
        outputs = self.outputs(params, x)
        losses = jax.vmap(self.loss().example_loss)(jnp.asarray(outputs), jnp.asarray(y))
        loss = {"test loss": float(losses.mean())}
        if self.classes:
            return {"test accuracy": float((outputs.argmax(1) == y).mean()), **loss}
        wrong = outputs[:, 0].astype(np.float64) - y
        return {"test RMSE": float(np.sqrt(np.mean(wrong**2)) * self.y_scale), **loss}

    def without_model(self, y: npt.NDArray[Any]) -> dict[str, float]:
        """What a constant answer achieves on these labels: what a model is worth, it is worth beyond this."""
        if self.classes:
            return {"accuracy of a constant answer": float(np.bincount(y).max() / len(y))}
        return {"RMSE of a constant answer": float(np.std(y) * self.y_scale)}

    def write(self, folder: Path) -> None:
        """model.json."""
        files.write_json(folder / DESCRIPTION, {"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> Predictor:
        """What `write` wrote; anything else gets `InputError`."""
        values = files.read_tagged(folder / DESCRIPTION, FORMAT, VERSION)
        try:
            return cls(**{**values, "shape": tuple(values["shape"]), "classes": tuple(values["classes"])})
        except (TypeError, KeyError) as problem:
            raise refuse("path", str(folder / DESCRIPTION), "to describe a model", str(problem)) from None


@partial(jax.jit, static_argnums=0)
def _apply(model: Sequential, params: Any, x: jax.Array) -> jax.Array:
    return model.apply(params, x)


def predict(folder: str | Path, file: str | Path) -> list[list[str]]:
    """A line of heads and one for each record of `file`, a CSV, Parquet or NPZ with the columns of training.

    A classification has the columns `prediction` and `probability of …` for each class; a regression has `prediction`,
    in the target's own units.

    Bad input: a folder without a finished model, or a file that lacks a column: `InputError`.
    """
    place = Path(folder)
    for name in (DESCRIPTION, WEIGHTS):
        if not (place / name).is_file():
            raise refuse("run", str(folder), f"to be a folder with a finished run, which has a {name}")
    model = Predictor.read(place)
    params = files.read_tree(place / WEIGHTS, model.init(jax.random.key(0)))
    outputs = model.outputs(params, read_features(file, recipe_from_dict(model.recipe)))
    if not model.classes:
        return [["prediction"], *([f"{value:.6g}"] for value in outputs[:, 0] * model.y_scale + model.y_mean)]
    shares = np.asarray(jax.nn.softmax(outputs, axis=1))
    return [
        ["prediction", *(f"probability of {name}" for name in model.classes)],
        *([model.classes[int(row.argmax())], *(f"{share:.6f}" for share in row)] for row in shares),
    ]
