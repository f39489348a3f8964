"""What a posterior says of new records: averages over draws of z, and the probit-scaled form for yes/no outcomes.

    Monte Carlo        E[y | x] ≈ (1/S) Σ_s E[y | x, z_s]
    probit-scaled      P(y=1 | x) ≈ sigmoid(m / sqrt(1 + π v/8)),   m = f(μ),  v = ∇f(μ)ᵀ Σ ∇f(μ)    (D11)
    log predictive     log (1/S) Σ_s p(x_n | z_s) for each record n                                  (D12, second form)

f is the logit of a yes/no outcome as a function of z; for a logistic regression it is linear and v = xᵀ Σ x.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from bayesdp.errors import InputError, unmet
from bayesdp.learn.models.density import Law, Probabilistic
from bayesdp.learn.records import Data, Record

Outcomes = dict[str, jax.Array]
"""What is expected of each observed site: (records,), or (records, classes)."""


def monte_carlo(model: Probabilistic, draws: jax.Array, inputs: Data) -> jax.Array | Outcomes:
    """The mean outcome of each record of `inputs`, averaged over `draws` (S, d); class probabilities for categories.

    One array where the model observes one site, else {site: array}. `inputs` are what the model is called with when
    nothing is observed, such as `x` or `(x,)`.
    """
    from bayesdp.learn.models.laws import expected  # of NumPyro, which is at hand wherever there are laws

    def one(z: jax.Array) -> Outcomes:
        return {name: expected(name, law) for name, law in _laws(model, z, inputs).items()}

    def add(total: Outcomes, z: jax.Array) -> tuple[Outcomes, None]:
        return jax.tree.map(jnp.add, total, one(z)), None

    zero = jax.tree.map(lambda part: jnp.zeros(part.shape), jax.eval_shape(one, draws[0]))
    total, _ = jax.jit(lambda zs: jax.lax.scan(add, zero, zs))(draws)
    return _single({name: part / len(draws) for name, part in total.items()})


def probit_scaled(model: Probabilistic, mean: jax.Array, factor: jax.Array, inputs: Data) -> jax.Array | Outcomes:
    """P(y = 1) of each record of `inputs` under z ~ N(mean, factor factorᵀ), for yes/no outcomes."""
    from bayesdp.learn.models.laws import logit

    def logits(z: jax.Array) -> Outcomes:
        return {name: logit(name, law) for name, law in _laws(model, z, inputs).items()}

    def scaled(mean: jax.Array, factor: jax.Array) -> Outcomes:
        middle, slopes = logits(mean), jax.jacobian(logits)(mean)
        variance = {name: jnp.sum((slope @ factor) ** 2, axis=-1) for name, slope in slopes.items()}
        return {name: jax.nn.sigmoid(m / jnp.sqrt(1 + math.pi * variance[name] / 8)) for name, m in middle.items()}

    return _single(jax.jit(scaled)(mean, factor))


def log_predictive(model: Probabilistic, draws: jax.Array, data: Data) -> jax.Array:
    """For each record n of `data`, outcome included: log (1/S) Σ_s p(x_n | z_s)."""

    def one(record: Record) -> jax.Array:
        values = jax.lax.map(lambda z: model.log_likelihood(z, record), draws)
        return jax.nn.logsumexp(values) - math.log(len(draws))

    result: jax.Array = jax.jit(jax.vmap(one))(jax.tree.map(jnp.asarray, data))
    return result


def _laws(model: Probabilistic, z: jax.Array, inputs: Data) -> dict[str, Law]:
    if model.outcomes is None:
        raise unmet(
            "model",
            None,
            "a NumPyro model without local latent variables to predict outcomes",
            "another",
            "Use sample(n) and your own function of the parameters.",
        )
    try:
        return model.outcomes(z, inputs)
    except TypeError as problem:
        raise InputError(
            f"Expected the model to run without outcomes (y=None): {problem}",
            argument="model",
            expected="to run without outcomes (y=None)",
        ) from problem


def _single(parts: Outcomes) -> jax.Array | Outcomes:
    return next(iter(parts.values())) if len(parts) == 1 else parts
