"""Whether a model is as curved as last iterates (L7) need: data must fit the declaration, the model is put to a test.

    J(x, θ) = d/dθ clip(−∇log p(x|θ); L)   symmetric,  0 ≤ J ≤ record;        strong ≤ −∇² log p(θ) ≤ stiff

for a few made-up records x and points θ. That can refute a declaration, it cannot prove one: only for a Gaussian prior
and a generalised linear model, which have the same form everywhere, does it come close.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdp.accountant.langevin.last_iterate import Curvature
from bayesdp.errors import Array, refuse, unmet
from bayesdp.learn.models.density import Form, Probabilistic
from bayesdp.learn.models.network import Network
from bayesdp.learn.models.reader import Model
from bayesdp.learn.records import Data, Record, records_of
from bayesdp.mechanism.people import People

_RECORDS, _POINTS = 4, 6
_SLACK = 1e-4
"""Second derivatives in float32 are right to some 1e-5 of the largest."""


def check(declared: Curvature, model: Model | Network, reading: Probabilistic, data: Data, clip_norm: float) -> None:
    """Refuse data that `declared` does not allow for, and a model that it is not true of.

    Guarantee: of the data only their number and the lengths of features are looked at. `InputError` says what failed.
    """
    if isinstance(model, Network):
        raise unmet(
            "model",
            None,
            "a log-concave posterior for last_only",
            "a Network, whose loss is not",
            "Leave last_only out.",
        )
    if isinstance(data, People):
        raise unmet(
            "data", None, "records of one row each for last_only", "people with several", "Leave last_only out."
        )
    if records_of("data", data) > declared.records:
        raise refuse("records", declared.records, f"to be at least the {records_of('data', data)} records of the data")
    if declared.feature_bound is not None:
        longest = float(np.linalg.norm(_features(data).astype(np.float64), axis=1).max())
        if longest > declared.feature_bound * (1 + 1e-6):
            hint = "Shorten rows to the bound before fitting; a bound taken from the data would not be private."
            raise refuse("feature_bound", declared.feature_bound, "to hold for every row of features", hint)
    made_up, points = _made_up(data, declared.feature_bound), _points(reading, declared)
    prior = np.asarray(jax.jit(partial(jax.lax.map, _prior_bend(reading)))(points))
    low, high = prior[:, 0].min(), prior[:, 1].max()
    if low < declared.strong * (1 - _SLACK) or high > declared.stiffest * (1 + _SLACK):
        raise unmet(
            "last_only",
            declared,
            f"−log prior to be curved between strong={declared.strong:g} and stiff={declared.stiffest:g}",
            f"{low:.4g} to {high:.4g}",
            "A Gaussian prior of standard deviation s has 1/s².",
        )
    pairs = [(point, record) for point in range(_POINTS) for record in range(_RECORDS)]
    which = np.array(pairs).T
    bend = partial(jax.lax.map, _record_bend(reading, clip_norm))
    found = np.asarray(
        jax.jit(bend)((points[which[0]], jax.tree.map(lambda leaf: jnp.asarray(leaf)[which[1]], made_up)))
    )
    size = float(np.abs(found).max())
    low, high, skew = found[:, 0].min(), found[:, 1].max(), found[:, 2].max()
    if low < -_SLACK * size or skew > _SLACK * size:
        raise unmet(
            "model",
            None,
            "the clipped loss of a record to be convex for last_only",
            f"a second derivative of {low:.4g} (asymmetry {skew:.4g})",
            "Use a generalised linear model with one outcome, or leave last_only out.",
        )
    if declared.feature_bound is not None and high > declared.record * (1 + _SLACK):
        raise unmet(
            "last_only",
            declared,
            f"the loss of a record to be curved by at most record={declared.record:g}",
            f"{high:.4g} with features of the declared length",
            "An intercept of the model is a feature too: (bound² + 1)/4.",
        )


def _features(data: Data) -> Array:
    """The x of data (x, …) or {"x": x, …}."""
    x: Any = data.get("x", 0.0) if isinstance(data, dict) else data[0] if isinstance(data, tuple | list) else data
    if np.ndim(x) != 2:
        raise refuse(
            "data",
            np.ndim(x),
            'as (x, …) or {"x": x, …} with a row of features for each record where last_only has a feature_bound',
            got=f"x of {np.ndim(x)} dimension(s)",
        )
    return np.asarray(x)


def _made_up(data: Data, bound: float | None) -> Data:
    """Records of the data's form, made without looking at any, with features as long as allowed."""
    records = Form.of(data).made_up(_RECORDS)
    if bound is None:
        return records
    x = _features(records)
    x = (x * np.random.default_rng(1).choice([-1.0, 1.0], x.shape)).astype(np.float32)
    x *= bound / np.linalg.norm(x, axis=1, keepdims=True)
    if isinstance(records, dict):
        return {**records, "x": x}
    return type(records)((x, *records[1:])) if isinstance(records, tuple | list) else x


def _points(reading: Probabilistic, declared: Curvature) -> jax.Array:
    """The origin, where a generalised linear model is most curved, and draws as wide as the prior."""
    draws = np.random.default_rng(2).standard_normal((_POINTS - 1, reading.dim)) / np.sqrt(declared.strong)
    return jnp.asarray(np.concatenate([np.zeros((1, reading.dim)), draws]), jnp.float32)


def _prior_bend(reading: Probabilistic) -> Callable[[jax.Array], jax.Array]:
    def bend(z: jax.Array) -> jax.Array:
        values = jnp.linalg.eigvalsh(-jax.hessian(reading.log_prior)(z))
        return jnp.stack([values[0], values[-1]])

    return bend


def _record_bend(reading: Probabilistic, clip_norm: float) -> Callable[[tuple[jax.Array, Record]], jax.Array]:
    def clipped(z: jax.Array, record: Record) -> jax.Array:
        gradient = -jax.grad(reading.log_likelihood)(z, record)
        square = jnp.sum(gradient**2)
        long = square > clip_norm**2
        # The root of a length that is not cut is not taken: at 0 it has no derivative.
        return jnp.asarray(gradient) * jnp.where(long, clip_norm / jnp.sqrt(jnp.where(long, square, 1.0)), 1.0)

    def bend(pair: tuple[jax.Array, Record]) -> jax.Array:
        matrix = jax.jacfwd(clipped)(*pair)
        values = jnp.linalg.eigvalsh((matrix + matrix.T) / 2)
        return jnp.stack([values[0], values[-1], jnp.abs(matrix - matrix.T).max()])

    return bend
