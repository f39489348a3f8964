"""A network with Gaussian priors on its weights, as a sampler sees it.

U(w) = ½ Σ_l precision_l |w_l|² + Σ_i loss(w, x_i),    loss = −log p(x_i | w): cross-entropy, or half squared error
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from bayesdp import errors
from bayesdp.learn.models import networks
from bayesdp.learn.models.density import Law, Probabilistic, labels
from bayesdp.learn.records import Data, Record
from bayesdp.mechanism.bookkeeping import ModelLoss
from bayesdp.mechanism.clipping import Params

Loss = Callable[[Params, Record], jax.Array]
Outcomes = Callable[[Params, Data], Law]


@dataclass(frozen=True)
class Network:
    """What a network and its prior are made of.

    Args:
        loss: −log p(record | params) of one record; a `mechanism.ModelLoss` takes the fast path.
        params: a tree of float arrays: the form of the weights, and where chains begin.
        precision: 1/variance of the prior of every weight.
        outcomes: `outcomes(params, inputs)` → a NumPyro distribution over the outcomes of many records, for `predict`;
            known for a `ModelLoss` with cross-entropy or squared error.

    Bad input: a precision that is not positive gets `InputError`.

    Examples:
        >>> import jax.numpy as jnp
        >>> net = bd.Network(lambda w, record: (record[1] - record[0] @ w) ** 2 / 2, jnp.zeros(3), precision=4.0)
        >>> net.precision
        4.0
    """

    loss: Loss
    params: Params = field(compare=False)
    precision: float = 1.0
    outcomes: Outcomes | None = None

    def __post_init__(self) -> None:
        errors.number("precision", self.precision, above=0)
        if not callable(self.loss):
            raise errors.refuse("loss", self.loss, "to be a function loss(params, record) or a ModelLoss")

    def log_prior(self, params: Params) -> jax.Array:
        """Up to a constant."""
        squares = sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(params)), jnp.zeros(()))
        return -0.5 * self.precision * squares

    def reading(self) -> Probabilistic:
        """The model on the flattened weights."""
        start, unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), self.params))
        law = self.outcomes or _known(self.loss)
        return Probabilistic(
            dim=int(start.size),
            start=start,
            log_prior=lambda z: self.log_prior(unravel(z)),
            log_likelihood=lambda z, record: -self.loss(unravel(z), record),
            constrain=unravel,
            labels=labels(self.params),
            outcomes=None if law is None else lambda z, inputs: {"outcome": law(unravel(z), inputs)},
        )


def _known(loss: Loss) -> Outcomes | None:
    """The law of the outcomes, where the loss says which it is."""
    if not isinstance(loss, ModelLoss):
        return None
    from bayesdp.learn.models import laws  # of NumPyro, which a network without a known law does not need

    if loss.example_loss is networks.cross_entropy:
        return lambda params, x: laws.categorical(loss.model.apply(params, x))
    if loss.example_loss is networks.squared_error:
        return lambda params, x: laws.unit_normal(loss.model.apply(params, x)[..., 0])
    return None
