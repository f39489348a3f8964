"""A Bayesian model as VI and its relatives see it: a prior and a likelihood of one record, on unconstrained numbers.

    log p(z) + Σ_i log p(x_i | z),    z in R^d: the parameters, each mapped to the real line, flattened        (D1)

A pair of plain functions is taken as it is (`from_densities`); `reader.probabilistic` reads NumPyro models as well.
Records do not see each other: the likelihood of a record is a function of z and that record alone, whatever the model
does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypeVar, TypeVarTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree

from bayesdp.errors import InputError, array, refuse, unmet
from bayesdp.learn.records import Data, Record

Given = TypeVarTuple("Given")
T = TypeVar("T")
Dtype = np.dtype[Any]

Values = Any
"""A tree of parameters in their own, constrained space: {site: array} for a NumPyro model."""

Law = Any
"""A NumPyro distribution. The library is not loaded for its name."""

NumPyroModel = Callable[..., object]
"""Called with the data; what it returns is not looked at."""

LogPrior = Callable[[Values], jax.Array]
LogLikelihood = Callable[[Values, Record], jax.Array]


@dataclass(frozen=True)
class Probabilistic:
    """`log_prior(z)`, `log_likelihood(z, record)`, and the way between z and the model's own parameters.

    `z` is a float32 vector of length `dim`. `start` is where a guide begins. `constrain(z)` gives the parameters of one
    z as the model names them. `outcomes(z, inputs)` gives the law of each observed site for many records, None where
    it is not known; `binary`: all that is observed of a record is one answer, yes or no. Readings of one model for
    records of one shape are equal: what was compiled for one serves all.
    """

    dim: int
    start: jax.Array = field(compare=False)
    log_prior: Callable[[jax.Array], jax.Array]
    log_likelihood: Callable[[jax.Array, Record], jax.Array]
    constrain: Callable[[jax.Array], Values]
    labels: tuple[str, ...]
    outcomes: Callable[[jax.Array, Data], dict[str, Law]] | None = None
    binary: bool = False

    @classmethod
    def unread(cls, labels: tuple[str, ...]) -> Probabilistic:
        """A stand-in for a model that is not at hand: it knows the names of its parameters and nothing else."""

        def missing(*_: jax.Array | Data) -> NoReturn:
            raise unmet(
                "model",
                None,
                "the model that this posterior is of",
                "none: its folder holds numbers only",
                "Load it with what it was fitted to: load(folder, model, data).",
            )

        return cls(len(labels), jnp.zeros(len(labels)), missing, missing, missing, labels, missing)

    def log_likelihoods(self, z: jax.Array, data: Data) -> jax.Array:
        """The log p(x_i | z) of every record of `data`."""
        return jax.vmap(self.log_likelihood, (None, 0))(z, data)


class NormalPrior:
    """log N(w; mean, covariance): a prior for the pair (NormalPrior(w0, cov), log_likelihood).

    Args:
        mean: a tree of arrays, or one; it gives the parameters their form.
        covariance: a number (times the identity), a vector (its diagonal) or a matrix over the flattened parameters.

    Bad input: a covariance that is not positive (definite) or does not fit gets `InputError`.

    Examples:
        >>> import numpy as np
        >>> prior = bd.NormalPrior(np.zeros(3), 4.0)  # three weights of standard deviation 2
    """

    def __init__(self, mean: Values, covariance: npt.ArrayLike = 1.0) -> None:
        self.mean = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), mean)
        flat, _ = ravel_pytree(self.mean)
        values = array("covariance", covariance, ndim=(0, 1, 2))
        matrix = (
            np.diag(np.broadcast_to(values, len(flat))) if values.ndim < 2 and values.size in (1, len(flat)) else values
        )
        if matrix.shape != (len(flat), len(flat)):
            raise refuse(
                "covariance",
                values.shape,
                f"to be a number, {len(flat)} numbers or a {len(flat)} x {len(flat)} matrix",
                got=f"shape {values.shape}",
            )
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise refuse("covariance", covariance, "to be positive definite") from None
        self._flat, self._white = flat, jnp.asarray(np.linalg.inv(factor), float)
        self._constant = -float(np.log(np.diag(factor)).sum()) - len(flat) / 2 * np.log(2 * np.pi)

    def __call__(self, params: Values) -> jax.Array:
        """The log density at `params`."""
        away = self._white @ (ravel_pytree(params)[0] - self._flat)
        return jnp.asarray(self._constant - 0.5 * jnp.sum(away**2))


class Part(NamedTuple):
    """The shape and kind of one array of a record."""

    shape: tuple[int, ...]
    dtype: Dtype


@dataclass(frozen=True)
class Form:
    """What records look like: the tree they come in, and the shape and kind of each part of one record."""

    structure: jax.tree_util.PyTreeDef
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, data: Data) -> Form:
        """The form of the records of `data`."""
        leaves, structure = jax.tree.flatten(data)
        return cls(structure, tuple(Part(np.shape(leaf)[1:], _dtype(leaf)) for leaf in leaves))

    def made_up(self, count: int) -> Data:
        """`count` records of this form, made without looking at any: checks on them tell nothing.

        Numbers lie between 0 and 1, which is inside most supports; whole numbers are 0 and 1 in turn.
        """
        rng = np.random.default_rng(0)

        def made(part: Part) -> npt.NDArray[np.generic]:
            if np.issubdtype(part.dtype, np.floating):
                return rng.uniform(0.2, 0.8, (count, *part.shape)).astype(np.float32)
            return (np.arange(count * math.prod(part.shape)).reshape(count, *part.shape) % 2).astype(part.dtype)

        return jax.tree.unflatten(self.structure, [made(part) for part in self.parts])


def kept(read: Callable[[*Given], T]) -> Callable[[*Given], T]:
    """`read`, remembering its last answers where the arguments can be compared."""

    @lru_cache(maxsize=16)
    def remembered(doubles: bool, *arguments: *Given) -> T:
        del doubles  # answers hold arrays, which are of the precision that was in force
        return read(*arguments)

    def recall(*arguments: *Given) -> T:
        if all(isinstance(one, Hashable) for one in arguments):
            return remembered(bool(jax.config.jax_enable_x64), *arguments)  # type: ignore[attr-defined]
        return read(*arguments)

    return recall


def from_densities(
    log_prior: LogPrior, log_likelihood: LogLikelihood, data: Data, params: Values = None
) -> Probabilistic:
    """The pair as a `Probabilistic`: see `reader.probabilistic`."""
    template = log_prior.mean if params is None and isinstance(log_prior, NormalPrior) else params
    if template is None:
        raise unmet(
            "params",
            None,
            "params, a tree of arrays that gives the parameters their form, beside (log_prior, log_likelihood)",
            "None",
            "With a NormalPrior they may be left out.",
        )
    for leaf in jax.tree.leaves(template):
        if not np.issubdtype(_dtype(leaf), np.floating):
            raise refuse("params", leaf, "to be a tree of float arrays")
    start, _ = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), template))
    if not start.size:
        raise refuse("params", None, "to hold at least one number", got="none: the guide would be empty")
    # One more axis, as if the parameters were records: then their form is a form.
    form = Form.of(jax.tree.map(lambda leaf: np.asarray(leaf)[None], template))
    return replace(_read_pair(log_prior, log_likelihood, form, Form.of(data)), start=start)


@kept
def _read_pair(log_prior: LogPrior, log_likelihood: LogLikelihood, params: Form, records: Form) -> Probabilistic:
    template = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], jnp.float32), params.made_up(1))
    origin, unravel = ravel_pytree(template)
    record = jax.tree.map(lambda leaf: leaf[0], records.made_up(1))
    _check_number("log_prior", log_prior, template)
    _check_number("log_likelihood", log_likelihood, template, record)
    return Probabilistic(
        dim=int(origin.size),
        start=origin,
        log_prior=lambda z: log_prior(unravel(z)),
        log_likelihood=lambda z, record: log_likelihood(unravel(z), record),
        constrain=unravel,
        labels=labels(template),
    )


def _check_number(name: str, function: Callable[..., jax.Array], *given: Values) -> None:
    """Refuse a density that is not one number."""
    try:
        found = jax.eval_shape(function, *given)
    except Exception as problem:
        raise InputError(
            f"Expected {name} to run on params and one record, got an error: {problem}",
            argument=name,
            expected="to run on params and one record",
        ) from problem
    shapes = [leaf.shape for leaf in jax.tree.leaves(found)]
    if shapes != [()]:
        shape = shapes[0] if len(shapes) == 1 else None
        raise refuse(name, shape, "to give one number (for one record)", got=f"shape {shape}")


def _dtype(leaf: npt.ArrayLike | jax.Array) -> Dtype:
    return np.dtype(leaf.dtype if isinstance(leaf, jax.Array | np.ndarray | np.generic) else np.asarray(leaf).dtype)


def labels(tree: Values) -> tuple[str, ...]:
    """One name per entry of the flattened parameters."""
    return tuple(
        site_label(jax.tree_util.keystr(place, simple=True, separator=".") or "value", index)
        for place, leaf in jax.tree_util.tree_leaves_with_path(tree)
        for index in np.ndindex(np.shape(leaf))
    )


def site_label(site: str, index: tuple[int, ...]) -> str:
    """`w[3]`, as NumPyro users say it."""
    return f"{site}[{','.join(map(str, index))}]" if index else site
