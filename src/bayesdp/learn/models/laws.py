"""What the law of an outcome, a NumPyro distribution, says of it: its mean or class probabilities, its logit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from numpyro import distributions as dist

from bayesdp.errors import unmet
from bayesdp.learn.models.density import Law

WRAPPERS = (dist.ExpandedDistribution, dist.Independent, dist.MaskedDistribution)
"""Laws that only change the shape of another."""


def unwrapped(law: Law, wrappers: tuple[type[Law], ...] = WRAPPERS) -> Law:
    """The law inside of all these wrappers."""
    while isinstance(law, wrappers):
        law = law.base_dist
    return law


def improper(law: Law) -> bool:
    """Whether a prior is none: it has no total mass."""
    return isinstance(unwrapped(law, (*WRAPPERS, dist.TransformedDistribution)), dist.ImproperUniform)


def expected(name: str, law: Law) -> jax.Array:
    """The mean of the outcomes of site `name`; class probabilities for categories. Bad input: a law without a mean."""
    base = unwrapped(law)
    if isinstance(base, dist.CategoricalLogits | dist.CategoricalProbs):
        return jnp.broadcast_to(base.probs, law.batch_shape + base.probs.shape[-1:])
    try:
        return jnp.asarray(law.mean)
    except (AttributeError, NotImplementedError):
        raise unmet("model", None, "outcomes with a mean", f"site {name!r} of {type(base).__name__}") from None


def logit(name: str, law: Law) -> jax.Array:
    """The logit of the yes/no outcomes of site `name`. Bad input: others."""
    base = unwrapped(law)
    if not isinstance(base, dist.BernoulliLogits | dist.BernoulliProbs):
        raise unmet(
            "method",
            "probit",
            "yes/no outcomes (Bernoulli) for the probit-scaled form",
            f"site {name!r} of {type(base).__name__}",
            'Use method="monte-carlo".',
        )
    return jnp.broadcast_to(base.logits, law.batch_shape)


def categorical(logits: jax.Array) -> Law:
    """One of several classes, from the outputs of a network (records, classes)."""
    return dist.CategoricalLogits(logits)


def unit_normal(means: jax.Array) -> Law:
    """A number of variance 1 around each of `means`: half squared error is its negative log density."""
    return dist.Normal(means, 1.0)
