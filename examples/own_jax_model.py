"""Train a model of your own: all that is asked for is a loss of one record."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import bayesdp as bd

rng = np.random.default_rng(0)
x = rng.normal(size=(1500, 4)).astype(np.float32)
y = (np.sin(x[:, 0]) + x[:, 1] > 0).astype(np.int32)
train, outsiders = (x[:1000], y[:1000]), (x[1000:], y[1000:])


def loss(params, record):
    features, label = record
    logit = jnp.tanh(features @ params["in"]) @ params["out"]
    return jax.nn.softplus(jnp.where(label == 1, -logit, logit))


params = {"in": 0.5 * jax.random.normal(jax.random.key(0), (4, 8)), "out": jnp.zeros(8)}
plan = bd.SGD(clip_norm=1.0, sampling_rate=0.2, steps=30, optimizer=optax.sgd(2.0), delta=1e-4).calibrate(epsilon=2.0)
run = plan.fit(loss, params, train, holdout=outsiders, members=500)
for promise in run.guarantees:
    print(promise)
right = (jnp.tanh(outsiders[0] @ run.params["in"]) @ run.params["out"] > 0) == outsiders[1]
print(f"right about {right.mean():.0%} of outsiders (sensitive: computed from records without noise)")
