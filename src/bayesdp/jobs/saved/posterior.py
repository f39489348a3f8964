"""A fitted posterior as it lies in a folder: model.json says of which model, posterior.npz or samples.npz holds it.

    Monte Carlo over draws z_s of the posterior:  E[y | x] ≈ (1/S) Σ_s E[y | x, z_s]

A released Gaussian is drawn from by a fixed seed, so that predictions can be repeated; released samples are the draws.
Both are post-processing and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp import storage
from bayesdp.data import Dataset, read_features, recipe_from_dict
from bayesdp.data.dataset import Features, Labels, Task
from bayesdp.errors import Argument, Array, InputError, unfit, unmet
from bayesdp.jobs.saved.model import SavedModel
from bayesdp.learn.loop.run_folder import RunFolder
from bayesdp.learn.models import predictive
from bayesdp.learn.models.density import Form, Probabilistic
from bayesdp.learn.models.numpyro_reader import reading_for
from bayesdp.learn.models.predictive import Outcomes
from bayesdp.learn.models.reader import probabilistic
from bayesdp.learn.models.table_models import Family, Outcome, family, outcome_of
from bayesdp.learn.models.user_file import is_file, kept
from bayesdp.learn.records import Data

DRAWS = 200
"""Draws of a Gaussian for a prediction."""


@dataclass(frozen=True, kw_only=True)
class SavedPosterior(SavedModel):
    """A description of a Bayesian model: `model` is a name of `family`, `features` are the names of the columns of x.

    `task` says what the target is; `group` and `components` are for the models that have them.
    """

    FORMAT: ClassVar[str] = "bayesdp/posterior-model"

    task: Task
    features: tuple[str, ...]
    group: str | None = None
    components: int | None = None

    @classmethod
    def fitting(cls, model: str, data: Dataset, *, group: str | None, components: int | None) -> SavedPosterior:
        """The description of `model` for `data`. Bad input: a target that the model is not for."""
        _check_target(model, outcome_of(model), data)
        names = data.feature_names or tuple(f"x[{place}]" for place in range(data.x[0].size))
        return cls.of(model, data, task=data.task, features=names, group=group, components=components)

    @classmethod
    def read(cls, folder: RunFolder, *, trust_code: bool = False) -> SavedPosterior:
        """What `write` wrote; a model of the user's own is the copy in `folder`, which runs only by `trust_code`."""
        found = super().read(folder)
        if is_file(found.model):
            found = replace(found, model=kept(found.model, folder.model_code, trusted=trust_code))
            folder.need(folder.model_code)
        return found

    @cached_property
    def family(self) -> Family:
        """What the model is called with, and how its parameters are called."""
        recipe = recipe_from_dict(self.recipe)
        return family(self.model, self.features, recipe, group=self.group, components=self.components)

    def read_model(self, x: Features, y: Labels) -> Probabilistic:
        """The model, checked on records. Bad input: a model that is not one for VI gets `InputError`."""
        if not is_file(self.model):
            return probabilistic(self.family.model, self.family.arguments(x, y))
        try:
            return probabilistic(self.family.model, self.family.arguments(x, y))
        except InputError as problem:
            raise problem.adding(f"This is about {Argument('model', self.model)}.") from problem

    @cached_property
    def reading(self) -> Probabilistic:
        """The model for records of this form, none of them at hand."""
        x = np.zeros((1, *self.shape), np.float32)
        counts = outcome_of(self.model) == "count"
        y = np.zeros(1, np.int32 if self.classes or counts else np.float32)
        return reading_for(self.family.model, Form.of(self.family.arguments(x, y)))

    @cached_property
    def _expected(self) -> Callable[[jax.Array, Data], jax.Array | Outcomes]:
        return jax.jit(lambda draws, inputs: predictive.monte_carlo(self.reading, draws, inputs))

    def expected(self, draws: Array, x: Features) -> Array:
        """Probabilities of the classes (records, classes), or expected numbers (records,), from draws of z (S, d).

        Bad input: a model that says no such thing gets `InputError`.
        """
        if self.cannot_predict:
            raise InputError(
                f"{self.cannot_predict} This is about {Argument('model', self.model)}.",
                argument="model",
                value=self.model,
            )
        inputs = jax.tree.map(jnp.asarray, self.family.arguments(x, None))
        answer = self._expected(jnp.asarray(draws, jnp.float32), inputs)
        values = np.asarray(self._outcome(answer, len(x)), np.float64)
        return np.stack([1 - values, values], axis=1) if self.classes and values.ndim == 1 else values

    def _outcome(self, answer: jax.Array | Outcomes, records: int) -> jax.Array:
        """The outcome among what the model observes, of the shape that the target asks for."""
        if isinstance(answer, Mapping):
            if "y" not in answer:
                raise unmet("model", self.model, "one observed site, or one called 'y'", ", ".join(sorted(answer)))
            answer = answer["y"]
        good: list[tuple[int, ...]] = [(records, len(self.classes))] if self.classes else [(records,)]
        if len(self.classes) == 2:
            good.append((records,))
        if answer.shape not in good:
            raise unmet("model", self.model, f"outcomes of shape {good[0]} for {records} record(s)", f"{answer.shape}")
        return answer

    @cached_property
    def cannot_predict(self) -> str:
        """Why the model says nothing of outcomes, in words; empty where it does."""
        if self.task == "density":
            return "A density has no outcome to predict."
        inputs = jax.tree.map(jnp.asarray, self.family.arguments(np.zeros((1, *self.shape), np.float32), None))
        try:
            self._outcome(jax.eval_shape(self._expected, jnp.zeros((1, self.reading.dim)), inputs), 1)
        except InputError as problem:
            return str(problem)
        return ""

    @cached_property
    def _log_predictive(self) -> Callable[[jax.Array, Data], jax.Array]:
        return jax.jit(lambda draws, data: predictive.log_predictive(self.reading, draws, data))

    def log_predictive(self, draws: Array, x: Features, y: Labels) -> Array:
        """For each record, outcome included: log (1/S) Σ_s p(record | z_s) (D12)."""
        data = jax.tree.map(jnp.asarray, self.family.arguments(x, y))
        return np.asarray(self._log_predictive(jnp.asarray(draws, jnp.float32), data), np.float64)

    def measure(self, draws: Array, x: Features, y: Labels) -> dict[str, float]:
        """How well the posterior predicts these outcomes: accuracy, or root mean squared error; {} if it does not."""
        if self.cannot_predict:
            return {}
        values = self.expected(draws, x)
        if self.classes:
            return {"test accuracy": float((values.argmax(1) == y).mean())}
        return {"test RMSE": float(math.sqrt(np.mean((values - y) ** 2)) * self.y_scale)}

    def predict(self, folder: RunFolder, file: str | Path, threshold: float | None = None) -> list[list[str]]:
        """See `predict.predict`."""
        self.check_threshold(threshold)
        draws = released_draws(folder)
        if draws.shape[1] != self.reading.dim:
            expected = f"to hold a posterior of {self.reading.dim} parameters"
            raise unfit(repr(str(folder.path)), expected, f"{draws.shape[1]}")
        x = read_features(file, recipe_from_dict(self.recipe))
        if self.task == "density":
            values = self.log_predictive(draws, x, np.zeros(len(x), np.float32))
            return [["log density"], *([f"{value:.6g}"] for value in values)]
        values = self.expected(draws, x)
        return self.classified(values, threshold) if self.classes else self.in_units(values)


def gaussian_draws(mean: Array, cov: Array, count: int = DRAWS) -> Array:
    """`count` draws of N(mean, cov), (count, d), the same every time."""
    noise = np.random.default_rng(0).normal(size=(count, len(mean)))
    return np.asarray(mean + noise @ np.linalg.cholesky(cov).T)


def released_draws(folder: RunFolder) -> Array:
    """Draws of the posterior that a folder holds: of the Gaussian, or the samples that were released."""
    if folder.samples.is_file():
        with storage.reading(folder.samples):
            return _finite(folder.samples, storage.read_arrays(folder.need(folder.samples))["draws"])
    stored = storage.read_arrays(folder.need(folder.posterior))
    with storage.reading(folder.posterior):
        draws = gaussian_draws(stored["mean"], stored["cov"])
    return _finite(folder.posterior, draws)


def _finite(path: Path, draws: Array) -> Array:
    """Refuse numbers that are none: what they predict would be nonsense with a straight face."""
    if draws.ndim != 2 or not np.isfinite(draws).all():
        raise unfit(repr(str(path)), "to hold finite numbers", "others", "The run diverged, or the file is damaged.")
    return draws


def _check_target(model: str, outcome: Outcome, data: Dataset) -> None:
    if outcome == "class" and len(data.classes) != 2:
        got = f"{len(data.classes)} classes" if data.classes else "numbers"
        raise unmet("target", None, f"a target with two classes, such as 0 and 1, for {Argument('model', model)}", got)
    if outcome in ("number", "count") and data.classes:
        raise unmet(
            "target",
            None,
            f"a target of numbers for {Argument('model', model)}",
            f"{len(data.classes)} classes in {Argument('data', data.name)}",
        )
    if outcome == "count":
        y = np.concatenate([data.y, data.y_test]) * data.y_scale + data.y_mean
        wrong = y[(y < 0) | (y != np.rint(y))]
        if len(wrong):
            raise unmet(
                "target",
                None,
                f"a target of counts, whole numbers from 0 on, for {Argument('model', model)}",
                "others",
            )
