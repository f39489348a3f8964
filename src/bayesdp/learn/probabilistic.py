"""A Bayesian model as VI and its relatives see it: a prior and a likelihood of one record, on unconstrained numbers.

    log p(z) + Σ_i log p(x_i | z),    z in R^d: the parameters, each mapped to the real line, flattened        (D1)

A NumPyro model with a data plate is read by `numpyro_model`; a pair of plain functions is taken as it is. Records do
not see each other: the likelihood of a record is a function of z and that record alone, whatever the model does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bayesdp.errors import InputError, array, refuse

Data = Any
Record = Any
Values = Any
"""A tree of parameters in their own, constrained space: {site: array} for a NumPyro model."""


@dataclass(frozen=True)
class Probabilistic:
    """`log_prior(z)`, `log_likelihood(z, record)`, and the way between z and the model's own parameters.

    `z` is a float32 vector of length `dim`. `start` is where a guide begins. `constrain(z)` gives the parameters of one
    z as the model names them. `outcomes(z, inputs)` gives the law of each observed site for many records, None where
    it is not known. Readings of one model for records of one shape are equal: what was compiled for one serves all.
    """

    dim: int
    start: jax.Array = field(compare=False)
    log_prior: Callable[[jax.Array], jax.Array]
    log_likelihood: Callable[[jax.Array, Record], jax.Array]
    constrain: Callable[[jax.Array], Values]
    labels: tuple[str, ...]
    outcomes: Callable[[jax.Array, Data], dict[str, Any]] | None = None

    def log_likelihoods(self, z: jax.Array, data: Data) -> jax.Array:
        """The log p(x_i | z) of every record of `data`."""
        return jax.vmap(self.log_likelihood, (None, 0))(z, data)


class NormalPrior:
    """log N(w; mean, covariance): a prior for the pair (NormalPrior(w0, S0), log_likelihood).

    `mean` is a tree of arrays, or one, and gives the parameters their form; `covariance` is a number (times the
    identity), a vector (its diagonal) or a matrix over the flattened parameters.

    Bad input: a covariance that is not positive (definite) or does not fit gets `InputError`.
    """

    def __init__(self, mean: Any, covariance: Any = 1.0) -> None:
        self.mean = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), mean)
        flat, _ = ravel_pytree(self.mean)
        values = array("covariance", covariance, ndim=(0, 1, 2))
        matrix = (
            np.diag(np.broadcast_to(values, len(flat))) if values.ndim < 2 and values.size in (1, len(flat)) else values
        )
        if matrix.shape != (len(flat), len(flat)):
            raise InputError(
                f"Expected covariance to be a number, {len(flat)} numbers or a {len(flat)} x {len(flat)} matrix, "
                f"got shape {values.shape}."
            )
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise refuse("covariance", covariance, "to be positive definite") from None
        self._flat, self._white = flat, jnp.asarray(np.linalg.inv(factor), float)
        self._constant = -float(np.log(np.diag(factor)).sum()) - len(flat) / 2 * np.log(2 * np.pi)

    def __call__(self, params: Any) -> jax.Array:
        """The log density at `params`."""
        away = self._white @ (ravel_pytree(params)[0] - self._flat)
        return jnp.asarray(self._constant - 0.5 * jnp.sum(away**2))


def probabilistic(model: Any, data: Data, params: Any = None) -> Probabilistic:
    """The model as a `Probabilistic`.

    Args:
        model: a NumPyro model with a data plate, or a pair `(log_prior(params), log_likelihood(params, record))`.
        data: arrays with the records along the first axis; the model is called with `*data` for a tuple or list,
            `**data` for a dict, else with `data` itself. Only shapes are looked at, and that observed values lie in
            the support of their site.
        params: for a pair, a tree of float arrays that gives the parameters their form and the start (not needed with
            a `NormalPrior`); for a NumPyro model, optional starting values by site.

    Bad input gets `InputError` that names the site: no data plate, discrete latent sites, a prior that depends on the
    records or is improper, a record's likelihood that depends on the others, no parameters, wrong shapes.
    """
    pair = isinstance(model, tuple | list) and len(model) == 2 and all(callable(part) for part in model)
    if not pair and not callable(model):
        raise refuse("model", model, "to be a NumPyro model or a pair of functions (log_prior, log_likelihood)")
    records_of("data", data)
    if pair:
        return _from_densities(model[0], model[1], data, params)
    from bayesdp.learn.numpyro_model import from_numpyro

    return from_numpyro(model, data, params)


def records_of(name: str, data: Data) -> int:
    """How many records a tree of arrays holds. Bad input: no array, or arrays of different lengths."""
    lengths = {int(np.shape(leaf)[0]) if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1 or -1 in lengths or 0 in lengths:
        raise InputError(f"Expected {name} to hold arrays with the same number of records, got {sorted(lengths)}.")
    return lengths.pop()


@dataclass(frozen=True)
class Form:
    """What records look like: the tree they come in, and the shape and kind of each part of one record."""

    structure: Any
    parts: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]

    @classmethod
    def of(cls, data: Data) -> Form:
        """The form of the records of `data`."""
        leaves, structure = jax.tree.flatten(data)
        return cls(structure, tuple((np.shape(leaf)[1:], np.dtype(leaf.dtype)) for leaf in map(_array, leaves)))

    def made_up(self, count: int) -> Data:
        """`count` records of this form, made without looking at any: checks on them tell nothing.

        Numbers lie between 0 and 1, which is inside most supports; whole numbers are 0 and 1 in turn.
        """
        rng = np.random.default_rng(0)

        def part(shape: tuple[int, ...], kind: np.dtype[Any]) -> Any:
            if np.issubdtype(kind, np.floating):
                return rng.uniform(0.2, 0.8, (count, *shape)).astype(np.float32)
            return (np.arange(count * math.prod(shape)).reshape(count, *shape) % 2).astype(kind)

        return jax.tree.unflatten(self.structure, [part(*one) for one in self.parts])


def kept(read: Callable[..., Any]) -> Callable[..., Any]:
    """`read`, remembering its last answers where the arguments can be compared."""

    @lru_cache(maxsize=16)
    def remembered(doubles: bool, *arguments: Any) -> Any:
        del doubles  # answers hold arrays, which are of the precision that was in force
        return read(*arguments)

    def recall(*arguments: Any) -> Any:
        if all(isinstance(one, Hashable) for one in arguments):
            return remembered(bool(jax.config.jax_enable_x64), *arguments)  # type: ignore[attr-defined]
        return read(*arguments)

    return recall


def _from_densities(log_prior: Any, log_likelihood: Any, data: Data, params: Any) -> Probabilistic:
    template = getattr(log_prior, "mean", None) if params is None else params
    if template is None:
        raise InputError(
            "Expected params, a tree of arrays that gives the parameters their form, beside (log_prior, log_likelihood)"
            ", got None. With a NormalPrior they may be left out."
        )
    for leaf in jax.tree.leaves(template):
        if not np.issubdtype(_array(leaf).dtype, np.floating):
            raise refuse("params", leaf, "to be a tree of float arrays")
    start, _ = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), template))
    if not start.size:
        raise InputError("Expected params to hold at least one number, got none: the guide would be empty.")
    # One more axis, as if the parameters were records: then their form is a form.
    form = Form.of(jax.tree.map(lambda leaf: _array(leaf)[None], template))
    reading: Probabilistic = _read_pair(log_prior, log_likelihood, form, Form.of(data))
    return replace(reading, start=start)


@kept
def _read_pair(log_prior: Any, log_likelihood: Any, params: Form, records: Form) -> Probabilistic:
    template = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], jnp.float32), params.made_up(1))
    origin, unravel = ravel_pytree(template)
    record = jax.tree.map(lambda leaf: leaf[0], records.made_up(1))
    for name, function, given in (
        ("log_prior", log_prior, (template,)),
        ("log_likelihood", log_likelihood, (template, record)),
    ):
        try:
            shape = getattr(jax.eval_shape(function, *given), "shape", None)
        except Exception as problem:
            raise InputError(f"Expected {name} to run on params and one record, got an error: {problem}") from problem
        if shape != ():
            raise InputError(f"Expected {name} to give one number (for one record), got shape {shape}.")
    return Probabilistic(
        dim=int(origin.size),
        start=origin,
        log_prior=lambda z: log_prior(unravel(z)),
        log_likelihood=lambda z, record: log_likelihood(unravel(z), record),
        constrain=unravel,
        labels=tuple(labels(template)),
    )


def _array(leaf: Any) -> Any:
    return leaf if hasattr(leaf, "dtype") else np.asarray(leaf)


def labels(tree: Any) -> list[str]:
    """One name per entry of the flattened parameters."""
    labels = []
    for place, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(place, simple=True, separator=".") or "value"
        shape = np.shape(leaf)
        labels += [name + ("[" + ",".join(map(str, index)) + "]" if shape else "") for index in np.ndindex(shape)]
    return labels
