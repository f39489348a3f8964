"""A trained model as it lies in a folder: model.json says what it is, params.npz holds its weights.

    outputs → softmax → probabilities of the classes,     output · y_scale + y_mean → the target in its own units

Both files may be published under the run's DP guarantee, as far as what the recipe took from the data is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.data import read_features, recipe_from_dict
from bayesdp.errors import InputError, refuse
from bayesdp.learn import files
from bayesdp.learn.description import Description
from bayesdp.learn.models import classifier, regressor
from bayesdp.mechanism.bookkeeping import ModelLoss
from bayesdp.mechanism.layers import Sequential

WEIGHTS = "params.npz"

_AT_ONCE = 1000
"""Records that pass through the model together: what lies between the layers of more might not fit into memory."""


@dataclass(frozen=True, kw_only=True)
class Predictor(Description):
    """A description of a model of `models`."""

    FORMAT: ClassVar[str] = "bayesdp/model"

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


@partial(jax.jit, static_argnums=0)
def _apply(model: Sequential, params: Any, x: jax.Array) -> jax.Array:
    return model.apply(params, x)


def predict(folder: Path, file: str | Path) -> list[list[str]]:
    """A line of heads and one for each record of `file`: see `predictions.predict`."""
    model = Predictor.read(folder)
    params = files.read_tree(folder / WEIGHTS, model.init(jax.random.key(0)))
    outputs = model.outputs(params, read_features(file, recipe_from_dict(model.recipe)))
    return (
        model.classified(np.asarray(jax.nn.softmax(outputs, axis=1)))
        if model.classes
        else model.in_units(outputs[:, 0])
    )
