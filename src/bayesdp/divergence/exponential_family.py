"""Rényi divergence inside an exponential family: one formula for all of them.

A family has densities e^{<η, T(x)> − F(η)} with respect to a fixed measure. What differs between families
is only the log-partition F, the map from the usual parameters to η, and where η may lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from bayesdp import errors
from bayesdp.errors import Array

_ULPS = 4.0
"""Roundings of each term: of its parameters, of a special function, of the product and of the sum."""


@dataclass(frozen=True)
class Family:
    """A family: its log-partition, its natural parameters, its domain.

    `parameters` is the length of the last axis of the usual parameters; 0 means that each entry of an array
    is one distribution, None any length. `natural` maps to η with a last axis; `inside` says which η are
    allowed. `size(η, reach)` is Σ |terms of F| + Σ_i |∂F/∂η_i| reach_i: what a relative rounding of the
    terms, and of parts of η as large as `reach`, is multiplied with.
    """

    name: str
    parameters: int | None
    natural: Callable[[Array], Array]
    log_partition: Callable[[Array], Array]
    inside: Callable[[Array], Any]
    size: Callable[[Array, Array], Array]
    below: float | None = None

    def check(self, name: str, params: Any) -> Array:
        """`params` as an array inside the family's parameter space, or an `InputError`."""
        value = errors.array(name, params, above=0, below=self.below)
        if self.parameters == 0:
            return value
        if value.ndim == 0 or (self.parameters is not None and value.shape[-1] != self.parameters):
            raise errors.refuse(
                name,
                value.shape,
                f"with the {self.parameters or ''} parameters of one {self.name} law on the last axis",
                got=f"shape {value.shape}",
            )
        return value


def _one(value: Array) -> Array:
    return np.asarray(value[..., None])


def _positive(eta: Array) -> Any:
    return (eta > 0).all(axis=-1)


def _everywhere(eta: Array) -> Any:
    return np.ones(eta.shape[:-1], dtype=bool)


def _exponential(eta: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(eta[..., 0]))


def _dirichlet(eta: Array) -> Array:
    return np.asarray(special.gammaln(eta).sum(axis=-1) - special.gammaln(eta.sum(axis=-1)))


def _dirichlet_size(eta: Array, reach: Array) -> Array:
    own = np.abs(special.gammaln(eta)) + np.abs(special.digamma(eta)) * reach
    total = eta.sum(axis=-1)
    shared = np.abs(special.gammaln(total)) + np.abs(special.digamma(total)) * reach.sum(axis=-1)
    return np.asarray(own.sum(axis=-1) + shared)


def _gamma_size(eta: Array, reach: Array) -> Array:
    shape, rate = eta[..., 0], -eta[..., 1]
    own = np.abs(special.gammaln(shape)) + np.abs(special.digamma(shape)) * reach[..., 0]
    return np.asarray(own + (shape + reach[..., 0]) * np.abs(np.log(rate)) + shape / rate * reach[..., 1])


BERNOULLI = Family(
    "Bernoulli",
    0,
    lambda p: _one(special.logit(p)),
    lambda e: np.logaddexp(0.0, e[..., 0]),
    _everywhere,
    lambda e, reach: np.logaddexp(0.0, e[..., 0]) + special.expit(e[..., 0]) * (1 + reach[..., 0]),
    below=1,
)
"""Probability of a one, in (0, 1): η = log(p/(1−p)), F = log(1 + e^η)."""
POISSON = Family(
    "Poisson",
    0,
    lambda rate: _one(np.log(rate)),
    _exponential,
    _everywhere,
    lambda e, reach: _exponential(e) * (1 + reach[..., 0]),
)
"""Mean: η = log(mean), F = e^η."""
EXPONENTIAL = Family(
    "exponential",
    0,
    lambda rate: _one(-rate),
    lambda e: -np.log(-e[..., 0]),
    lambda e: e[..., 0] < 0,
    lambda e, reach: 1 + np.abs(np.log(-e[..., 0])) + reach[..., 0] / -e[..., 0],
)
"""Rate: η = −rate, F = −log(−η), η < 0."""
GAMMA = Family(
    "gamma",
    2,
    lambda p: p * np.array([1.0, -1.0]),
    lambda e: special.gammaln(e[..., 0]) - e[..., 0] * np.log(-e[..., 1]),
    lambda e: (e[..., 0] > 0) & (e[..., 1] < 0),
    _gamma_size,
)
"""(shape, rate): η = (shape, −rate), F = log Γ(shape) − shape·log(rate), shape > 0, rate > 0."""
BETA = Family("beta", 2, lambda p: p, _dirichlet, _positive, _dirichlet_size)
"""(a, b): η = (a, b), F = log B(a, b), both > 0."""
DIRICHLET = Family("Dirichlet", None, lambda p: p, _dirichlet, _positive, _dirichlet_size)
"""Concentrations (k,): η = them, F = Σ log Γ(η_i) − log Γ(Σ η_i), all > 0."""


def cost(family: Family, params1: Any, params0: Any, orders: Any) -> Array:
    """(α−1)·D_α(P₁‖P₀) = F(αη₁ + (1−α)η₀) − αF(η₁) − (1−α)F(η₀).

    It is +inf where αη₁ + (1−α)η₀ leaves the domain, and there only (or above what float64 can hold).
    Parameters broadcast over leading axes; shape: those + orders.shape. Never below the exact value: a bound
    on rounding, a few units in the last place of the terms of the three F, is added, so nearly equal laws
    cost about 1e-14 of these terms rather than nothing; equal ones cost 0. Never NaN. Parameters
    outside the family or orders <= 1 are an `InputError`.
    """
    first = family.natural(family.check("params1", params1))
    second = family.natural(family.check("params0", params0))
    first, second = np.broadcast_arrays(first, second)
    grid = errors.array("orders", orders, above=1, ndim=(0, 1))
    alpha = np.atleast_1d(grid)
    lam = alpha - 1
    mixed = first[..., None, :] + lam[:, None] * (first - second)[..., None, :]
    inside = family.inside(mixed)
    mixed = np.where(inside[..., None], mixed, first[..., None, :])
    at_first, at_second = family.log_partition(first)[..., None], family.log_partition(second)[..., None]
    with np.errstate(over="ignore", invalid="ignore"):
        value = (family.log_partition(mixed) - at_first) - lam * (at_first - at_second)
        sizes = [family.size(eta, np.abs(eta))[..., None] for eta in (first, second)]
        reach = alpha[:, None] * np.abs(first[..., None, :]) + lam[:, None] * np.abs(second[..., None, :])
        rounding = family.size(mixed, reach) + alpha * sizes[0] + lam * sizes[1]
        value = np.maximum(value, 0.0) + _ULPS * np.finfo(np.float64).eps * rounding
    value = np.where((first == second).all(axis=-1)[..., None], 0.0, value)
    inside &= ~np.isnan(value)  # inf − inf: beyond float64
    return np.where(inside, value, np.inf).reshape(first.shape[:-1] + grid.shape)
