"""Twenty small models as users of Flax, Equinox and plain JAX write them: (loss, params, examples), tiny."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax

KEY = jax.random.key(0)
RECORDS = 5
LABELS = np.arange(RECORDS) % 3


def entropy(logits, label):
    return jax.nn.logsumexp(logits) - logits[label]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal((RECORDS, *shape)).astype(np.float32)


def tokens(length, words=40):
    return np.random.default_rng(1).integers(0, words, (RECORDS, length))


def flax(module, x):
    params = jax.jit(module.init)(KEY, x[0])
    return lambda p, record: entropy(module.apply(p, record[0]), record[1]), params, (x, LABELS)


def equinox(module, x, call=lambda module, x: module(x)):
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    return lambda p, record: entropy(call(eqx.combine(p, rest), record[0]), record[1]), params, (x, LABELS)


def plain(loss, params, examples):
    return loss, jax.tree.map(lambda shape: jax.random.normal(KEY, shape), params, is_leaf=_shape), examples


def _shape(node):
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)


class Lenet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.avg_pool(nn.relu(nn.Conv(3, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.max_pool(nn.tanh(nn.Conv(4, (3, 3), padding="VALID", strides=(1, 1))(x)), (2, 2), (2, 2))
        return nn.Dense(3)(nn.relu(nn.Dense(6)(x.reshape(-1))))


class Resnet(nn.Module):
    """Residual blocks with group normalisation, as ResNet-20 has nine of."""

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(4, (3, 3), use_bias=False)(x)
        for width, stride in ((4, 1), (8, 2)):
            inner = nn.relu(nn.GroupNorm(2)(nn.Conv(width, (3, 3), stride, use_bias=False)(x)))
            inner = nn.GroupNorm(2)(nn.Conv(width, (3, 3), use_bias=False)(inner))
            x = nn.relu(inner + (x if stride == 1 else nn.Conv(width, (1, 1), stride, use_bias=False)(x)))
        return nn.Dense(3)(x.mean((0, 1)))


class Mixer(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(4, (2, 2), (2, 2))(x).reshape(-1, 4)
        x = x + nn.Dense(x.shape[0])(nn.gelu(nn.Dense(5)(nn.LayerNorm()(x).T))).T
        x = x + nn.Dense(4)(nn.gelu(nn.Dense(6)(nn.LayerNorm()(x))))
        return nn.Dense(3)(x.mean(0))


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, words):
        x = nn.Embed(40, 8)(words) + self.param("places", nn.initializers.normal(), (words.shape[0], 8))
        mask = nn.make_causal_mask(words)
        x = x + nn.MultiHeadDotProductAttention(num_heads=2)(nn.LayerNorm()(x), mask=mask)
        x = x + nn.Dense(8)(nn.gelu(nn.Dense(12)(x)))
        return nn.Dense(3)(nn.RMSNorm()(x).mean(0))


class Recurrent(nn.Module):
    cell: type

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(nn.RNN(self.cell(5))(x)[-1])


class Round(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.tanh(nn.Dense(4)(x)), None


class Stacked(nn.Module):
    """The same layer with weights of its own in each round of a loop, each round computed again backwards."""

    @nn.compact
    def __call__(self, x):
        many = nn.scan(nn.remat(Round), variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        return nn.Dense(3)(many()(x, None)[0])


class Autoencoder(nn.Module):
    """A variational one, with noise that a record brings with it."""

    @nn.compact
    def __call__(self, x, noise):
        hidden = nn.relu(nn.Dense(5)(x))
        mean, log_var = nn.Dense(2)(hidden), nn.Dense(2)(hidden)
        out = nn.Dense(x.shape[0])(nn.relu(nn.Dense(5)(mean + jnp.exp(log_var / 2) * noise)))
        divergence = -0.5 * jnp.sum(1 + log_var - mean**2 - jnp.exp(log_var))
        return jnp.sum((out - x) ** 2) + divergence


def autoencoder():
    module, (x, noise) = Autoencoder(), (normal(6), normal(2, seed=1))
    params = jax.jit(module.init)(KEY, x[0], noise[0])
    return lambda p, record: module.apply(p, *record), params, (x, noise)


def bag(module, words):
    return jax.vmap(module[0])(words).mean(0) @ module[1].weight.T


def tied(p, record):
    """A table that is read at the start and multiplied with at the end."""
    hidden = jnp.tanh(p["table"][record[0]].mean(0) * p["gain"])
    return entropy(p["table"] @ hidden, record[1])


def standardised(p, record):
    """Weights that are made of parameters, and one parameter in several places."""
    w = (p["w"] - p["w"].mean(0)) / (1e-3 + p["w"].std(0))
    hidden = jax.nn.silu(record[0] @ w + p["b"])
    return entropy(hidden @ p["w"][:4, :3] / (1 + jnp.sum(p["b"] ** 2)), record[1])


def chosen(p, record):
    """A loop that picks its weights by the number of the round, and one that begins with a parameter."""
    x = lax.fori_loop(0, 3, lambda i, x: jnp.tanh(p["many"][i] @ x), record[0])
    end, _ = lax.scan(lambda h, row: (jnp.tanh(h @ p["w"] + row), h), p["start"], jnp.stack([x, 2 * x]), reverse=True)
    return entropy(jnp.where(record[0].sum() > 0, end[:3], end[1:] * p["start"][1:]), record[1])


@jax.custom_vjp
def halved(w, x):
    return w * x


halved.defvjp(lambda w, x: (w * x, (w, x)), lambda kept, g: (0.5 * g * kept[1], g * kept[0]))


def own_derivative(p, record):
    """A function with a derivative that is not its own, and one that is stopped."""
    return entropy(halved(p["w"], record[0]) * lax.stop_gradient(p["gain"]) + p["b"], record[1])


def series(p, record):
    """A convolution along one axis with dilation, and one in groups."""
    x = record[0][None]  # (1, length, channels)
    x = lax.conv_general_dilated(x, p["wide"], (1,), "SAME", rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC"))
    x = lax.conv_general_dilated(jnp.tanh(x), p["plain"], (2,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"))
    grouped = {"dimension_numbers": ("NWC", "WIO", "NWC"), "feature_group_count": 3}
    return entropy(lax.conv_general_dilated(jnp.tanh(x), p["groups"], (1,), "VALID", **grouped).sum((0, 1)), record[1])


def logistic(p, record):
    return jax.nn.softplus(-(2.0 * record[1] - 1) * (record[0] @ p["w"] + p["b"]))


SHELF = {
    "plain: logistic regression": lambda: plain(logistic, {"w": (4,), "b": ()}, (normal(4), LABELS)),
    "plain: tied table": lambda: plain(tied, {"table": (40, 4), "gain": (4,)}, (tokens(6), LABELS)),
    "plain: standardised weights": lambda: plain(standardised, {"w": (4, 4), "b": (4,)}, (normal(4), LABELS)),
    "plain: loops": lambda: plain(chosen, {"many": (3, 4, 4), "w": (4, 4), "start": (4,)}, (normal(4), LABELS)),
    "plain: own derivative": lambda: plain(own_derivative, {"w": (3,), "gain": (3,), "b": ()}, (normal(3), LABELS)),
    "plain: series": lambda: plain(
        series, {"wide": (3, 2, 3), "plain": (2, 3, 3), "groups": (2, 1, 3)}, (normal(9, 2), LABELS)
    ),
    "flax: multilayer perceptron": lambda: flax(nn.Sequential([nn.Dense(6), nn.relu, nn.Dense(3)]), normal(4)),
    "flax: LeNet": lambda: flax(Lenet(), normal(10, 10, 1)),
    "flax: ResNet": lambda: flax(Resnet(), normal(6, 6, 2)),
    "flax: mixer": lambda: flax(Mixer(), normal(4, 4, 2)),
    "flax: transformer": lambda: flax(Transformer(), tokens(7)),
    "flax: LSTM": lambda: flax(Recurrent(nn.OptimizedLSTMCell), normal(4, 3)),
    "flax: recurrent": lambda: flax(Recurrent(nn.SimpleCell), normal(4, 3)),
    "flax: layers in a loop": lambda: flax(Stacked(), normal(4)),
    "flax: variational autoencoder": autoencoder,
    "equinox: multilayer perceptron": lambda: equinox(eqx.nn.MLP(4, 3, 5, 2, key=KEY), normal(4)),
    "equinox: CNN": lambda: equinox(
        eqx.nn.Sequential(
            [
                eqx.nn.Conv2d(1, 3, 3, key=KEY),
                eqx.nn.MaxPool2d(2, 2),
                eqx.nn.Lambda(jax.nn.relu),
                eqx.nn.Conv2d(3, 33, 2, stride=2, padding=1, key=KEY),
                eqx.nn.AvgPool2d(2, 1),
                eqx.nn.Lambda(jnp.ravel),
                eqx.nn.Linear(33, 3, key=KEY),
            ]
        ),
        normal(1, 8, 8),
    ),
    "equinox: attention": lambda: equinox(
        (eqx.nn.MultiheadAttention(2, 4, key=KEY), eqx.nn.LayerNorm(4), eqx.nn.Linear(4, 3, key=KEY)),
        normal(5, 4),
        lambda m, x: m[2](jax.vmap(m[1])(x + m[0](x, x, x)).mean(0)),
    ),
    "equinox: LSTM": lambda: equinox(
        (eqx.nn.LSTMCell(3, 4, key=KEY), eqx.nn.Linear(4, 3, key=KEY)),
        normal(4, 3),
        lambda m, x: m[1](lax.scan(lambda h, row: (m[0](row, h), None), (jnp.zeros(4), jnp.zeros(4)), x)[0][0]),
    ),
    "equinox: bag of words": lambda: equinox(
        (eqx.nn.Embedding(40, 4, key=KEY), eqx.nn.Linear(4, 3, use_bias=False, key=KEY)), tokens(6), bag
    ),
}
