"""How records meet a Bayesian model: what it is called with, and what its parameters are called by people.

    model                       called with                target
    logistic                    (x and a 1, y)             one of two classes
    linear                      (x and a 1, y)             a number
    poisson, negative-binomial  (x and a 1, y)             a count
    hierarchical                (group, other x, y)        one of two classes; the groups are one column's categories
    mixture                     (x,)                       none
    my_model.py:model           (x, y)                     any (`model_file`)

The 1 is for the intercept. A record whose category was not seen in training is in a group of its own, "other", about
which the posterior knows what its prior says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bayesdp.data.dataset import Task
from bayesdp.data.recipe import OneHot, Recipe, TableRecipe
from bayesdp.errors import Argument, one_of, refuse
from bayesdp.learn.models import regressions
from bayesdp.learn.models.density import NumPyroModel, site_label
from bayesdp.learn.models.user_file import EXAMPLE, is_file, load_model, parts
from bayesdp.learn.records import Data

Table = npt.NDArray[np.float32]
"""Features, (records, …)."""

Targets = npt.NDArray[Any]
"""Class numbers or numbers, (records,)."""

Shown = Mapping[str, jax.Array]
"""Parameters by site."""

Outcome = Literal["class", "number", "count", "none", "any"]

OUTCOMES: dict[str, Outcome] = {
    "logistic": "class",
    "linear": "number",
    "poisson": "count",
    "negative-binomial": "count",
    "hierarchical": "class",
    "mixture": "none",
}
"""What each model of ours learns to predict."""

_REGRESSIONS = {
    "logistic": regressions.logistic,
    "linear": regressions.linear,
    "poisson": regressions.poisson,
    "negative-binomial": regressions.negative_binomial,
}
INTERCEPT, OTHER = "intercept", "other"
TASKS: dict[Outcome, Task] = {"class": "classification", "number": "regression", "count": "regression"}


def outcome_of(model: str) -> Outcome:
    """What a model learns to predict. Bad input: an unknown name, or a file that is not there."""
    if is_file(model):
        parts(model)
        return "any"
    if model not in OUTCOMES:
        raise refuse(
            "model", model, f"to be one of {', '.join(OUTCOMES)}, or a function of your own, such as {EXAMPLE}"
        )
    return OUTCOMES[model]


@dataclass(frozen=True, eq=False)
class Family:
    """A `model`, and the way to it.

    `arguments(x, y)` is what it is called with, y = None to predict. `shown(values)` are the parameters that people
    want to see, by site; `label(site, index)` is the name of one of their entries.
    """

    model: NumPyroModel
    arguments: Callable[[Table, Targets | None], Data]
    shown: Callable[[Shown], Shown]
    label: Callable[[str, tuple[int, ...]], str]


def family(
    model: str, features: tuple[str, ...], recipe: Recipe, *, group: str | None = None, components: int | None = None
) -> Family:
    """The family of `model` for records with these features. Bad input: see `outcome_of`; no such group."""
    if is_file(model):
        return Family(load_model(model), lambda x, y: (_flat(x), y), dict, site_label)
    if model == "hierarchical":
        return _hierarchical(features, recipe, group)
    if model == "mixture":
        return _mixture(features, components or 2)
    one_of("model", model, _REGRESSIONS)
    names = (*features, INTERCEPT)

    def label(site: str, index: tuple[int, ...]) -> str:
        return names[index[0]] if site == "w" else site_label(site, index)

    def arguments(x: Table, y: Targets | None) -> Data:
        return _with_one(x), np.asarray(y, np.int32) if y is not None and OUTCOMES[model] == "count" else y

    return Family(_REGRESSIONS[model], arguments, dict, label)


def _hierarchical(features: tuple[str, ...], recipe: Recipe, group: str | None) -> Family:
    columns = recipe.columns if isinstance(recipe, TableRecipe) else ()
    texts = {column.name: column for column in columns if isinstance(column, OneHot)}
    if group is None or group not in texts:
        raise refuse(
            "group",
            group,
            f"to name a column of categories for {Argument('model', 'hierarchical')}",
            f"Such columns here: {', '.join(map(repr, texts)) or 'none; name one in categories'}.",
            got=str(Argument("group", group)) if group else "none",
        )
    names = texts[group].feature_names
    first = features.index(names[0])
    last = first + len(names)
    rest = (*features[:first], *features[last:])

    def arguments(x: Table, y: Targets | None) -> Data:
        flat, own = _flat(x), _flat(x)[:, first:last]
        seen = own.any(axis=1)
        code = np.where(seen, own.argmax(axis=1), len(names)).astype(np.int32)
        return code, np.concatenate([flat[:, :first], flat[:, last:]], axis=1), y

    def shown(values: Shown) -> Shown:
        offsets = values["centre"] + values["spread"] * values["u"]
        return {"w": values["w"], "group": offsets, "spread": values["spread"]}

    def label(site: str, index: tuple[int, ...]) -> str:
        if site == "spread":
            return f"spread of {group}"
        return (rest if site == "w" else (*names, f"{group}: {OTHER}"))[index[0]]

    return Family(regressions.hierarchical_logistic(len(names) + 1), arguments, shown, label)


def _mixture(features: tuple[str, ...], components: int) -> Family:
    def shown(values: Shown) -> Shown:
        u = values["u"]
        return {"weight": u / jnp.sum(u), "mu": values["mu"], "tau": values["tau"]}

    def label(site: str, index: tuple[int, ...]) -> str:
        part = {"weight": "weight", "mu": "mean", "tau": "variance"}[site]
        return f"{part} {index[0] + 1}" + (f": {features[index[1]]}" if site == "mu" else "")

    return Family(regressions.gaussian_mixture(components), lambda x, _: (_flat(x),), shown, label)


def _flat(x: Table) -> npt.NDArray[np.float32]:
    return np.asarray(x, np.float32).reshape(len(x), -1)


def _with_one(x: Table) -> npt.NDArray[np.float32]:
    flat = _flat(x)
    return np.concatenate([flat, np.ones((len(flat), 1), np.float32)], axis=1)
