"""Samples of a posterior by private Langevin dynamics: the sampler's own noise is the noise for privacy."""

import jax.numpy as jnp
import numpy as np

import bayesdp as bd

rng = np.random.default_rng(0)
x = rng.normal(size=(1000, 2)).astype(np.float32)
y = np.sign(x @ [1.0, -1.0] + rng.logistic(size=1000)).astype(np.float32)


def log_likelihood(weights, record):
    features, label = record
    return -jnp.logaddexp(0.0, -label * (features @ weights))


model = (bd.NormalPrior(np.zeros(2), 1.0), log_likelihood)
walk = bd.SGLD(sampling_rate=0.2, steps=200, step_size=1e-3, clip_norm=1.0, num_chains=2, delta=1e-5, engine="rdp")
samples = walk.calibrate_step(epsilon=2.0).fit(model, (x, y))
print("mean", samples.mean.round(2), "R-hat", samples.r_hat.round(2))
print(*samples.notes, sep="\n")
print(samples.guarantees[0])
