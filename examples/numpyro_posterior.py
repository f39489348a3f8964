"""A private posterior of a NumPyro program, with intervals that know of the noise."""

import numpy as np
import numpyro
from numpyro import distributions as dist

import bayesdp as bd

rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 2)).astype(np.float32)
y = (rng.random(2000) < 1 / (1 + np.exp(-(0.5 + x @ [1.0, -1.0])))).astype(np.int32)


def model(x, y=None):
    middle = numpyro.sample("middle", dist.Normal(0, 2))
    weights = numpyro.sample("weights", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("records", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=middle + x @ weights), obs=y)


plan = bd.VI.suggest(model, (x, y), epsilon=1.0, delta=1e-5, steps=200, noise_aware=True, engine="rdp")
posterior = plan.fit(model, (x, y))
found = posterior.summary(0.9)
for name, mean, low, high in zip(found.names, found.mean, found.low, found.high, strict=True):
    print(f"{name}: {mean:.2f}, between {low:.2f} and {high:.2f} with 90 %")
print(posterior.guarantees[0])
