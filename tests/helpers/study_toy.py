"""A chain of which everything is known: gradient descent on ½|θ − x|² in one dimension, all records in every step.

θ ← θ − (η/N) (Σ_i (θ − x_i) + s ξ),  N fixed: with or without a record the sum is divided by the same number. Nothing
is clipped. With u = θ − x the step given the past has means that differ by u/s, and

    E_Q[(p/q)^α] = E~[ exp( α(α−1)/2 Σ_t (u_t/s)² ) ],  E~ over the chain in which the record counts α times (P with it)
                                                         or 1 − α times (P without it),

an exponential of quadratic forms of a Gaussian chain: a recursion backwards from 1.
"""

import math

import numpy as np
import optax

from bayesdp.learn import SGD

X = np.linspace(-0.5, 0.5, 8, dtype=np.float32)[:, None]
OUTSIDER = np.array([[0.9]], np.float32)
START = {"theta": np.array([0.4], np.float32)}
CLIP, RATE, NOISE, STEPS = 2.0, 0.1, 4.0, 6
OPTIMIZER = optax.sgd(RATE)


def loss(params, example):
    return 0.5 * ((params["theta"] - example) ** 2).sum()


def plan(**changes):
    given = {
        "clip_norm": CLIP,
        "sampling_rate": 1.0,
        "steps": STEPS,
        "optimizer": OPTIMIZER,
        "noise_multiplier": NOISE,
        "engine": "rdp",
        "report_every": 3,
    }
    return SGD(**(given | changes))


def exact(order, record, others, direction):
    """D_α between training with `record` and without it, both normalised by len(X)."""
    s, size = NOISE * CLIP, len(X)
    weight = order if direction == "remove" else 1 - order
    # u' = A u + b + σ ξ in the tilted chain.
    a = 1 - RATE / size * (len(others) + weight)
    b = RATE / size * float(np.sum(others - record))
    sigma = RATE / size * s
    gain = order * (order - 1) / (2 * s**2)
    k0 = k1 = k2 = 0.0
    for _ in range(STEPS):
        # log E exp(k0 + k1 v + k2 v²), v ~ N(a u + b, σ²), as a quadratic in u; then the step's own cost.
        shrink = 1 - 2 * k2 * sigma**2
        k0, k1, k2 = (
            k0 - math.log(shrink) / 2 + (k1 * b + k2 * b**2 + k1**2 * sigma**2 / 2) / shrink,
            (k1 * a + 2 * k2 * a * b) / shrink,
            k2 * a**2 / shrink + gain,
        )
    u = float(START["theta"][0]) - float(record)
    return (k0 + k1 * u + k2 * u**2) / (order - 1)


def mean_sum(order, record, data):
    """E[S_α] = α/2 Σ_t E[u_t²]/s² over the chain that is trained on `data`."""
    s, size = NOISE * CLIP, len(X)
    mean, variance, total = float(START["theta"][0]), 0.0, 0.0
    for _ in range(STEPS):
        total += ((mean - record) ** 2 + variance) / s**2
        shrink = 1 - RATE / size * len(data)
        mean = shrink * mean + RATE / size * float(np.sum(data))
        variance = shrink**2 * variance + (RATE / size * s) ** 2
    return order / 2 * total
