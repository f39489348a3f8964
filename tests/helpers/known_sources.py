"""Sources of divergences whose answers are known."""

import math
from dataclasses import dataclass

import numpy as np

from bayesdp import WorstCaseAccountant


@dataclass(frozen=True)
class Study:
    """A study whose bound is that of a Gaussian pair."""

    distance: float
    failure: float = 0.01
    words: str = "Ten runs."
    known_to: float = math.inf

    def divergence(self, orders):
        return np.where(orders <= self.known_to, orders * self.distance**2 / 2, np.inf)


def everybody(adjacency="add-remove"):
    accountant = WorstCaseAccountant(engine="rdp", adjacency=adjacency)
    accountant.step(noise_multiplier=4.0, sampling_rate=0.1, steps=50)
    accountant.step(noise_multiplier=6.0, sampling_rate=0.2, steps=20)
    return accountant
