"""Classes that count more than others: declared by whoever trains, public, and no function of the data.

    loss of a record of class k  =  w_k · (−log softmax(logits)_k)

A record's gradient grows with its weight and is clipped as any other, so that no guarantee changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bayesdp import errors
from bayesdp.learn.models.networks import cross_entropy


@dataclass(frozen=True)
class WeightedCrossEntropy:
    """The cross-entropy of one record times the weight of its class."""

    weights: tuple[float, ...]

    def __call__(self, logits: jax.Array, label: jax.Array) -> jax.Array:
        """The loss of one record."""
        return jnp.asarray(self.weights, jnp.float32)[label] * cross_entropy(logits, label)


def class_weights(text: str | None, classes: tuple[str, ...]) -> tuple[float, ...]:
    """The weight of each of `classes` from words such as "yes=3,no=1"; none for None. Classes not named weigh 1.

    Bad input: a target without classes, a word that is no such pair, a class that is not there or is named twice, or a
    weight that is not above 0, get `InputError`.
    """
    if text is None:
        return ()
    if not classes:
        raise errors.refuse("class_weights", text, "to be left out where the target has no classes")
    found: dict[str, float] = {}
    for pair in text.split(","):
        name, sign, weight = pair.rpartition("=")
        name = name.strip()
        if not sign or name not in classes or name in found:
            shown = ", ".join(classes[:10]) + (" …" if len(classes) > 10 else "")
            hint = f"The classes are {shown}."
            raise errors.refuse("class_weights", text, "to name each class once, as in yes=3,no=1", hint)
        try:
            value = float(weight)
        except ValueError:
            raise errors.refuse("class_weights", text, f"to hold a number for {name!r}") from None
        found[name] = errors.number("class_weights", value, above=0, most=1e6)
    return tuple(found.get(name, 1.0) for name in classes)
