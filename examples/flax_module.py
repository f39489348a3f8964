"""A Flax module, trained privately. (Equinox: see docs/how-to/own-model.md.)"""

import jax
import numpy as np
import optax
from flax import linen

import bayesdp as bd

rng = np.random.default_rng(0)
x = rng.normal(size=(800, 4)).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(np.int32)

module = linen.Sequential([linen.Dense(8), linen.tanh, linen.Dense(2)])
params = module.init(jax.random.key(0), x[:1])


def loss(params, record):
    features, label = record
    return -jax.nn.log_softmax(module.apply(params, features))[label]


plan = bd.SGD(clip_norm=1.0, sampling_rate=0.2, steps=20, optimizer=optax.sgd(1.0), delta=1e-4).calibrate(epsilon=2.0)
run = plan.fit(loss, params, (x, y))
print(run.guarantees[0])
