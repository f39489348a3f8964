"""How much noise does a promise need? By ε, and by what an attacker may achieve."""

import bayesdp as bd

for epsilon in (0.5, 1.0, 2.0, 4.0):
    noise = bd.noise_for(epsilon=epsilon, delta=1e-5, sampling_rate=0.01, steps=1000, engine="rdp")
    print(f"DP ε = {epsilon}: noise multiplier {noise:.3f}")

noise = bd.noise_for(attacker=0.55, sampling_rate=0.01, steps=1000)
print(f"no attacker is right more than 55 % of the time: noise multiplier {noise:.3f}")
