"""What did the run cost each record, and budgets that people chose themselves."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import optax

import bayesdp as bd

rng = np.random.default_rng(0)
x = rng.normal(size=(600, 3)).astype(np.float32)
y = np.sign(x[:, 0]).astype(np.float32)


def loss(weights, record):
    features, label = record
    return jnp.logaddexp(0.0, -label * (features @ weights))


plan = bd.SGD(clip_norm=1.0, sampling_rate=0.3, steps=20, optimizer=optax.sgd(2.0), delta=1e-4).calibrate(epsilon=2.0)
run = plan.fit(loss, jnp.zeros(3), (x, y), watch="everyone")
losses = run.instance.epsilon(delta=1e-4)
print(f"DP ε = {run.guarantees[0].epsilon:.2f}; of the records: median {np.median(losses):.2f} (sensitive)")

choices = np.where(np.arange(600) % 10 == 0, 0.5, 2.0)  # every tenth person grants less
chosen = dataclasses.replace(plan, filter=bd.Filter(choices)).fit(loss, jnp.zeros(3), (x, y))
print(f"record 0 asked for 0.5 and is promised ε = {chosen.tallies.budgets.guarantee(1e-4, record=0).epsilon:.2f}")
