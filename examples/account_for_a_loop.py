"""The three promises of a training loop that is not ours: only its gradient norms are needed."""

import numpy as np

import bayesdp as bd

NOISE, RATE, STEPS, DELTA = 2.0, 0.02, 50, 1e-5
rng = np.random.default_rng(0)
size = rng.weibull(0.5, 2000) * 0.1  # stands for the norms that your loop knows; the clip norm is 1

everybody = bd.WorstCaseAccountant()
typical = bd.BayesianAccountant(cap=1.0)
named = bd.InstanceAccountant(records=3, cap=1.0)
for step in range(STEPS):
    norms = np.minimum(size / (1 + step / 50) ** 0.5, 1.0)
    everybody.step(noise_multiplier=NOISE, sampling_rate=RATE)
    typical.step(norms[:1000], noise_std=NOISE, sampling_rate=RATE)  # never trained on
    typical.step(norms[1000:], noise_std=NOISE, sampling_rate=RATE, orientation="present")  # members
    named.step(norms[:3], noise_std=NOISE, sampling_rate=RATE)

print(everybody.guarantee(DELTA))
print(typical.guarantee(DELTA, coverage=0.9))
print("three named records:", named.epsilon(DELTA).round(3))
