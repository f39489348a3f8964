"""A few models to start with, made of layers that the fast clipping path knows, and their losses."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bayesdp.errors import one_of
from bayesdp.mechanism.bookkeeping import ModelLoss
from bayesdp.mechanism.layers import Activation, AvgPool, Conv2D, Dense, Flatten, Layer, Sequential

MODELS = ("logistic", "mlp", "cnn", "lenet5")


def cross_entropy(logits: jax.Array, label: jax.Array) -> jax.Array:
    """-log softmax(logits)[label] of one record."""
    return -jax.nn.log_softmax(logits)[label]


def squared_error(output: jax.Array, target: jax.Array) -> jax.Array:
    """(output - target)²/2 of one record."""
    return 0.5 * jnp.square(output[0] - target)


def model(name: str, outputs: int) -> Sequential:
    """The named model with that many outputs.

    "logistic": one dense layer. "mlp": 256 tanh units. "cnn": two small convolutions. "lenet5": LeNet-5 with tanh and
    average pooling, for images of at least 28 x 28 pixels. Bad input: another name gets `InputError`.
    """
    one_of("model", name, MODELS)
    layers: dict[str, tuple[Layer, ...]] = {
        "logistic": (Flatten(), Dense(outputs)),
        "mlp": (Flatten(), Dense(256), Activation("tanh"), Dense(outputs)),
        "cnn": (
            Conv2D(16, 5, stride=2),
            Activation("tanh"),
            Conv2D(32, 3, stride=2),
            Activation("tanh"),
            Flatten(),
            Dense(32),
            Activation("tanh"),
            Dense(outputs),
        ),
        "lenet5": (
            Conv2D(6, 5),
            Activation("tanh"),
            AvgPool(2),
            Conv2D(16, 5, padding="VALID"),
            Activation("tanh"),
            AvgPool(2),
            Flatten(),
            Dense(120),
            Activation("tanh"),
            Dense(84),
            Activation("tanh"),
            Dense(outputs),
        ),
    }
    return Sequential(layers[name])


def classifier(name: str, classes: int) -> ModelLoss:
    """The named model with the cross-entropy loss: `loss(params, (x, y))` of one record."""
    return ModelLoss(model(name, classes), cross_entropy)


def regressor(name: str) -> ModelLoss:
    """The named model with one output and the squared error."""
    return ModelLoss(model(name, 1), squared_error)
