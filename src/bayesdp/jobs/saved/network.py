"""A trained model as it lies in a folder: model.json says what it is, params.npz holds its weights.

    outputs → softmax → probabilities of the classes,     output · y_scale + y_mean → the target in its own units

Both files may be published under the run's DP guarantee, as far as what the recipe took from the data is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.data import read_features, recipe_from_dict
from bayesdp.data.dataset import Features, Labels
from bayesdp.errors import InputError, refuse, unfit
from bayesdp.jobs.data_source import Labelled
from bayesdp.jobs.saved.model import SavedModel
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.loop.tree_file import Tree, read_tree
from bayesdp.learn.models.class_weights import WeightedCrossEntropy
from bayesdp.learn.models.networks import classifier, regressor
from bayesdp.mechanism.bookkeeping import ModelLoss, outputs
from bayesdp.mechanism.layers import Sequential

_AT_ONCE = 1000
"""Records that are handed to the compiled program together."""

_TOGETHER = 50
"""Records that pass through the model together: what lies between the layers of more does not fit into a cache."""


@dataclass(frozen=True, kw_only=True)
class SavedNetwork(SavedModel):
    """A description of a model of `learn.models.networks`; `class_weights` are those it was trained with, if any."""

    FORMAT: ClassVar[str] = "bayesdp/model"

    class_weights: tuple[float, ...] = ()

    def loss(self) -> ModelLoss:
        """The model with its loss. Bad input: an unknown model gets `InputError`."""
        if not self.classes:
            return regressor(self.model)
        plain = classifier(self.model, len(self.classes))
        return ModelLoss(plain.model, WeightedCrossEntropy(self.class_weights)) if self.class_weights else plain

    def init(self, key: jax.Array) -> Tree:
        """Parameters to start from. Bad input: a model that records of this shape do not fit gets `InputError`."""
        try:
            return self.loss().model.init(key, self.shape)
        except InputError as problem:
            kind = f"images of {self.shape[0]} x {self.shape[1]} pixels" if len(self.shape) == 3 else "a table"
            raise refuse("model", self.model, f"to be one for {kind}", f"{problem} Use logistic or mlp.") from None

    def outputs(self, params: Tree, x: Features) -> npt.NDArray[np.float32]:
        """What the model puts out for each record: (records, classes), or (records, 1) for a regression."""
        model, parts = self.loss().model, []
        for start in range(0, len(x), _AT_ONCE):
            part = x[start : start + _AT_ONCE]
            # Filled up, so that one program serves all parts.
            missing = min(_AT_ONCE, _TOGETHER * math.ceil(len(x) / _TOGETHER)) - len(part)
            padded = np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)]) if missing else part
            parts.append(np.asarray(_apply(model, params, jnp.asarray(padded)))[: len(part)])
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes) or 1), np.float32)

    def right(self, params: Tree, records: Labelled) -> npt.NDArray[np.bool_]:
        """Whether each record is classified as its label says."""
        return np.asarray(self.outputs(params, records.x).argmax(1) == records.y)

    def measure(self, params: Tree, x: Features, y: Labels) -> dict[str, float]:
        """How well the model does on these records: accuracy, or the root mean squared error in the target's units."""
        outputs = self.outputs(params, x)
        losses = _losses(self.loss(), jnp.asarray(outputs), jnp.asarray(y))
        loss = {"test loss": float(losses.mean())}
        if self.classes:
            return {"test accuracy": float((outputs.argmax(1) == y).mean()), **loss}
        wrong = outputs[:, 0].astype(np.float64) - y
        return {"test RMSE": float(np.sqrt(np.mean(wrong**2)) * self.y_scale), **loss}

    def answers(self, params: Tree, x: Features) -> npt.NDArray[np.float32]:
        """Probabilities of the classes (records, classes), or numbers in units of the scale (records,)."""
        outputs = self.outputs(params, x)
        return np.asarray(jax.nn.softmax(outputs, axis=1)) if self.classes else outputs[:, 0]

    def predict(self, folder: RunFolder, file: str | Path, threshold: float | None = None) -> list[list[str]]:
        """See `predict.predict`."""
        self.check_threshold(threshold)
        params = read_tree(folder.need(folder.params), self.init(jax.random.key(0)))
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params)):
            hint = "The run diverged, or the file is damaged."
            raise unfit(repr(str(folder.params)), "to hold finite numbers", "others", hint)
        answers = self.answers(params, read_features(file, recipe_from_dict(self.recipe)))
        return self.classified(answers, threshold) if self.classes else self.in_units(answers)


@partial(jax.jit, static_argnums=0)
def _apply(model: Sequential, params: Tree, x: jax.Array) -> jax.Array:
    return outputs(model, params, x, _TOGETHER)


@partial(jax.jit, static_argnums=0)
def _losses(loss: ModelLoss, outputs: jax.Array, y: jax.Array) -> jax.Array:
    return jax.vmap(loss.example_loss)(outputs, y)
