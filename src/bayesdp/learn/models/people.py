"""A model of rows as one of people, who have several each.

log p(person | z) = Σ_r log p(row_r | z) over the person's rows
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from bayesdp.learn.models.density import Probabilistic
from bayesdp.learn.records import Record
from bayesdp.mechanism.people import People


@dataclass(frozen=True)
class Together:
    """The log-likelihood of a person's rows; equal for equal ones, so that what was compiled for one serves all."""

    log_likelihood: Callable[[jax.Array, Record], jax.Array]

    def __call__(self, z: jax.Array, person: People) -> jax.Array:
        """Of one person."""
        values = jax.vmap(self.log_likelihood, (None, 0))(z, person.rows)
        return jnp.sum(jnp.where(person.present, values, 0))


def of_people(model: Probabilistic) -> Probabilistic:
    """The model for people. What it says of outcomes stays about rows."""
    return replace(model, log_likelihood=Together(model.log_likelihood), binary=False)
