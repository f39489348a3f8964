"""Models of the papers and of textbooks, as ordinary NumPyro programs with a plate over the records.

Each can be given to `bd.VI`, `bd.PosteriorVI` or NumPyro itself. Where a number of groups or components must be known
beforehand, a function of it returns the model. Outcomes may be left out to predict them.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist

Model = Callable[..., None]


def logistic(x: jax.Array, y: jax.Array | None = None) -> None:
    """P(y = 1) = sigmoid(wᵀx), w ~ N(0, I); y is 0 or 1. An intercept is a column of ones (D11)."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1]]).to_event(1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def multinomial(classes: int) -> Model:
    """P(y = k) ∝ exp(w_kᵀx), w ~ N(0, I); y is 0 … classes − 1."""

    def model(x: jax.Array, y: jax.Array | None = None) -> None:
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1], classes]).to_event(2))
        with numpyro.plate("records", x.shape[0]):
            numpyro.sample("y", dist.Categorical(logits=x @ w), obs=y)

    return model


def linear(x: jax.Array, y: jax.Array | None = None) -> None:
    """Linear: y ~ N(wᵀx, noise²), w ~ N(0, I), noise ~ log-normal(0, 1)."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1]]).to_event(1))
    noise = numpyro.sample("noise", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, noise), obs=y)


def poisson(x: jax.Array, y: jax.Array | None = None) -> None:
    """Counts: y ~ Poisson(e^{wᵀx}), w ~ N(0, I)."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1]]).to_event(1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Poisson(jnp.exp(x @ w)), obs=y)


def negative_binomial(x: jax.Array, y: jax.Array | None = None) -> None:
    """Counts of mean m = e^{wᵀx} and variance m + m²/concentration; w ~ N(0, I), concentration ~ log-normal(0, 1)."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1]]).to_event(1))
    concentration = numpyro.sample("concentration", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(x @ w), concentration), obs=y)


def hierarchical_logistic(groups: int) -> Model:
    """P(y = 1) = sigmoid(a_g + wᵀx) with a_g = centre + spread·u_g, u_g ~ N(0, 1): records are in one of `groups`.

    centre ~ N(0, 1), spread ~ half-normal(1), w ~ N(0, I). The offsets u are written apart from their scale, which
    makes the posterior closer to a Gaussian than sampling a_g itself.
    """

    def model(group: jax.Array, x: jax.Array, y: jax.Array | None = None) -> None:
        centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        u = numpyro.sample("u", dist.Normal(0.0, 1.0).expand([groups]).to_event(1))
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[-1]]).to_event(1))
        with numpyro.plate("records", x.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=(centre + spread * u)[group] + x @ w), obs=y)

    return model


def gaussian_mixture(components: int, *, concentration: float = 1.0, shape: float = 1.0, rate: float = 1.0) -> Model:
    """Records from Σ_k π_k N(μ_k, τ_k I), the component of each summed out (local latents D10, mixture D12).

    π ~ Dirichlet(concentration), μ_k ~ N(0, I), τ_k ~ inverse-gamma(shape, rate). The paper's text has shape = rate =
    1, its code 10 and 0.1. π is given as u/Σu with u_k ~ gamma(concentration, 1), which is that Dirichlet law: on the
    real line u is e^v, so a Gaussian guide is a softmax of Gaussians for π, a Gaussian for μ, a log-normal for τ.
    """

    def model(x: jax.Array) -> None:
        u = numpyro.sample("u", dist.Gamma(concentration, 1.0).expand([components]).to_event(1))
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([components, x.shape[-1]]).to_event(2))
        tau = numpyro.sample("tau", dist.InverseGamma(shape, rate).expand([components]).to_event(1))
        parts = dist.Normal(mu, jnp.sqrt(tau)[:, None]).to_event(1)
        with numpyro.plate("records", x.shape[0]):
            which = dist.Categorical(logits=jax.nn.log_softmax(jnp.log(u)))
            numpyro.sample("x", dist.MixtureSameFamily(which, parts), obs=x)

    return model
